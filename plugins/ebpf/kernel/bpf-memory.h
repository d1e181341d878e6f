/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a session's BPF maps, for the store of unwind tables. Maps are mapped memory. Slabs are
 * BPF arrays, made on demand. */
#pragma once

#include "ebpf/unwind-store/unwind-store.h"

struct bpf_memory_maps {
	int slabs, common; /* descriptors, borrowed */
	int (*quiesce)(void *context);
	void *context;
};

struct bpf_memory {
	struct bpf_memory_maps maps;
	struct unwind_common *common;
	struct unwind_kernel kernel; /* for unwind_new */
	int slabs[UNWIND_SLABS_MAX]; /* descriptors, -1: none */
};

/* Maps the values of an array into *ret; munmap undoes it. 0 or a negative errno. */
int bpf_memory_map(int fd, size_t bytes, void *ret);

/* 0 or a negative errno, nothing open or mapped then. *m must stay where it is. */
int bpf_memory_init(struct bpf_memory *m, const struct bpf_memory_maps *maps);
/* The store is gone by then. Nothing happens to what is zero. */
void bpf_memory_fini(struct bpf_memory *m);
