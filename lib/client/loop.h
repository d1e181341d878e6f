/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client that lives on the host's loop: the glue between http_loop (http/http.h) and the
 * host's watches and timers. Used under the component's strand, like all of its state. */
#pragma once

#include "abi/log.h"
#include "http/http.h"

struct client_loop;

/* 0, -ENOMEM, or what libcurl refuses, with a text. */
int client_loop_new(const struct abi_context *context, struct client_loop **ret, struct error *err);
/* Ends all requests (their `done` is not called), watches and timers. */
void client_loop_free(struct client_loop *loop);

struct http_client *client_loop_http(struct client_loop *loop);
