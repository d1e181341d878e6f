/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that an instance has asked for: timers, watched descriptors, posted functions, work on a
 * worker. Each becomes a job of its strand when its time has come; while one is waiting there,
 * further ticks and events are merged into it. Contracts as in andiron/host.h. */
#pragma once

#include "host/graph/instance.h"

int calls_timer_set(struct instance *i, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
		    void *arg, uint64_t *ret_timer);
void calls_timer_cancel(struct instance *i, uint64_t timer);

int calls_watch_add(struct instance *i, int fd, uint32_t events, andiron_watch_fn fn, void *arg,
		    uint64_t *ret_watch);
int calls_watch_modify(struct instance *i, uint64_t watch, uint32_t events);
void calls_watch_remove(struct instance *i, uint64_t watch);

int calls_post(struct instance *i, andiron_call_fn fn, void *arg);
int calls_work(struct instance *i, andiron_call_fn run, andiron_call_fn done, void *arg);

int calls_spawn(struct instance *i, const struct andiron_spawn *spawn, andiron_spawn_fn fn,
		void *arg);

/* Removes the timers and watches that a component left behind when it stopped, and kills its
 * children. [loop] */
void calls_clear(struct instance *i);
/* For that. [loop] */
void calls_kill_children(struct instance *i);
