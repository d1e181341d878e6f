/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of a component that isolated.h serves. It is called by the host of its process as ever,
 * but for two functions of that host, which stand here: what it sends goes to the agent, and what
 * it asks for again comes from a copy of all that it was given.
 *
 * What it has made is told once it has what the agent has, so that those behind it do not lose the
 * targets of the process before it meanwhile. */
#pragma once

#include "host/graph/instance.h"

struct isolated_targets;

/* Whether it is about such a component. */
bool isolated_has_targets(const struct andiron_component *c);

/* NULL when memory is short. */
struct isolated_targets *isolated_targets_new(const struct andiron_component *of);
/* What is to be run. */
const struct andiron_component *isolated_targets_component(const struct isolated_targets *t);

/* Hands over what is in this memory: false where it is broken, or memory is short. */
bool isolated_targets_give(struct isolated_targets *t, struct instance *i, int fd);
/* Tells what there is to tell: each moment. */
void isolated_targets_tick(struct isolated_targets *t);

/* isolated.c: the one of the instance's process; sends a message; ends the process, since it can
 * say nothing more, for this reason. */
struct isolated_targets *isolated_targets_of(uint64_t instance);
void isolated_send(int fd, uint64_t samples);
__attribute__((noreturn)) void isolated_give_up(const char *why);
