/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that goes to all consumers of its producer or to none, for producers that can refuse:
 * somebody waits for their answer. Where one of those behind it has no room, or has said that it is
 * full, nothing is taken and nothing counted; else its samples count as taken. */
#pragma once

#include <andiron/host.h>

#include <stdbool.h>

struct instance;
struct offered;

/* Puts the batch into the queues of all consumers of `from`, and calls `fn` on its strand once none
 * has it any more: with 0 if all have returned from it, with -ECANCELED if it was dropped before
 * one of them got it. 0, or the code of the first that has no room (see queue_reserve); -EAGAIN
 * where one is full; -ENOTCONN: there is no consumer. Room further behind is looked at, not taken.
 * [any], O(consumers) */
int offer_batch(struct instance *from, const struct andiron_batch *batch, andiron_offer_fn fn,
		void *arg);

/* A consumer has returned from it, or will never get it (`dropped`). NULL does nothing. [any] */
void offer_unref(struct offered *offer, bool dropped);
