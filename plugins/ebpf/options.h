/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of pyroscope.ebpf. */
#pragma once

#include "ebpf/unwinding/runtimes.h"

#include "abi/target-list.h"
#include "base/arena.h"

#include <andiron/component.h>

extern const struct andiron_options ebpf_options;

struct ebpf_options {
	int64_t interval_ns;
	uint32_t rate_hz;
	uint32_t demangle; /* ANDIRON_DEMANGLE_* */
	bool targets_only;
	bool lazy;
	bool kernel_frames;
	bool pid_label, thread_label;
	bool comm_label, comm_frame;
	bool follow;
	uint32_t off_cpu; /* of 2^32 - 1 waits, how many are sampled */
	const struct target_label *default_target;
	size_t n_default_target;
	/* With their extensions once ebpf_options_find_runtimes was called. */
	struct runtime_requested runtimes[RUNTIMES_MAX];
	size_t n_runtimes;
	bool runtimes_installed; /* all that are */
	/* Bits of options.c: which of Alloy's switches are false, and true by the file's word. */
	uint32_t runtimes_off, runtimes_on;
	struct arena arena; /* default_target */
	/* "; NAME: effect" of each ignored argument that the file has. */
	char notes[600];
};

/* Reads what the option table let through. 0 or -ENOMEM. */
int ebpf_options_read(struct ebpf_options *o, const struct andiron_value *args);
/* The labels of what belongs to no target. 0 or -ENOMEM. */
int ebpf_options_read_labels(struct ebpf_options *o, const struct andiron_value *map);
/* Adds the installed runtimes, if none are named, and finds the extensions of all. What nobody
 * offers has none, which the engine says. [loop] [serial]. */
void ebpf_options_find_runtimes(struct ebpf_options *o, const struct andiron_host *host,
				uint64_t instance);
/* Whether both want the same runtimes, in the same order. */
bool ebpf_options_same_runtimes(const struct ebpf_options *a, const struct ebpf_options *b);
void ebpf_options_fini(struct ebpf_options *o);

/* What the types cannot say; see `validate` of component.h. */
int32_t ebpf_options_validate(const struct andiron_host *host, const struct andiron_value *args,
			      struct andiron_report *report);
