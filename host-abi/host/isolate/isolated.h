/* SPDX-License-Identifier: Apache-2.0 */
/* An isolated component: one of a plugin's that takes batches, or makes targets, run by a process
 * of its own. To the host it is an instance as any other, whose verbs pass on to that process what
 * they are asked, and to the ledger what the process says.
 *
 * The process gets one batch at a time, and its queue waits meanwhile (queue_hold). A process that
 * ends, does not come back from a call within the host's bound, or says what it may not, is killed
 * and replaced after a while. Batches that it had not settled are given to the next one again, as
 * long as they fit into what a queue may hold; but for one, which is dropped and counted, since it
 * may be what has ended it: the one that it had settled in part, else the one it was given last. A
 * batch counts as settled in the order in which they were given.
 *
 * Targets are given in the same way, and nothing of them is kept for the next process: it asks for
 * all of them. Those that the last one has made stay until the next one has made its own.
 *
 * What is in the store of a component (a spool) is carried from one process to the next, and is
 * carried in the ledger only where the first one finds it there. */
#pragma once

#include <andiron/component.h>

#include <stdbool.h>

struct instance;
struct isolated;

/* A stand-in for the component; NULL when memory is short. */
struct isolated *isolated_new(const struct andiron_component *of);
void isolated_free(struct isolated *p);

/* What the host calls, and what runs in the process. */
const struct andiron_component *isolated_stand_in(const struct isolated *p);
const struct andiron_component *isolated_original(const struct isolated *p);
