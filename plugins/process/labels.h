/* SPDX-License-Identifier: Apache-2.0 */
/* A process as labels: Alloy's names for what it has, ours for the rest. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "proc/container.h"
#include "proc/process.h"
#include "process/users.h"

/* What is wanted; the members are the options of `discover_config`. */
struct label_choice {
	bool exe, cwd, commandline, container_id, uid, username, cgroup_path;
};

#define PROCESS_LABELS_MAX 12

struct process_labels {
	struct target_label labels[PROCESS_LABELS_MAX];
	size_t n;
	char container[CONTAINER_ID_MAX]; /* empty outside of containers, or if not wanted */
};

/* What proc_read must read for the choice. */
unsigned int label_choice_needs(const struct label_choice *choice);

/* Makes the labels; their texts are in the arena, valid UTF-8 whatever the process calls itself. 0
 * or -ENOMEM. */
int process_labels(const struct proc_info *info, const struct label_choice *choice,
		   const struct users *users, struct arena *arena, struct process_labels *ret);
