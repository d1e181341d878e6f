/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's side of the unwind tables as our own memory. What a program would read stays
 * readable under `seen` while the slab exists. What the store writes through is unmapped with it,
 * so a later use crashes. It fails on demand. */
#pragma once

#include "ebpf/unwind-store/slab-allocator.h"
#include "ebpf/unwind-store/unwind-store.h"

struct test_kernel {
	const uint8_t *seen[UNWIND_SLABS_MAX]; /* NULL: not there */
	int fds[UNWIND_SLABS_MAX];
	uint32_t n_slabs, n_slabs_most, n_mapped, n_mapped_most;
	uint32_t creates_left; /* before they fail */
	bool map_fails;
	bool quiesce_fails;
	uint64_t n_quiesces;
	/* Called when programs may run for the last time that saw what was. */
	void (*on_quiesce)(void *context);
	void *context;
	struct unwind_entry *rules;
	struct unwind_space *spaces;
	struct unwind_set *rows;
	struct unwind_chain *chains;
};

void test_kernel_init(struct test_kernel *k);
void test_kernel_fini(struct test_kernel *k); /* expects that all slabs are gone */
struct slabs_kernel test_kernel_slabs(struct test_kernel *k);
struct unwind_kernel test_kernel_all(struct test_kernel *k);

/* What a program would find. */
struct unwind_found {
	uint16_t kind;   /* UNWIND_KIND_* */
	uint16_t number; /* of the rule; 0 where there is none */
	uint16_t space;  /* its id */
	uint16_t slot;   /* of the runtime's program, if kind says so */
	struct unwind_entry entry;
};

/* By an address space's word. False: no mapping. */
bool test_kernel_walk(const struct test_kernel *k, uint64_t word, uint64_t pc,
		      struct unwind_found *ret);
/* By a process. 0; -ESRCH: no address space; -ENOENT: no mapping. */
int test_kernel_look_up(const struct test_kernel *k, const struct sampler_process_key *key,
			uint64_t pc, struct unwind_found *ret);
