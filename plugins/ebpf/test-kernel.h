/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side of the unwind tables as plain memory. It notices what a
 * real one would not: a slab used without a mapping, mapped twice, freed
 * while mapped; and it fails on demand.
 */
#ifndef EBPF_TEST_KERNEL_H
#define EBPF_TEST_KERNEL_H

#include "slabs.h"

struct test_kernel {
	uint8_t *slabs[UNWIND_SLABS_MAX];
	bool mapped[UNWIND_SLABS_MAX];
	uint32_t n_slabs, n_slabs_most, n_mapped, n_mapped_most;
	uint32_t creates_left; /* before they fail */
	bool map_fails;
	bool quiesce_fails;
	uint64_t n_quiesces;
	struct unwind_entry *rules;
	struct unwind_space *spaces;
	struct unwind_set *returns;
};

void test_kernel_init(struct test_kernel *k);
void test_kernel_fini(struct test_kernel *k); /* expects that all slabs are gone */
struct slabs_kernel test_kernel_slabs(struct test_kernel *k);
int test_kernel_quiesce(void *context);

#endif
