/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a writer is as good as full: what it took now would cost something older, in memory or in
 * the spool. The host is told, so that whoever can refuse profiles refuses them (andiron/host.h,
 * offer_batch). */
#pragma once

#include "pyroscope-push/endpoint/endpoint.h"
#include "pyroscope-push/spool/record-store.h"

/* Says so where it has changed; *told is what was said last. O(endpoints). */
void fullness_tell(const struct store *store, struct endpoint *const *endpoints, size_t n,
		   bool *told);
