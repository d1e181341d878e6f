/* SPDX-License-Identifier: Apache-2.0 */
/* Several profiles as one. Tables are put behind one another, and nothing is looked for twice: who
 * reads the result adds up equal stacks anyway.
 *
 * The result has the sample types that all parts have, in the first one's order, and shows what the
 * first one shows. Its time is the earliest; its duration is the time that the parts' windows cover
 * together, so that windows side by side (the nodes of a cluster) count once. Where a part does not
 * say when it was taken, durations are summed. A period that is not everybody's is 0. Comments are
 * all kept. */
#pragma once

#include "pprof/decode.h"

/* Takes over the n > 0 parts and frees them, also after a failure; `names` are for messages, a part
 * each. 0, -ENOMEM, -E2BIG (too many entries for one profile), or -EINVAL: a part does not have
 * what the first one shows. O(size of all). */
int profile_merge(struct profile **parts, const char *const *names, size_t n, struct profile **ret,
		  struct error *err);

/* Lets `p` show what `like` shows: 0, or -EINVAL where it has no such type, as the error says. */
int profile_show_like(struct profile *p, const char *name, const struct profile *like,
		      const char *like_name, struct error *err);

/* The processor time of a CPU profile: its "cpu" in nanoseconds, else its samples times their
 * period. False: it is of something else. O(samples). */
bool profile_cpu_time(const struct profile *p, int64_t *ret_ns);
