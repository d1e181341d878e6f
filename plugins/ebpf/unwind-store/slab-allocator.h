/* SPDX-License-Identifier: Apache-2.0 */
/* Slab allocator: memory that the walker reads. Chunks of 8-byte granularity lie in slabs of 1 MiB,
 * addressed by references (bpfwire/unwind-tables.h). Allocation is best fit over all slabs, free
 * neighbours join, and a free slab goes back. A chunk that a program may have found is retired;
 * slabs_reclaim frees it when no program can still read it.
 *
 * Few slabs are mapped at a time, since a mapped slab counts as ours. The owner keeps the sizes.
 * One thread at a time. */
#pragma once

#include "ebpf/unwind-store/range-allocator.h"
#include "bpfwire/unwind-tables.h"

#include "base/vec.h"

#include <stdint.h>

/* The largest chunk. */
#define SLABS_CHUNK_MAX (UNWIND_SLAB_BYTES - 8)

/* What a slab takes of the kernel's memory. */
#define SLABS_COST ((uint64_t)UNWIND_SLAB_BYTES + UNWIND_SLAB_SPARE)

/* Where slabs come from. Each call 0 or a negative errno. */
struct slabs_kernel {
	void *context;
	/* Makes slab number `slab`, of SLABS_COST zero bytes, for the walker to find. */
	int (*create)(void *context, uint32_t slab);
	/* The memory of a slab, to be written and read. */
	int (*map)(void *context, uint32_t slab, void **ret);
	void (*unmap)(void *context, uint32_t slab, void *p);
	/* No more to be found; not mapped. */
	void (*destroy)(void *context, uint32_t slab);
};

#define SLABS_MAPPED 16u

struct slab {
	uint8_t *p; /* NULL: not mapped */
	uint64_t touched;
	uint32_t used; /* units */
	bool there;
};

struct slabs {
	struct slabs_kernel kernel;
	struct slab all[UNWIND_SLABS_MAX];
	uint32_t max; /* the budget */
	uint32_t n, n_mapped;
	uint64_t clock; /* counts touches */
	struct ranges free;
	VEC(struct range) retired;
	uint64_t n_chunks, used_bytes, retired_bytes;
};

/* At most budget_bytes / SLABS_COST slabs, and at least one. */
void slabs_init(struct slabs *s, const struct slabs_kernel *kernel, uint64_t budget_bytes);
void slabs_fini(struct slabs *s);

/* A chunk of n bytes, 1..SLABS_CHUNK_MAX, its content undefined. -ENOSPC: there is none within the
 * budget, or the kernel gives no more slabs; -ENOMEM. O(log chunks) and perhaps a new slab. */
int slabs_alloc(struct slabs *s, size_t n, uint32_t *ret_ref);

/* The chunk's memory, mapped; NULL if that fails. Holds for the SLABS_MAPPED slabs that were asked
 * for last, until something is freed. */
void *slabs_at(struct slabs *s, uint32_t ref);
/* All of a slab that is there. */
uint8_t *slabs_base(struct slabs *s, uint32_t number);

/* Gives up a chunk that nobody else has seen. Never fails. O(log chunks). */
void slabs_free(struct slabs *s, uint32_t ref, size_t n);
/* Gives up a chunk that may be being read. Never fails. O(1). */
void slabs_retire(struct slabs *s, uint32_t ref, size_t n);
/* Frees all that was retired. */
void slabs_reclaim(struct slabs *s);

/* Unmaps all slabs, until one is needed again. */
void slabs_rest(struct slabs *s);
