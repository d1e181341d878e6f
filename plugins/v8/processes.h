/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a session, living and gone, and the functions in them by number. Those that are
 * gone are kept for whoever asks for their names, the last GONE_KEPT of them and not more than
 * GONE_BYTES. */
#pragma once

#include <andiron/runtime.h>

#include <stdbool.h>
#include <stdint.h>

#include "names.h"

#define GONE_KEPT  256u
#define GONE_BYTES (8u << 20)

struct process {
	struct process *next;
	struct andiron_runtime_process id;
	uint32_t generation; /* the program's */
	const struct v8_binary *binary;
	struct names names;
	bool gone;
};

struct numbered {
	uint64_t number; /* 0: free */
	struct process *process;
	struct names_function *function;
};

struct processes {
	struct process *first; /* the newest */
	uint32_t n, n_gone;
	struct numbered *numbers;
	uint32_t n_numbers, max_numbers;
};

void processes_fini(struct processes *p);

/* By its identity, gone or not; NULL: there is none. */
struct process *processes_find(const struct processes *p, const struct andiron_runtime_process *id);
/* The one that the program knows by this number. */
struct process *processes_by_generation(const struct processes *p, uint32_t generation);

/* A new one; NULL: no memory. */
struct process *processes_add(struct processes *p, const struct andiron_runtime_process *id,
			      uint32_t generation, const struct v8_binary *binary);
void processes_gone(struct processes *p, struct process *gone);

struct numbered *processes_number(const struct processes *p, uint64_t number);
/* 0, or -ENOMEM. */
int processes_add_number(struct processes *p, uint64_t number, struct process *process,
			 struct names_function *function);
