/* SPDX-License-Identifier: Apache-2.0 */
/* See metric-choice.h. */
#include "agents/kit/metric-choice.h"

static const char *const usual[] = {
	"andiron_component_healthy", "andiron_ebpf_bpf_ns_per_sample",
	"andiron_ebpf_map_bytes",    "andiron_ebpf_processes",
	"andiron_ebpf_unwind_bytes", "andiron_ledger_balanced",
	"andiron_queue_bytes",       "andiron_samples_*",
};

bool metric_fits(struct str name, struct str pattern)
{
	if (str_ends(pattern, STR("*")))
		return str_starts(name, str_first(pattern, pattern.n - 1));
	return str_eq(name, pattern);
}

bool metric_is_usual(struct str name)
{
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (metric_fits(name, str_of(usual[i])))
			return true;
	return false;
}
