/* SPDX-License-Identifier: Apache-2.0 */
/* Alloy's HTTP client arguments, shared by every component that is a client:
 * the rows for its option table, the check of what types cannot say, and the
 * way from arguments to an http_config.
 *
 * Source: Alloy, internal/component/common/config, and its reference on shared HTTP client
 * arguments. */
#pragma once

#include "base/arena.h"
#include "http/http.h"

#include <andiron/host.h>
#include <andiron/option.h>

extern const struct andiron_options client_options_authorization;
extern const struct andiron_options client_options_basic_auth;
extern const struct andiron_options client_options_oauth2;
extern const struct andiron_options client_options_tls_config;

/* The rows, to stand among others in an array of struct andiron_option. */
/* clang-format off */
#define CLIENT_OPTIONS                                                                             \
	{.name = "bearer_token", .type = ANDIRON_TYPE_SECRET,                                      \
	 .doc = "Bearer token to authenticate with."},                                             \
	{.name = "bearer_token_file", .type = ANDIRON_TYPE_STRING,                                 \
	 .doc = "File with the bearer token, read again for every request."},                      \
	{.name = "enable_http2", .type = ANDIRON_TYPE_BOOL, .default_text = "true",                \
	 .doc = "Whether HTTP/2 is offered to servers that are reached over TLS."},                \
	{.name = "follow_redirects", .type = ANDIRON_TYPE_BOOL, .default_text = "true",            \
	 .doc = "Whether redirects are followed, at most ten."},                                   \
	{.name = "http_headers", .type = ANDIRON_TYPE_SECRETS,                                     \
	 .doc = "Headers to send with every request, each with one value or a list of values."},   \
	{.name = "proxy_url", .type = ANDIRON_TYPE_STRING,                                         \
	 .doc = "Proxy to send requests through."},                                                \
	{.name = "no_proxy", .type = ANDIRON_TYPE_STRING,                                          \
	 .doc = "Comma-separated hosts and addresses that are reached without the proxy."},        \
	{.name = "proxy_from_environment", .type = ANDIRON_TYPE_BOOL, .default_text = "false",     \
	 .doc = "Whether the proxy is taken from http_proxy, HTTPS_PROXY and NO_PROXY."},          \
	{.name = "proxy_connect_header", .type = ANDIRON_TYPE_SECRETS,                             \
	 .doc = "Headers to send to the proxy when a tunnel through it is opened."},               \
	{.name = "authorization", .type = ANDIRON_TYPE_BLOCK,                                      \
	 .doc = "Authenticate with an Authorization header of any type.",                          \
	 .block = &client_options_authorization},                                                  \
	{.name = "basic_auth", .type = ANDIRON_TYPE_BLOCK,                                         \
	 .doc = "Authenticate with user name and password.",                                       \
	 .block = &client_options_basic_auth},                                                     \
	{.name = "oauth2", .type = ANDIRON_TYPE_BLOCK,                                             \
	 .doc = "Refused: a token must be fetched by other means and named by "                    \
		"bearer_token_file.",                                                              \
	 .block = &client_options_oauth2},                                                         \
	{.name = "tls_config", .type = ANDIRON_TYPE_BLOCK,                                         \
	 .doc = "Whom to trust, and with what certificate to answer.",                             \
	 .block = &client_options_tls_config}
/* clang-format on */

/* Reports what is wrong with the rows above in `args`: more than one kind of authentication, both a
 * text and a file of one thing, no_proxy without proxy_url, oauth2. For `validate`; no side
 * effects. */
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
