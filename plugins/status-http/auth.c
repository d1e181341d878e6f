/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in auth.h. What is expected is compared as it is sent, in base64, and in a time that
 * does not say how much of it was right. */
#include "status-http/auth.h"

#include "abi/option.h"
#include "abi/value.h"
#include "base/buf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

static const struct andiron_option basic[] = {
	OPTION(STRING, "username", NULL, "The user's name.", .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(SECRET, "password", NULL, "The user's password.",
	       .flags = ANDIRON_OPTION_REQUIRED),
};
static const struct andiron_options basic_options = ANDIRON_OPTIONS(basic);

static const struct andiron_option filter[] = {
	OPTION(STRINGS, "paths", NULL,
	       "Beginnings of paths that the filter is about; without any, all paths are "
	       "protected."),
	OPTION(BOOL, "authenticate_matching_paths", "true",
	       "Whether those paths are protected; false: all others are."),
};
static const struct andiron_options filter_options = ANDIRON_OPTIONS(filter);

static const struct andiron_option auth[] = {
	OPTION(BLOCK, "basic", NULL, "Name and password that whoever asks must send.",
	       .block = &basic_options),
	OPTION(BLOCK, "filter", NULL, "What is protected.", .block = &filter_options),
};
const struct andiron_options auth_options = ANDIRON_OPTIONS(auth);

/* "name:password" in base64, or NULL. */
static char *expect(const struct andiron_value *block)
{
	struct buf plain = BUF_NULL, encoded = BUF_NULL;

	buf_str_append(&plain, value_str(block, "username", STR_NULL));
	buf_putc(&plain, ':');
	buf_str_append(&plain, value_str(block, "password", STR_NULL));
	buf_base64_append(&encoded, buf_str(&plain), BUF_BASE64);
	buf_putc(&encoded, '\0');
	if (plain.failed)
		encoded.failed = true;
	if (plain.p)
		explicit_bzero(plain.p, plain.n);
	buf_free(&plain);
	return buf_take(&encoded);
}

static int take_paths(struct auth *a, const struct andiron_value *block)
{
	const struct andiron_value *paths = block ? value_get(block, "paths") : NULL;

	a->except = block && !value_bool(block, "authenticate_matching_paths", true);
	a->paths = calloc(paths ? paths->n_items + 1 : 1, sizeof(char *));
	if (!a->paths)
		return -ENOMEM;
	for (uint64_t i = 0; paths && i < paths->n_items; i++) {
		a->paths[a->n_paths] = str_dup(abi_str(paths->items[i].string));
		if (!a->paths[a->n_paths++])
			return -ENOMEM;
	}
	return 0;
}

int auth_init(struct auth *a, const struct andiron_value *block)
{
	const struct andiron_value *user = block ? value_get(block, "basic") : NULL;

	*a = (struct auth){0};
	if (!user)
		return 0;
	a->expected = expect(user);
	if (a->expected && take_paths(a, value_get(block, "filter")) == 0)
		return 0;
	auth_fini(a);
	return -ENOMEM;
}

void auth_fini(struct auth *a)
{
	for (size_t i = 0; i < a->n_paths; i++)
		free(a->paths[i]);
	free(a->paths);
	if (a->expected)
		explicit_bzero(a->expected, strlen(a->expected));
	free(a->expected);
	*a = (struct auth){0};
}

static bool is_protected(const struct auth *a, struct str path)
{
	bool matches = false;

	for (size_t i = 0; i < a->n_paths; i++)
		matches = matches || str_starts(path, str_of(a->paths[i]));
	return a->n_paths == 0 || matches != a->except;
}

static bool is_expected(const struct auth *a, struct str header)
{
	struct str expected = str_of(a->expected), scheme = str_cut(&header, ' ');
	unsigned char differ = 0;

	header = str_trim(header);
	if (scheme.n != 5 || strncasecmp(scheme.p, "Basic", 5) != 0 || header.n != expected.n)
		return false;
	for (size_t i = 0; i < expected.n; i++)
		differ |= (unsigned char)header.p[i] ^ (unsigned char)expected.p[i];
	return differ == 0;
}

/* A name that its owner may lead to any address: one with a dot, and not this machine's own. That
 * with a domain is one, too: who guesses the first part may own the rest. */
static bool is_foreign(struct str host)
{
	char name[256], own[256] = "";
	struct in_addr address;

	if (str_starts(host, STR("[")))
		return false;
	host = str_first(host, str_find(host, ':'));
	if (str_ends(host, STR(".")))
		host.n--;
	snprintf(name, sizeof(name), "%.*s", STR_FMT(str_first(host, sizeof(name) - 1)));
	gethostname(own, sizeof(own) - 1);
	return str_find(host, '.') < host.n && inet_pton(AF_INET, name, &address) != 1 &&
	       !str_ends(host, STR(".localhost")) && !str_ends(host, STR(".localdomain")) &&
	       strcasecmp(name, own) != 0;
}

/* Whether a page of a stranger, in a browser of this machine, may be what asks: its name led to the
 * stranger's server first, and leads here now (DNS rebinding). What scrapers and probes ask for is
 * no secret, and a proxy beside the agent may hand it on with a Service's name. */
static bool is_rebound(struct server_request *r)
{
	static const char *const open[] = {"/metrics", "/-/ready", "/-/healthy"};
	struct str path = server_request_path(r);

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (str_is(path, open[i]))
			return false;
	return is_foreign(server_request_header(r, "Host")) && server_request_is_local(r);
}

bool auth_admits(const struct auth *a, struct server_request *r)
{
	if (!a->expected || !is_protected(a, server_request_path(r))) {
		if (!is_rebound(r))
			return true;
		server_answer_text(r, 403,
				   "a name that hostname(1) does not print leads here: ask at "
				   "localhost or 127.0.0.1; a proxy is to send that as Host, or a "
				   "user and a password are to be asked for (auth)\n");
		return false;
	}
	if (is_expected(a, server_request_header(r, "Authorization")))
		return true;
	server_answer(r, &(struct server_answer){
				 .status = 401,
				 .type = "text/plain; charset=utf-8",
				 .body = STR("unauthorized\n"),
				 .authenticate = "Basic realm=\"andiron\"",
			 });
	return false;
}
