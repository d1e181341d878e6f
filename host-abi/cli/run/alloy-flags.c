/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in alloy-flags.h. Flags become a text in the configuration's language and not values of
 * their own, so that what they say is checked, reloaded and refused as if a file said it. */
#include "cli/run/alloy-flags.h"

#include "cli/run/live-config.h"
#include "host/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Why a flag changes nothing; the first beginning that fits counts. */
static const struct {
	const char *beginning;
	uint32_t level;
	const char *why;
} reasons[] = {
	{"cluster.enabled", ANDIRON_LOG_WARN,
	 "agents of andiron form no cluster: each takes all targets that its configuration gives "
	 "it"},
	{"cluster.", ANDIRON_LOG_INFO, "agents of andiron form no cluster"},
	{"server.http.memory-addr", ANDIRON_LOG_INFO, "components do not ask each other over HTTP"},
	{"server.http.", ANDIRON_LOG_INFO,
	 "andiron's page is at /, and there is no pprof of its own and no support bundle"},
	{"feature.component-shutdown-deadline", ANDIRON_LOG_INFO,
	 "--drain-deadline says how long stopping may take"},
	{"feature.prometheus.", ANDIRON_LOG_INFO, "andiron takes profiles, not metrics"},
	{"feature.", ANDIRON_LOG_INFO, "every component is always there"},
	{"stability.", ANDIRON_LOG_INFO, "every component is always there"},
	{"config.", ANDIRON_LOG_INFO, "nothing is converted"},
	{"disable-reporting", ANDIRON_LOG_INFO, "andiron reports nothing to anybody"},
};

const char *const alloy_stability[] = {"experimental", "public-preview", "generally-available",
				       NULL};

#define N_REASONS (sizeof(reasons) / sizeof(reasons[0]))

void alloy_flags_fini(struct alloy_flags *flags)
{
	vec_free(&flags->noted);
	for (size_t i = 0; i < ALLOY_FLAGS_TEXTS; i++)
		buf_free(&flags->texts[i]);
}

/* --- Where it listens --- */

/* The host of HOST:PORT, [HOST]:PORT or :PORT, and the port. */
static bool split(struct str text, struct str *ret_host, uint64_t *ret_port)
{
	size_t colon = text.n;

	while (colon > 0 && text.p[colon - 1] != ':')
		colon--;
	if (colon == 0 || !str_u64(str_skip(text, colon), ret_port) || *ret_port > UINT16_MAX)
		return false;
	*ret_host = str_first(text, colon - 1);
	if (ret_host->n >= 2 && ret_host->p[0] == '[') {
		if (ret_host->p[ret_host->n - 1] != ']')
			return false;
		*ret_host = str_first(str_skip(*ret_host, 1), ret_host->n - 2);
		return str_find(*ret_host, ':') < ret_host->n;
	}
	return str_find(*ret_host, ':') == ret_host->n; /* IPv6 stands in brackets */
}

/* As status.http takes it: an IP address, or "*". */
static bool address_of(struct str host, char ret[INET6_ADDRSTRLEN])
{
	unsigned char binary[sizeof(struct in6_addr)];

	if (host.n == 0)
		host = STR("*");
	else if (str_is(host, "localhost"))
		host = STR("127.0.0.1");
	if (host.n >= INET6_ADDRSTRLEN)
		return false;
	memcpy(ret, host.p, host.n);
	ret[host.n] = '\0';
	return str_is(host, "*") || inet_pton(AF_INET, ret, binary) == 1 ||
	       inet_pton(AF_INET6, ret, binary) == 1;
}

static int put_listener(const char *listen, struct buf *ret, struct error *err)
{
	char address[INET6_ADDRSTRLEN];
	struct str host;
	uint64_t port;

	if (!split(str_of(listen), &host, &port) || !address_of(host, address))
		return error_set(err, -EINVAL,
				 "--server.http.listen-addr is an IP address and a port, such as "
				 "127.0.0.1:12345, [::1]:12345 or :12345 for all addresses, not "
				 "\"%s\"",
				 listen);
	buf_printf(ret,
		   "status.http {\n\tlisten_address = \"%s\"\n\tlisten_port    = %u\n"
		   "\treload         = true\n}\n",
		   address, (unsigned int)port);
	return 0;
}

/* --- Where it keeps things --- */

static int put_storage(const char *path, struct buf *ret, struct error *err)
{
	char folder[PATH_MAX] = "";
	struct buf whole = BUF_NULL;

	if (!*path)
		return error_set(err, -EINVAL, "--storage.path is a directory, not \"\"");
	if (*path != '/' && !getcwd(folder, sizeof(folder)))
		return error_errno(err, -errno,
				   "--storage.path: cannot tell the current directory");
	buf_str_append(ret, STR("storage {\n\tpath = "));
	buf_printf(&whole, "%s%s%s", folder, *folder ? "/" : "", path);
	config_quote(ret, buf_str(&whole));
	buf_str_append(ret, STR("\n}\n"));
	ret->failed |= whole.failed;
	buf_free(&whole);
	return 0;
}

int alloy_flags_config(struct alloy_flags *flags, struct error *err)
{
	int r = 0;

	if (flags->format && strcmp(flags->format, "alloy") != 0)
		return error_set(err, -EINVAL,
				 "--config.format is alloy here, not \"%s\"; `alloy convert "
				 "--source-format=%s` makes a file that andiron reads",
				 flags->format, flags->format);
	if (flags->listen)
		r = put_listener(flags->listen, &flags->texts[0], err);
	if (r == 0 && flags->storage)
		r = put_storage(flags->storage, &flags->texts[1], err);
	if (r == 0 && (flags->texts[0].failed || flags->texts[1].failed))
		r = error_set(err, -ENOMEM, "out of memory");
	flags->sources[0] =
		(struct source){"--server.http.listen-addr", buf_str(&flags->texts[0])};
	flags->sources[1] = (struct source){"--storage.path", buf_str(&flags->texts[1])};
	return r;
}

/* --- What has no counterpart --- */

static size_t reason_of(const char *name)
{
	size_t i = 0;

	while (i < N_REASONS && !str_starts(str_of(name), str_of(reasons[i].beginning)))
		i++;
	return i;
}

void alloy_flags_say(const struct alloy_flags *flags, struct log *log)
{
	for (size_t i = 0; i < N_REASONS; i++) {
		struct buf names = BUF_NULL;

		for (size_t n = 0; n < flags->noted.n; n++)
			if (reason_of(flags->noted.p[n]) == i)
				buf_printf(&names, "%s--%s", names.n ? ", " : "",
					   flags->noted.p[n]);
		if (names.n > 0)
			log_printf(log, reasons[i].level, RUN_LOG_NAME, "%.*s: without effect, %s",
				   STR_FMT(buf_str(&names)), reasons[i].why);
		buf_free(&names);
	}
}
