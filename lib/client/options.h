/* SPDX-License-Identifier: Apache-2.0 */
/* Alloy's HTTP client arguments, shared by every component that is a client: the rows for its
 * option table, the check of what types cannot say, and the way from arguments to an http_config.
 *
 * Source: Alloy, internal/component/common/config, and its reference on shared HTTP client
 * arguments. */
#pragma once

#include "abi/option.h"
#include "base/arena.h"
#include "http/http.h"

#include <andiron/host.h>

extern const struct andiron_options client_options_authorization;
extern const struct andiron_options client_options_basic_auth;
extern const struct andiron_options client_options_oauth2;
extern const struct andiron_options client_options_tls_config;

/* The rows, to stand among others in an array of struct andiron_option. */
/* clang-format off */
#define CLIENT_OPTIONS                                                                             \
	OPTION(SECRET, "bearer_token", NULL, "Bearer token to authenticate with."),                \
	OPTION(STRING, "bearer_token_file", NULL,                                                  \
	       "File with the bearer token, read again for every request."),                       \
	OPTION(BOOL, "enable_http2", "true",                                                       \
	       "Whether HTTP/2 is offered to servers that are reached over TLS."),                 \
	OPTION(BOOL, "follow_redirects", "true",                                                   \
	       "Whether redirects are followed, at most ten."),                                    \
	OPTION(SECRETS, "http_headers", NULL,                                                      \
	       "Headers to send with every request, each with one value or a list of values."),    \
	OPTION(STRING, "proxy_url", NULL, "Proxy to send requests through."),                      \
	OPTION(STRING, "no_proxy", NULL,                                                           \
	       "Comma-separated hosts and addresses that are reached without the proxy."),         \
	OPTION(BOOL, "proxy_from_environment", "false",                                            \
	       "Whether the proxy is taken from http_proxy, HTTPS_PROXY and NO_PROXY."),           \
	OPTION(SECRETS, "proxy_connect_header", NULL,                                              \
	       "Headers to send to the proxy when a tunnel through it is opened."),                \
	OPTION(BLOCK, "authorization", NULL,                                                       \
	       "Authenticate with an Authorization header of any type.",                           \
	       .block = &client_options_authorization),                                            \
	OPTION(BLOCK, "basic_auth", NULL,                                                          \
	       "Authenticate with user name and password.",                                        \
	       .block = &client_options_basic_auth),                                               \
	OPTION(BLOCK, "oauth2", NULL,                                                              \
	       "Authenticate with a token that is fetched by OAuth2's client credentials.",        \
	       .block = &client_options_oauth2),                                                   \
	OPTION(BLOCK, "tls_config", NULL,                                                          \
	       "Whom to trust, and with what certificate to answer.",                              \
	       .block = &client_options_tls_config)
/* clang-format on */

/* Reports what is wrong with the rows above in `args`: more than one kind of authentication, both a
 * text and a file of one thing, no_proxy without proxy_url, oauth2 without a server. For
 * `validate`; no side effects. */
void client_check(const struct andiron_host *host, const struct andiron_value *args,
		  struct andiron_report *report);

/* An http_config that owns its strings. */
struct client_config {
	struct http_config http;
	struct arena arena;
};

/* From arguments to a config: 0, -ENOMEM, or -EINVAL and a text for what client_check reports as an
 * error. `args` is not needed afterwards. */
int client_config_init(struct client_config *ret, const struct andiron_value *args,
		       struct error *err);
void client_config_fini(struct client_config *config);

/* A map of strings, or of lists of strings, as headers: one per value. All copied into the arena. 0
 * or -ENOMEM. */
int client_headers(struct arena *arena, const struct andiron_value *map,
		   const struct http_header **ret, size_t *ret_n);
