/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange. Headers are bounded by TRANSFER_MAX_HEADERS, the decoded body by max_response; one
 * byte more ends the exchange. An exchange has a whole answer or none. */
#include "http/transfer.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#define SMALL_BUFFER 2048L

/* Of the answer so far; 0: none. */
static int status_of(const struct transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static bool succeeded(const struct transfer *t)
{
	int status = status_of(t);

	return status >= 200 && status <= 299;
}

static size_t on_body(char *piece, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	bool stream = t->data && succeeded(t);
	uint64_t max = t->max_response;

	check(size == 1);
	/* A limit for a stream is none for an error page. */
	if (t->data && !stream && max > TRANSFER_MAX_BODY)
		max = TRANSFER_MAX_BODY;
	t->moved_ns = clock_mono();
	t->received += n;
	if (t->cancelled)
		return CURL_WRITEFUNC_ERROR;
	if (t->received > max)
		t->failure = -E2BIG;
	else if (stream && !t->data(t->context, (struct str){piece, n}))
		t->failure = -ECANCELED;
	else if (!stream && buf_append(&t->body, piece, n) != 0)
		t->failure = -ENOMEM;
	return t->failure ? CURL_WRITEFUNC_ERROR : n;
}

static size_t on_read(char *to, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	uint64_t left = t->request_bytes - t->made;
	int64_t got;

	check(size == 1);
	if (t->cancelled)
		return CURL_READFUNC_ABORT;
	if (!left || !n)
		return 0;
	check(t->made <= t->request_bytes);
	got = t->read(t->context, to, left < n ? (size_t)left : n);
	if (got <= 0) {
		t->unreadable = true;
		t->failure = got < 0 ? (int)got : -ENODATA;
		return CURL_READFUNC_ABORT;
	}
	check((uint64_t)got <= left && (uint64_t)got <= n);
	t->moved_ns = clock_mono();
	t->made += (uint64_t)got;
	return (size_t)got;
}

/* The empty line that ends a block of headers. */
static bool ends_headers(const char *line, size_t n)
{
	return n > 0 && n <= 2 && (line[0] == '\r' || line[0] == '\n');
}

static size_t on_header(char *line, size_t size, size_t n, void *context)
{
	struct transfer *t = context;

	t->moved_ns = clock_mono();
	t->received_headers += n;
	t->in_head = !ends_headers(line, n) &&
		     (t->in_head || str_starts((struct str){line, n}, STR("HTTP/")));
	if (t->received_headers > TRANSFER_MAX_HEADERS)
		t->failure = -E2BIG;
	else if (t->begun && !t->cancelled && ends_headers(line, n) && succeeded(t)) {
		t->begun(t->context);
		t->begun = NULL; /* trailers may end with such a line too */
	}
	return t->failure ? CURL_WRITEFUNC_ERROR : n;
}

/* Whom the request goes to, "host:port", and whether the URL can be used. */
static int parse_peer(struct transfer *t, const char *url, struct error *err)
{
	char *scheme = NULL, *host = NULL, *port = NULL;
	struct buf peer = BUF_NULL;
	CURLU *parts = curl_url();
	const char *user = strrchr(url, '@'); /* who is not told */
	int rc = 0;

	if (!parts)
		return -ENOMEM;
	if (curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
		rc = error_set(err, -EINVAL,
			       "\"%s%s\" is not a URL that can be used; write it as "
			       "http://host:port or https://host:port",
			       user ? "…" : "", user ? user : url);
	} else {
		buf_printf(&peer, "%s:%s", host, port);
		t->peer = buf_take(&peer);
		t->plain = strcmp(scheme, "http") == 0;
		rc = t->peer ? 0 : -ENOMEM;
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parts);
	return rc;
}

/* Whom messages name where a socket stands for the URL's host. */
static int name_socket(struct transfer *t, struct str path)
{
	free(t->peer);
	t->peer = str_dup(path);
	return t->peer ? 0 : -ENOMEM;
}

#define SET(option, value)                                                                         \
	do {                                                                                       \
		if (code == CURLE_OK)                                                              \
			code = curl_easy_setopt(t->easy, option, value);                           \
	} while (0)

/* A peer that has vanished without a word (a node that lost power, a NAT that forgot us) is noticed
 * within half a minute, also while nothing is awaited. The last of these is for when something was
 * just sent: until that is acknowledged nobody is probed, and it would be sent again for a quarter
 * of an hour. */
static int on_socket_made(void *context, curl_socket_t fd, curlsocktype purpose)
{
	const struct {
		int option, value;
	} options[] = {{TCP_KEEPIDLE, 15},
		       {TCP_KEEPINTVL, 5},
		       {TCP_KEEPCNT, 3},
		       {TCP_USER_TIMEOUT, 30000}};
	const int on = 1;

	/* No TCP, no need. */
	if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0)
		return CURL_SOCKOPT_OK;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		setsockopt(fd, IPPROTO_TCP, options[i].option, &options[i].value,
			   sizeof(options[i].value));
	return CURL_SOCKOPT_OK;
}

/* No signals (NOSIGNAL), no protocols but these two, no wait for "100 Continue" (a header of
 * config.c), and no wait for a resolver thread when a request is cancelled (QUICK_EXIT: it is left
 * to end by itself). */
static CURLcode set_basics(struct transfer *t, const struct http_request *request)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_PRIVATE, t);
	SET(CURLOPT_ERRORBUFFER, t->detail);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_NOPROGRESS, 1L);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_MAXREDIRS, 10L);
	SET(CURLOPT_USERAGENT, "andiron/" ANDIRON_VERSION);
	SET(CURLOPT_ACCEPT_ENCODING, request->uncompressed ? NULL : "gzip");
	if (request->small)
		SET(CURLOPT_BUFFERSIZE, SMALL_BUFFER);
	if (request->own_connection)
		SET(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
	else /* one of its own ends by the request's time */
		SET(CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, t);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's 200 is not the server's */
	SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(t->connect_ns / NS_PER_MSEC));
	/* A stream that says it is too long is not begun. */
	if (request->data && request->max_response && request->max_response <= INT64_MAX)
		SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)request->max_response);
	return code;
}

static CURLcode set_method(struct transfer *t, const struct http_request *request)
{
	CURLcode code = CURLE_OK;

	if (strcmp(request->method, "GET") == 0 && request->body.n == 0) {
		SET(CURLOPT_HTTPGET, 1L);
		return code;
	}
	if (strcmp(request->method, "HEAD") == 0) {
		SET(CURLOPT_NOBODY, 1L);
		return code;
	}
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request_bytes);
	if (request->read) {
		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_READFUNCTION, on_read);
		SET(CURLOPT_READDATA, t);
		SET(CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)request->max_send);
	} else {
		SET(CURLOPT_COPYPOSTFIELDS, request->body.n ? request->body.p : "");
	}
	if (strcmp(request->method, "POST") != 0)
		SET(CURLOPT_CUSTOMREQUEST, request->method);
	return code;
}

static int add_headers(struct transfer *t, const struct http_header *headers, size_t n,
		       struct error *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = config_header(&t->headers, headers[i].name, headers[i].value, err);
	return rc;
}

static int set_headers(struct transfer *t, const struct http_request *request, struct error *err)
{
	int rc = config_header(&t->headers, STR("Expect"), STR_NULL, err);

	if (rc == 0)
		rc = add_headers(t, request->headers, request->n_headers, err);
	return rc ? rc : add_headers(t, request->more_headers, request->n_more_headers, err);
}

static CURLcode set_connection(struct transfer *t, const struct http_request *request)
{
	CURLcode code = CURLE_OK;

	if (t->http2) /* whatever the configuration says: there is no other way */
		SET(CURLOPT_HTTP_VERSION, t->plain ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
						   : (long)CURL_HTTP_VERSION_2TLS);
	/* libcurl 7.88 takes an HTTP/2 connection that was idle for one that is broken, after the
	 * request has left: so each of these has its own. */
	if (t->http2 || request->own_connection) {
		SET(CURLOPT_FRESH_CONNECT, 1L);
		SET(CURLOPT_FORBID_REUSE, 1L);
	}
	return code;
}

static int prepare(struct transfer *t, const struct http_config *config,
		   const struct http_request *request, struct error *err)
{
	_cleanup_(buf_free) struct buf url = BUF_NULL;
	CURLcode code;
	int rc;

	buf_printf(&url, "%.*s%s%c", STR_FMT(request->url), request->path ? request->path : "", 0);
	rc = url.failed ? -ENOMEM : parse_peer(t, url.p, err);
	if (rc == 0 && config->unix_socket.p)
		rc = name_socket(t, config->unix_socket);
	if (rc)
		return rc;
	t->easy = curl_easy_init();
	if (!t->easy)
		return -ENOMEM;
	code = set_basics(t, request);
	if (code == CURLE_OK)
		code = set_method(t, request);
	if (code != CURLE_OK)
		return config_failed(code, "request", err);
	rc = config_str(t->easy, CURLOPT_URL, str_of(url.p), err);
	if (rc == 0)
		rc = set_headers(t, request, err);
	if (rc == 0)
		rc = config_apply(t, config, err);
	if (rc)
		return rc;
	code = set_connection(t, request);
	SET(CURLOPT_HTTPHEADER, t->headers);
	SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	SET(CURLOPT_PROXYHEADER, t->proxy_headers);
	return code == CURLE_OK ? 0 : config_failed(code, "headers", err);
}

int transfer_new(const struct http_config *config, const struct http_request *request,
		 struct transfer **ret, struct error *err)
{
	struct transfer *t = calloc(1, sizeof(*t));
	int rc;

	check(request->method && request->done && request->timeout_ms >= 0 &&
	      request->stall_ms >= 0);
	if (!t)
		return -ENOMEM;
	t->max_response = request->max_response ? request->max_response : TRANSFER_MAX_BODY;
	memcpy(t->wanted, request->wanted, sizeof(t->wanted));
	t->http2 = request->http2;
	t->request_bytes = request->read ? request->read_bytes : request->body.n;
	t->timeout_ns = request->timeout_ms * NS_PER_MSEC;
	t->connect_ns = (request->connect_timeout_ms ? request->connect_timeout_ms : 10000) *
			NS_PER_MSEC;
	t->stall_ns = request->stall_ms * NS_PER_MSEC;
	t->started_ns = t->moved_ns = clock_mono();
	t->read = request->read;
	t->left = request->left;
	t->begun = request->begun;
	t->data = request->data;
	t->done = request->done;
	t->context = request->context;
	rc = prepare(t, config, request, err);
	if (rc) {
		transfer_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

int transfer_authorize(struct transfer *t, struct str value, struct error *err)
{
	int rc = config_header(&t->headers, STR("Authorization"), value, err);

	if (rc == 0 && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) != CURLE_OK)
		rc = -ENOMEM;
	t->moved_ns = clock_mono();
	return rc;
}

void transfer_free(struct transfer *t)
{
	if (!t)
		return;
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	curl_slist_free_all(t->proxy_headers);
	curl_slist_free_all(t->connect_to);
	buf_free(&t->body);
	free(t->peer);
	free(t);
}

int64_t transfer_deadline(const struct transfer *t)
{
	return t->stall_ns ? t->moved_ns + t->stall_ns : INT64_MAX;
}

bool transfer_stalled(struct transfer *t, int64_t now_ns)
{
	curl_off_t uploaded = 0;

	if (transfer_deadline(t) > now_ns)
		return false;
	curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	if (uploaded != t->uploaded) {
		t->uploaded = uploaded;
		t->moved_ns = now_ns;
		return false;
	}
	t->failure = -ETIMEDOUT;
	return true;
}

/* Seconds or a date (RFC 9110, 10.2.3). */
static int64_t retry_after(CURL *easy)
{
	struct curl_header *header;
	uint64_t seconds;
	time_t date;

	if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return -1;
	if (!str_u64(str_trim(str_of(header->value)), &seconds)) {
		date = curl_getdate(header->value, NULL);
		if (date < 0)
			return -1;
		seconds = date > time(NULL) ? (uint64_t)(date - time(NULL)) : 0;
	}
	return seconds > HTTP_MAX_RETRY_AFTER_MS / 1000 ? HTTP_MAX_RETRY_AFTER_MS
							: (int64_t)seconds * 1000;
}

/* Header or trailer, whichever there is; of the last answer of the exchange. */
static struct str find_header(CURL *easy, const char *name)
{
	struct curl_header *header;

	if (curl_easy_header(easy, name, 0, CURLH_TRAILER, -1, &header) != CURLHE_OK &&
	    curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return STR_NULL;
	return str_of(header->value);
}

bool transfer_was_sent(const struct transfer *t)
{
	curl_off_t uploaded = 0;
	long headers = 0;

	curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &headers);
	curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	return status_of(t) >= 200 || (headers > 0 && uploaded >= (curl_off_t)t->request_bytes);
}

bool transfer_unauthenticated(const struct transfer *t)
{
	return status_of(t) == 401 ||
	       (t->http2 && str_is(find_header(t->easy, "grpc-status"), "16"));
}

void transfer_tell_left(struct transfer *t)
{
	if (!t->left || !transfer_was_sent(t))
		return;
	check(!t->cancelled);
	t->left(t->context);
	t->left = NULL;
}

void transfer_finish(struct transfer *t, CURLcode code)
{
	char text[CURL_ERROR_SIZE + 256] = "";
	struct http_response response = {.error = text, .retry_after_ms = -1};
	char *type = NULL;

	response.elapsed_ns = clock_mono() - t->started_ns;
	check(!t->cancelled);
	response.sent = transfer_was_sent(t);
	response.token_refused = t->token_refused;
	if (code == CURLE_OK) {
		curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
		response.status = status_of(t);
		response.body = buf_str(&t->body);
		response.content_type = str_of(type);
		response.retry_after_ms = retry_after(t->easy);
		for (size_t i = 0; i < HTTP_WANTED && t->wanted[i]; i++)
			response.wanted[i] = find_header(t->easy, t->wanted[i]);
	} else {
		response.result = explain(t, code, text, sizeof(text));
		check(response.result < 0);
	}
	t->done(t->context, &response);
}
