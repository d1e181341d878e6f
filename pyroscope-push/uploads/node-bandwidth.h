/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of a node: bytes a second of all uploads of all writers and agents on it. Whoever
 * uploads holds a part of one range, as long as its rate is high; what others hold is left to them.
 * All parts lie below the largest limit that anybody was given, and none overlaps another, so
 * together they never pass it.
 *
 * A part is a lock on a file that is otherwise empty: no memory is shared, nothing is written that
 * a full disk could refuse, and the kernel takes a lock back from who was killed. Each is held by a
 * descriptor of its own, since only such stand in each other's way within a process. */
#pragma once

#include "abi/log.h"
#include "pyroscope-push/options.h"

/* Where it is: the directory that the service and the pod have for what is of this boot. */
#define UPLOAD_SHARE_DIRECTORY "/run/andiron"

struct upload_share {
	struct abi_context context;
	bool told; /* that there is no budget of the node's */
};

/* What one upload may take a second, so that all at once keep the limit; 0: any. */
int64_t upload_share_rate(const struct uploads_options *o);

/* Takes a part for one upload: false when others have all. *ret_part is -1 where none is needed, or
 * where there can be no such file, which is logged once: then each writer keeps the limit for
 * itself, by how many it runs. Never waits; limit / rate system calls at most. */
bool upload_share_take(struct upload_share *s, const struct uploads_options *o, int *ret_part);
/* Gives it back; *part is -1 then, and may be before. */
void upload_share_give(int *part);
