/* SPDX-License-Identifier: Apache-2.0 */
/* The system's resolver, asked by a process of its own (`sender` in andiron/component.h): what
 * servers of names answer is received where nothing else is. In a host that has no such processes
 * it is asked here. One name is asked for at a time, and waited for.
 *
 * A process that ends, is silent for too long, or says what none of ours would, answers nothing any
 * more: the owner starts another. One thread at a time, but for resolver_end and the references. */
#pragma once

#include "abi/log.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct resolver;

/* Starts it: 0, or a negative errno. [some milliseconds] */
int resolver_start(const struct abi_context *context, struct resolver **ret);
/* Waits until the process is confined: 0; -EPERM and a text where it says that it cannot be;
 * -EAGAIN and a text where it says that it is not yet; or what is wrong with it. */
int resolver_await(struct resolver *r, struct error *err);

/* Writes the answer for a name and a type of RFC 1035 (NS_MAXMSG bytes of room) and returns its
 * bytes; 0: there is no such record; -EAGAIN: no server says whether; -ENAMETOOLONG; or -EPIPE: no
 * process. */
int resolver_ask(struct resolver *r, const char *name, int type, uint8_t *answer);

/* What the process said instead of being ready; NULL: nothing. */
const char *resolver_refusal(const struct resolver *r);

/* Whether another has to be started, since this one has ended or files that it reads were replaced.
 * Not while a name is asked for. */
bool resolver_is_worn(struct resolver *r);
/* Ends the process. Whoever waits for it waits no longer. [any] */
void resolver_end(struct resolver *r);

/* [any] */
struct resolver *resolver_retain(struct resolver *r);
void resolver_release(struct resolver *r);

/* The process's end: `sender` of a component. */
int32_t resolver_serve(int32_t socket);
