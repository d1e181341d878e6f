/* SPDX-License-Identifier: Apache-2.0 */
/* A table of real processes: this one, and forked children, which have its generation. Their files
 * are interned by inode. */
#pragma once

#include "ebpf/processes/process.h"

#include <sys/stat.h>
#include <sys/types.h>

#define LIVE_FILES 64

struct live {
	struct andiron_extension objects;
	struct processes t;
	struct stat files[LIVE_FILES]; /* by object, from 1 on */
	int fds[LIVE_FILES];
	uint64_t n;
	uint64_t n_opened;
	bool unreadable; /* no file can be interned */
	struct sampler_process self;
};

struct live *live_new(void);
void live_free(struct live *w);

/* As the kernel side reports a process of ours. */
struct sampler_process live_record(struct live *w, pid_t pid);

/* A child that does nothing until live_end, and what is reported of it. */
struct live_child {
	struct sampler_process record;
	pid_t pid;
	int end;
};
struct live_child live_child(struct live *w);
/* It has exited, and nobody knows of it any more. */
void live_end(const struct live_child *child);

/* Code of this process is known by its file. */
void live_expect_own(const struct process *p);
