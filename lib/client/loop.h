/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client that lives on the host's loop: the glue between http_loop (http/http.h) and the
 * host's watches and timers. Used under the component's strand, like all of its state. */
#pragma once

#include "abi/log.h"
#include "http/http.h"

struct andiron_metric_sink;
struct client_loop;

/* 0, -ENOMEM, or what libcurl refuses, with a text. */
int client_loop_new(const struct abi_context *context, struct client_loop **ret, struct error *err);

/* The same with requests made by a process of their own, which holds no privilege and reaches
 * nothing but servers (http/sender/sender.h): for components whose `sender` is client_serve. Blocks
 * until the process is confined, so it is for `start`; in the process that this is where the host
 * has no worker program. What http_sender_new says: -EPERM, with a text, where it cannot be
 * confined. */
int client_loop_start(const struct abi_context *context, struct client_loop **ret,
		      struct error *err);

/* The `sender` of such a component. */
int32_t client_serve(int32_t socket);

/* Ends all requests (their `done` is not called), watches and timers. */
void client_loop_free(struct client_loop *loop);

struct http_client *client_loop_http(struct client_loop *loop);

/* Adds what there is to say of its process, if it has one: how often it was started again. For
 * `metrics`. `loop` may be NULL. */
void client_loop_metrics(const struct client_loop *loop, const struct andiron_metric_sink *sink);
