/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says about one process, without races: the reader holds the process's directory open,
 * and the kernel answers through it for that process only. Once it is gone every read fails, even
 * if its pid was given to another.
 *
 * `proc` is a descriptor of /proc (or of a tree that looks like it). */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

/* What to read besides identity, name and parent. */
#define PROC_EXE     1u
#define PROC_CWD     2u
#define PROC_CMDLINE 4u
#define PROC_UID     8u
#define PROC_CGROUP  16u
#define PROC_ALL     31u

/* Longer command lines, paths and cgroup texts are cut off here. */
#define PROC_TEXT_MAX 16384

/* start_ns is since boot and has the clock tick's grain (10 ms); compare it with proc_same_start. A
 * string is empty where it was not asked for, does not exist (a kernel thread has no exe) or must
 * not be read by us. The command line has its arguments separated by blanks. Strings live until the
 * next read into the same struct. */
struct proc_info {
	uint32_t pid;
	uint32_t parent;
	uint32_t uid; /* real; UINT32_MAX if unknown */
	bool kernel_thread;
	bool zombie;
	bool exiting; /* or gone so far: with cgroup v1 its cgroup is "/" then, wherever it was */
	uint64_t start_ns;
	/* Addresses; 0 or 1 where they must not be read by us. */
	uint64_t start_code, start_stack, arg_start;
	char comm[16];
	struct str exe, cwd, cmdline, cgroup;
	struct buf text; /* holds the strings */
};

#define PROC_INFO_NULL ((struct proc_info){0})

void proc_info_free(struct proc_info *info);

/* Reads the process `pid` into *ret, whose memory is reused. 0, -ENOENT or
 * -ESRCH if there is no such process (any more), -ENOMEM, -EBADMSG if its stat
 * file is not one, or another errno of the stat file. After a failure *ret
 * holds nothing of use. Some ten system calls. */
int proc_read(int proc, uint32_t pid, unsigned int what, struct proc_info *ret);

/* Whether two start times are of one process, either of them in clock ticks. */
bool proc_same_start(uint64_t a_ns, uint64_t b_ns);

struct proc_pids {
	uint32_t *p;
	size_t n;
	size_t capacity;
};

/* Appends the pids of all processes, ascending as the kernel lists them. 0 or a negative errno
 * (what was found so far stays). O(processes). */
int proc_list(int proc, struct proc_pids *pids);
