/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes whose place, where a change of the graph makes a component anew.
 *
 * What owns something that only one can have (a spool's folder, a port) is given up before its
 * successor starts; what is sent to that one meanwhile waits in its queue. A sampler goes on until
 * its successor samples what it is to sample: for a moment both do, since a moment without samples
 * could not be told from one in which nothing ran. Services are there beside each other. On the
 * loop thread. */
#pragma once

#include "host/state.h"

/* `made` will take the place of `was`. Before the graph is changed. */
void succession_begin(struct instance *made, struct instance *was);
/* It will not, after all, or the one has no more to do with the other. */
void succession_end(struct instance *made);

/* Its predecessor, if that goes on until this one works; else NULL. */
struct instance *succession_overlaps(const struct instance *made);

/* Whether it has to wait with its start. */
bool succession_must_wait(struct instance *made);

/* Whether it goes on for its successor's sake. When that is over, its drain begins, with all of the
 * time for it. */
bool succession_goes_on(struct instance *was);
