/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong, in one line that names the peer, the cause and, where there is one, the remedy.
 * The table holds what can happen in ordinary operation; everything else is said in curl's own
 * words. */
#include "http/transfer.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

#define DETAIL_NONE 0
#define DETAIL_ALSO 1 /* curl's own words follow the text */

static const struct {
	CURLcode code;
	int class;
	int detail;
	const char *before, *after; /* the peer stands between them */
} causes[] = {
	{CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH, DETAIL_NONE, "cannot resolve host ", ""},
	{CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH, DETAIL_ALSO,
	 "cannot resolve the proxy on the way to ", ""},
	{CURLE_GOT_NOTHING, -ECONNRESET, DETAIL_NONE, "",
	 " closed the connection without an answer"},
	{CURLE_SEND_ERROR, -ECONNRESET, DETAIL_ALSO, "the connection to ", " broke while sending"},
	{CURLE_RECV_ERROR, -ECONNRESET, DETAIL_ALSO, "the connection to ",
	 " broke before the end of the answer"},
	{CURLE_PARTIAL_FILE, -ECONNRESET, DETAIL_NONE, "",
	 " closed the connection in the middle of its answer"},
	{CURLE_UNSUPPORTED_PROTOCOL, -EPROTO, DETAIL_NONE, "", " does not speak HTTP"},
	{CURLE_WEIRD_SERVER_REPLY, -EPROTO, DETAIL_ALSO, "the answer of ", " is not valid HTTP"},
	{CURLE_HTTP2, -EPROTO, DETAIL_ALSO, "the answer of ", " is not valid HTTP/2"},
	{CURLE_HTTP2_STREAM, -EPROTO, DETAIL_ALSO, "", " broke off the HTTP/2 stream"},
	{CURLE_BAD_CONTENT_ENCODING, -EPROTO, DETAIL_ALSO, "the answer of ",
	 " cannot be decompressed"},
	{CURLE_FILESIZE_EXCEEDED, -E2BIG, DETAIL_NONE, "the answer of ",
	 " is larger than is taken"},
	{CURLE_TOO_MANY_REDIRECTS, -EPROTO, DETAIL_NONE, "", " redirects in a circle"},
	{CURLE_SSL_CACERT_BADFILE, -EPROTO, DETAIL_ALSO, "TLS with ",
	 ": the CA certificates cannot be read"},
	{CURLE_SSL_CERTPROBLEM, -EPROTO, DETAIL_ALSO, "TLS with ",
	 ": the client certificate or key cannot be used"},
	{CURLE_SSL_CONNECT_ERROR, -EPROTO, DETAIL_ALSO, "TLS with ", " failed"},
	{CURLE_OUT_OF_MEMORY, -ENOMEM, DETAIL_NONE, "no memory for the request to ",
	 " or its answer"},
};

/* A cause that the table cannot state: 0 if it is none of these. */
static int explain_own(const struct transfer *t, char *out, size_t n)
{
	char time[32];

	if (t->refusal && *t->refusal) {
		snprintf(out, n, "%s", t->refusal);
		return t->failure;
	}
	if (t->unreadable) {
		snprintf(out, n, "what was to be sent to %s cannot be read: %s", t->peer,
			 strerror(-t->failure));
		return t->failure;
	}
	switch (t->failure) {
	case -E2BIG:
		snprintf(out, n, "the answer of %s is larger than %llu bytes", t->peer,
			 (unsigned long long)(t->received > t->max_response
						      ? t->max_response
						      : TRANSFER_MAX_HEADERS));
		break;
	case -ETIMEDOUT:
		snprintf(out, n, "nothing came from %s for %s", t->peer,
			 duration_format(t->stall_ns, time, sizeof(time)));
		break;
	case -ECANCELED:
		snprintf(out, n, "the answer of %s was not read to its end", t->peer);
		break;
	case -ENOMEM:
		snprintf(out, n, "no memory for the answer of %s", t->peer);
		break;
	default:
		break;
	}
	return t->failure;
}

/* Whether a connection stood when it ended. */
static bool was_connected(const struct transfer *t)
{
	curl_off_t connected = 0;

	curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected);
	return connected > 0;
}

static int explain_connect(const struct transfer *t, char *out, size_t n)
{
	const char *through = t->proxied ? " (through its proxy)" : "";
	long number = 0;

	curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number);
	if (number == ECONNREFUSED) {
		snprintf(out, n, "connection refused by %s%s",
			 t->proxied ? "the proxy on the way to " : "", t->peer);
		return -ECONNREFUSED;
	}
	if (number > 0)
		snprintf(out, n, "cannot connect to %s%s: %s", t->peer, through,
			 strerror((int)number));
	else
		snprintf(out, n, "cannot connect to %s%s: %s", t->peer, through, t->detail);
	return -ECONNREFUSED;
}

/* Says the limit and not the time that passed: that differs each time, and so would the lines of a
 * log that counts equal ones. */
static int explain_timeout(const struct transfer *t, char *out, size_t n)
{
	bool of_all = t->timeout_ns > 0 && clock_mono() - t->started_ns >= t->timeout_ns;
	char time[32];

	duration_format(of_all ? t->timeout_ns : t->connect_ns, time, sizeof(time));
	if (was_connected(t))
		snprintf(out, n, "no answer from %s within %s", t->peer, time);
	else
		snprintf(out, n,
			 "no connection to %s within %s; is the address right, and does a "
			 "firewall let it through?",
			 t->peer, time);
	return -ETIMEDOUT;
}

static int explain_verify(const struct transfer *t, char *out, size_t n)
{
	static const struct str prefixes[] = {{"SSL certificate problem: ", 25}, {"SSL: ", 5}};
	struct str why = str_of(t->detail);

	for (size_t i = 0; i < 2; i++)
		if (str_starts(why, prefixes[i]))
			why = str_skip(why, prefixes[i].n);
	snprintf(out, n,
		 "TLS with %s failed: %.*s; tls_config's ca_file names the CA to trust, "
		 "server_name the name to expect",
		 t->peer, STR_FMT(why));
	return -EPROTO;
}

/* That is how curl tells of a header line beyond its limit, too. */
static bool is_long_header(const struct transfer *t, CURLcode code)
{
	return code == CURLE_OUT_OF_MEMORY && t->in_head;
}

int explain(const struct transfer *t, CURLcode code, char *out, size_t n)
{
	check(code != CURLE_OK && t->peer);
	if (explain_own(t, out, n))
		return t->failure;
	if (code == CURLE_COULDNT_CONNECT)
		return explain_connect(t, out, n);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return explain_timeout(t, out, n);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return explain_verify(t, out, n);
	if (is_long_header(t, code)) {
		snprintf(out, n,
			 "the answer of %s has a header too long to be read, or there is not "
			 "enough memory",
			 t->peer);
		return -EPROTO;
	}
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (causes[i].code != code)
			continue;
		snprintf(out, n, "%s%s%s%s%s", causes[i].before, t->peer, causes[i].after,
			 causes[i].detail && t->detail[0] ? ": " : "",
			 causes[i].detail ? t->detail : "");
		return causes[i].class;
	}
	snprintf(out, n, "the request to %s failed: %s", t->peer,
		 t->detail[0] ? t->detail : curl_easy_strerror(code));
	return -EPROTO;
}
