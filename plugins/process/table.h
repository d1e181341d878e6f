/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that discovery knows, by pid. */
#pragma once

#include "base/index.h"
#include "base/vec.h"
#include "process/join.h"

struct process {
	struct join_member member;
	uint32_t pid;
	uint32_t position; /* in the table */
	uint64_t start_ns; /* 0: not known yet */
	uint64_t born;     /* rises with each process that came */
	uint64_t row;      /* in the output; 0: none */
	bool dirty;        /* is to be read */
};

struct table {
	VEC(struct process *) processes;
	struct index by_pid;
	uint64_t last_born;
};

/* Frees what is left. */
void table_fini(struct table *t);

struct process *table_find(const struct table *t, uint32_t pid);

/* A process that is not there yet; NULL when memory is short. */
struct process *table_add(struct table *t, uint32_t pid, uint64_t start_ns);

/* Takes it out and frees it. The last process of the table takes its position. */
void table_remove(struct table *t, struct process *p);

/* The process that a member is of. */
struct process *process_of(struct join_member *member);
