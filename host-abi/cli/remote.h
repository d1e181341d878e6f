/* SPDX-License-Identifier: Apache-2.0 */
/* The server that a verb sends to: its options, alike for all such verbs, and what the HTTP
 * client makes of them. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "http/http.h"
#include "cli/options.h"

struct remote {
	/* As given; borrowed from argv. */
	const char *to, *token, *token_file, *ca, *cert, *key;
	struct texts texts;
	bool insecure, skip_verify;
	/* Made of it. */
	char *url; /* with a scheme, without a slash at the end */
	struct http_header *headers; /* with room for one more */
	size_t n_headers;
	struct http_config config;
};

/* Rows of a verb's table of flags; `help` is what --to may look like. */
/* clang-format off: a table */
#define REMOTE_FLAGS(r, help)                                                                      \
	{"to", 0, FLAG_TEXT, "URL", help, &(r)->to, 0, 0},                                         \
		{"bearer-token", 0, FLAG_TEXT, "TOKEN", "token to authenticate with",              \
		 &(r)->token,    0, 0},                                                            \
		{"bearer-token-file", 0, FLAG_TEXT, "FILE", "file that holds it",                  \
		 &(r)->token_file,    0, 0},                                                       \
		{"header",                                                                         \
		 0,                                                                                \
		 FLAG_TEXTS,                                                                       \
		 "NAME=VALUE",                                                                     \
		 "header to send with every call; may be repeated",                                \
		 &(r)->texts,                                                                      \
		 0,                                                                                \
		 0},                                                                               \
		{"insecure",     0, FLAG_BOOL, NULL, "plain text, where --to has no scheme",       \
		 &(r)->insecure, 0, 0},                                                            \
		{"insecure-skip-verify", 0, FLAG_BOOL, NULL, "accept any certificate",             \
		 &(r)->skip_verify,      0, 0},                                                    \
		{"ca-file", 0, FLAG_TEXT, "FILE", "certificates of the authorities to trust",      \
		 &(r)->ca,  0, 0},                                                                 \
		{"cert-file", 0, FLAG_TEXT, "FILE", "client certificate", &(r)->cert, 0, 0},       \
	{                                                                                          \
		"key-file", 0, FLAG_TEXT, "FILE", "its key", &(r)->key, 0, 0                       \
	}
/* clang-format on */

/* Makes the rest of what was given; `example` is a URL. OPTIONS_DONE, or the exit code after a
 * message. remote_fini in either case. */
int remote_prepare(struct remote *r, const struct command *command, const char *example);
void remote_fini(struct remote *r);

#endif
