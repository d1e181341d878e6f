/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a server's URL and client. Contract in remote.h. */
#include "cli/remote.h"

#include "base/check.h"
#include "base/buf.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>

/* "NAME=VALUE" or "NAME: VALUE". */
static bool split_header(const char *text, struct http_header *ret)
{
	struct str rest = str_of(text);
	size_t at = strcspn(text, "=:");

	ret->name = str_trim(str_first(rest, at));
	ret->value = str_trim(str_skip(rest, at + 1));
	return at < rest.n && ret->name.n > 0;
}

static char *make_url(const struct remote *r)
{
	struct str to = str_trim(str_of(r->to));
	bool scheme = str_search(to, STR("://")) < to.n;
	struct buf url = BUF_NULL;

	while (to.n && to.p[to.n - 1] == '/')
		to.n--;
	buf_printf(&url, "%s%.*s", scheme ? "" : r->insecure ? "http://" : "https://", STR_FMT(to));
	return buf_take(&url);
}

int remote_prepare(struct remote *r, const struct command *command, const char *example)
{
	if (!r->to)
		return options_wrong(command, "to which server? --to %s", example);
	if (r->token && r->token_file)
		return options_wrong(command, "only one of --bearer-token and --bearer-token-file");
	if (!r->cert != !r->key)
		return options_wrong(command, "--cert-file and --key-file go together");
	check(!r->headers && !r->url);
	r->headers = calloc(r->texts.n + 1, sizeof(*r->headers));
	r->url = make_url(r);
	if (!r->headers || !r->url) {
		fprintf(stderr, "andiron %s: memory is short\n", command->verb);
		return EXIT_FAILED;
	}
	for (r->n_headers = 0; r->n_headers < r->texts.n; r->n_headers++)
		if (!split_header(r->texts.p[r->n_headers], &r->headers[r->n_headers]))
			return options_wrong(command, "--header \"%s\" is not NAME=VALUE",
					     r->texts.p[r->n_headers]);
	r->config = (struct http_config){
		.bearer_token = str_of(r->token),
		.bearer_token_file = str_of(r->token_file),
		.ca_file = str_of(r->ca),
		.cert_file = str_of(r->cert),
		.key_file = str_of(r->key),
		.insecure_skip_verify = r->skip_verify,
		.proxy_from_environment = true,
	};
	return OPTIONS_DONE;
}

void remote_fini(struct remote *r)
{
	free(r->url);
	free(r->headers);
	vec_free(&r->texts);
}
