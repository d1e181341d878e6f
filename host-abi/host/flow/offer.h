/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that goes to all consumers of its producer or to none, for producers that can refuse:
 * somebody waits for their answer. Where one of those behind it has no room, or has said that it is
 * full, nothing is taken and nothing counted; else its samples count as taken. */
#pragma once

#include <andiron/host.h>

struct instance;
struct offered;

/* Puts the batch into the queues of all consumers of `from`, and calls `fn` on its strand once all
 * of them have returned from it, or dropped it. 0, or the code of the first that has no room (see
 * queue_reserve); -EAGAIN where one is full; -ENOTCONN: there is no consumer. Room further behind
 * is looked at, not taken. [any], O(consumers) */
int offer_batch(struct instance *from, const struct andiron_batch *batch, andiron_call_fn fn,
		void *arg);

/* A consumer is done with it. NULL does nothing. [any] */
void offer_unref(struct offered *offer);
