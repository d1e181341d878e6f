/* SPDX-License-Identifier: Apache-2.0 */
/* Children of a test, whose memory it reads. */
#pragma once

#include "runtime-kit/target-memory.h"

#include <stdint.h>
#include <sys/types.h>

#define PAGE 4096u

/* What a child says when it is ready: an address of its own, or why it has none. */
struct ready {
	uint64_t at;
	int error;
};

/* A child that runs `body`, which says that it is ready; and what it said. Before a reader is made:
 * under sanitizers a child may hang that is forked beside another thread, since it begins threads
 * of its own with a lock that the other one held. */
pid_t child_start(void (*body)(int out), struct ready *ret);
/* Kills it, and waits for its end. */
void child_end(pid_t pid);
/* In the child: says that it is ready, and waits for its end. */
void child_say(int out, const void *at, int error);
/* A body: a page between two that are not there, with the text "hello" at its start, x up to its
 * end. */
void child_have_page(int out);

struct andiron_runtime_process process_of(pid_t pid);
/* Skips the test where a child's memory may not be read. */
struct target_memory *memory_of(struct target_reader *r, pid_t pid);
