/* SPDX-License-Identifier: Apache-2.0 */
/* The server that a verb sends to: its options, alike for all such verbs, and what the HTTP client
 * makes of them. */
#pragma once

#include "http/http.h"
#include "cli/options.h"

struct remote {
	/* As given; borrowed from argv. */
	const char *to, *token, *token_file, *ca, *cert, *key;
	struct texts texts;
	bool insecure, skip_verify;
	/* Made of it. */
	char *url;                   /* with a scheme, without a slash at the end */
	struct http_header *headers; /* with room for one more */
	size_t n_headers;
	struct http_config config;
};

/* Rows of a verb's table of options; `r` is a struct remote in `type`, `help_` what --to may look
 * like. */
#define REMOTE_FLAGS(type, r, help_)                                                               \
	{"to", 0, FLAG_INTO(type, r.to), "URL", help_},                                            \
		{"bearer-token", 0, FLAG_INTO(type, r.token), "TOKEN",                             \
		 "token to authenticate with"},                                                    \
		{"bearer-token-file", 0, FLAG_INTO(type, r.token_file), "FILE",                    \
		 "file that holds the token"},                                                     \
		{"header", 0, FLAG_INTO(type, r.texts), "NAME=VALUE",                              \
		 "header to send with every call; may be repeated"},                               \
		{"insecure", 0, FLAG_INTO(type, r.insecure), NULL,                                 \
		 "plain text, where --to has no scheme"},                                          \
		{"insecure-skip-verify", 0, FLAG_INTO(type, r.skip_verify), NULL,                  \
		 "accept any certificate"},                                                        \
		{"ca-file", 0, FLAG_INTO(type, r.ca), "FILE",                                      \
		 "certificates of the authorities to trust"},                                      \
		{"cert-file", 0, FLAG_INTO(type, r.cert), "FILE", "client certificate"},           \
	{                                                                                          \
		"key-file", 0, FLAG_INTO(type, r.key), "FILE", "key of the client certificate"     \
	}

/* Makes the rest of what was given; `example` is a URL. OPTIONS_DONE, or the exit code after a
 * message. remote_fini in either case. */
int remote_prepare(struct remote *r, const struct command *command, const char *example);
void remote_fini(struct remote *r);
