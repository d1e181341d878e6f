/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in fullness.h. An eighth is kept for what is on its way already. */
#include "pyroscope-push/fullness.h"

#include "pyroscope-push/spool/spool.h"

static bool is_full(const struct store *store, struct endpoint *const *endpoints, size_t n)
{
	uint64_t max = store->options.max_bytes;

	if (store->spool && spool_bytes(store->spool) > max - max / 8)
		return true;
	for (size_t i = 0; i < n; i++) {
		max = endpoint_options(endpoints[i])->queue_bytes;
		if (endpoint_counts(endpoints[i])->queued_bytes > max - max / 8)
			return true;
	}
	return false;
}

void fullness_tell(const struct store *store, struct endpoint *const *endpoints, size_t n,
		   bool *told)
{
	const struct andiron_host *host = store->context.host;
	bool full = is_full(store, endpoints, n);

	if (full == *told || !ANDIRON_HAS(host, andiron_host, full))
		return;
	*told = full;
	host->full(store->context.instance, full);
}
