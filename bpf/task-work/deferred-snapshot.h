/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deferred snapshots: taken by task work, in the sampled thread on its way back to user mode. There
 * a page that is not present can be waited for, and the process's mappings can be listed. The stack
 * is still the sampled one, since the thread has run no instruction of its own.
 *
 * From Linux 6.18 on. It is an object of its own, in two forms (task-work.h), and is reached by a
 * tail call: a kernel refuses functions that it does not have even where they are never reached.
 * Where none is loaded, or no slot is free, what is present is copied at once. */
#pragma once

#include "task-work/signal-stack.h"
#include "task-work/snapshot.h"
#include "task-work/go-stacks.h"
#include "task-work/vma-list.h"
#include "task-work/task-work.h"

#define DEFERRED_SLOTS 32
#define CTIME_NSEC     0x7fffffff /* above it the kernel keeps whether somebody has asked */

struct deferred {
	struct bpf_task_work work;
	__u64 busy;
	/* Of the copy at hand: */
	__u64 start, limit; /* addresses */
	__u64 first;        /* number of the part that begins at `start` */
	struct goroutine goroutine;
	struct alternate alternate;
	struct sampler_mapped mapped;
	struct sampler_snapshot snapshot;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DEFERRED_SLOTS);
	__type(key, __u32);
	__type(value, struct deferred);
} deferred_snapshot SEC(".maps");

_Static_assert((DEFERRED_SLOTS & (DEFERRED_SLOTS - 1)) == 0, "slots are masked");
_Static_assert(DEFERRED_SLOTS * sizeof(struct deferred) <= SAMPLER_DEFERRED_BYTES,
	       "what user space keeps for it");

__u32 deferred_next = 0;

/* A mapping as it is sent. */
static __always_inline void deferred_note(struct sampler_mapping *m, struct vm_area_struct *vma)
{
	struct file *file = mapping_file(vma);
	struct inode *inode;

	m->start = vma->vm_start;
	m->end = vma->vm_end;
	m->offset = vma->vm_pgoff << 12;
	m->inode = 0;
	m->change_ns = 0;
	m->device = 0;
	m->inode_generation = 0;
	m->flags = (__u64)BPF_CORE_READ(vma, vm_mm, context.vdso) == m->start ? SAMPLER_MAPPED_VDSO
									      : 0;
	if (vma->vm_flags & VM_WRITE)
		m->flags |= SAMPLER_MAPPED_WRITABLE;
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	m->inode = BPF_CORE_READ(inode, i_ino);
	m->device = BPF_CORE_READ(inode, i_sb, s_dev);
	m->inode_generation = BPF_CORE_READ(inode, i_generation);
	m->change_ns = BPF_CORE_READ(inode, i_ctime_sec) * 1000000000ll +
		       (BPF_CORE_READ(inode, i_ctime_nsec) & CTIME_NSEC);
}

/* Counts in the record itself: a counter in a register would be another state to the verifier each
 * time round. */
static __always_inline void deferred_send_mappings(struct deferred *l)
{
	struct sampler_mapped *record = &l->mapped;
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	__u32 n;

	record->n = 0;
	record->total = 0;
	if (bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), 0) == 0)
		while ((vma = bpf_iter_task_vma_next(&it))) {
			if (!(vma->vm_flags & VM_EXEC))
				continue;
			record->total++;
			n = record->n;
			if (n < SAMPLER_MAPPED_MAX) {
				deferred_note(&record->list[n], vma);
				record->n = n + 1;
			}
		}
	bpf_iter_task_vma_destroy(&it);
	n = record->n;
	if (n == 0 || n > SAMPLER_MAPPED_MAX)
		return;
	record->type = SAMPLER_RECORD_MAPPED;
	record->key = l->snapshot.key;
	record->generation = l->snapshot.generation;
	bpf_ringbuf_output(&ring, record, SAMPLER_MAPPED_HEAD + n * sizeof(record->list[0]),
			   BPF_RB_NO_WAKEUP);
}

/* Where the copy may end: with the mapping, since a library mostly lies above a thread's stack. */
static __always_inline __u64 deferred_limit(struct deferred *l)
{
	const struct sampler_snapshot *c = &l->snapshot;
	__u64 sp = sampler_snapshot_start(c->regs[SNAPSHOT_SP]),
	      limit = mapping_stack_end(sp, false), go;

	if (limit == 0)
		limit = snapshot_limit(bpf_get_current_task_btf(), sp);
	/* What fits into one part is hardly worth asking. */
	if (limit - sp <= SAMPLER_SNAPSHOT_BYTES)
		return limit;
	go = goroutine_limit(&l->goroutine, c, sp);
	return go < limit ? go : limit;
}

/* One piece of the part at hand; 1 at the first that is not there. */
static long deferred_copy(__u32 i, struct deferred **deferred)
{
	struct sampler_snapshot *c = &(*deferred)->snapshot;
	__u32 at = i * SAMPLER_SNAPSHOT_PIECE;
	__u64 from = c->at + at;

	if (at > SAMPLER_SNAPSHOT_BYTES - SAMPLER_SNAPSHOT_PIECE || from >= (*deferred)->limit ||
	    bpf_copy_from_user(&c->stack[at], SAMPLER_SNAPSHOT_PIECE, (const void *)from) != 0)
		return 1;
	c->n = at + SAMPLER_SNAPSHOT_PIECE;
	return 0;
}

/* The i-th part from where the copy at hand begins. */
static __always_inline void deferred_take(struct deferred *l, __u64 i)
{
	l->snapshot.part = l->first + i;
	l->snapshot.at = l->start + i * SAMPLER_SNAPSHOT_BYTES;
	l->snapshot.n = 0;
	bpf_loop(SAMPLER_SNAPSHOT_BYTES / SAMPLER_SNAPSHOT_PIECE, deferred_copy, &l, 0);
}

static __always_inline void deferred_send(struct sampler_snapshot *c, __u32 type, __u64 flags)
{
	__u32 n = c->n;

	c->type = type;
	if (n <= SAMPLER_SNAPSHOT_BYTES)
		bpf_ringbuf_output(&ring, c, SAMPLER_SNAPSHOT_HEAD + n, flags);
}

/* A part besides the snapshot's own; 1 where there are no more, or the ring is half full. */
static long deferred_more(__u32 i, struct deferred **deferred)
{
	struct sampler_snapshot *c = &(*deferred)->snapshot;

	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2)
		return 1;
	deferred_take(*deferred, i);
	if (c->n > 0)
		deferred_send(c, SAMPLER_RECORD_MORE, BPF_RB_NO_WAKEUP);
	return c->n < SAMPLER_SNAPSHOT_BYTES;
}

/* Up to n parts from `start` on, of which the first has this number. */
static __always_inline void deferred_send_parts(struct deferred *l, __u64 start, __u64 first,
						__u32 n)
{
	l->start = start;
	l->first = first;
	bpf_loop(n, deferred_more, &l, 0);
}

/* Where the stack goes on that a signal has interrupted: 0 if none was; l->limit is its end. */
static __always_inline __u64 deferred_interrupted(struct deferred *l)
{
	__u64 at = alternate_interrupted(&l->alternate, l->snapshot.regs[SNAPSHOT_SP]);

	l->limit = at ? mapping_stack_end(at, true) : 0;
	return l->limit ? at : 0;
}

/* The stack that the sampled one may go on on. */
static __always_inline void deferred_send_other(struct deferred *l)
{
	__u64 start;

	goroutine_find(&l->goroutine, &l->snapshot);
	start = l->goroutine.start;
	l->limit = l->goroutine.limit;
	if (start == 0)
		start = deferred_interrupted(l);
	if (start == 0)
		return;
	deferred_send_parts(l, sampler_snapshot_start(start),
			    (__u64)SAMPLER_COPY_OTHER * SAMPLER_SNAPSHOT_PARTS,
			    SAMPLER_SNAPSHOT_PARTS);
}

/* The sampled stack, its first part last: all have one buffer. */
static __always_inline void deferred_send_own(struct deferred *l)
{
	__u64 start = sampler_snapshot_start(l->snapshot.regs[SNAPSHOT_SP]), outer;
	__u32 n = SAMPLER_SNAPSHOT_PARTS;

	l->limit = deferred_limit(l);
	if (l->limit - start > (__u64)SAMPLER_SNAPSHOT_PARTS * SAMPLER_SNAPSHOT_BYTES) {
		outer = sampler_snapshot_start(l->limit - (__u64)SAMPLER_SNAPSHOT_OUTER *
								  SAMPLER_SNAPSHOT_BYTES);
		deferred_send_parts(l, outer, (__u64)SAMPLER_COPY_OUTER * SAMPLER_SNAPSHOT_PARTS,
				    SAMPLER_SNAPSHOT_OUTER);
		n = SAMPLER_SNAPSHOT_INNER;
	}
	deferred_send_parts(l, start + SAMPLER_SNAPSHOT_BYTES, 1, n - 1);
	l->start = start;
	l->first = 0;
	deferred_take(l, 0);
	deferred_send(&l->snapshot, SAMPLER_RECORD_SNAPSHOT, BPF_RB_FORCE_WAKEUP);
}

/* In the thread itself; may sleep. A thread that was sampled in exec runs another program by now:
 * its mappings and stack are not those of the sample. */
static int deferred_run(struct bpf_map *map, void *key, void *value)
{
	struct deferred *l = value;
	struct sampler_snapshot *c = &l->snapshot;

	if (snapshot_generation((struct task_struct *)bpf_get_current_task()) != c->generation) {
		l->busy = 0;
		return 0;
	}
	if (c->end == UNWIND_END_NEW || c->end == UNWIND_END_NO_MAPPING)
		deferred_send_mappings(l);
	deferred_send_other(l);
	deferred_send_own(l);
	l->busy = 0;
	return 0;
}

/* True if the snapshot of this CPU's sample will be sent later. */
static __always_inline bool deferred_schedule(__u32 cpu)
{
	__u32 slot = __sync_fetch_and_add(&deferred_next, 1) & (DEFERRED_SLOTS - 1);
	struct deferred *l = bpf_map_lookup_elem(&deferred_snapshot, &slot);

	if (!l || __sync_val_compare_and_swap(&l->busy, 0, 1) != 0)
		return false;
	if (snapshot_fill(&l->snapshot, cpu) == 0 &&
	    task_work_ask(&l->work, &deferred_snapshot, deferred_run) == 0)
		return true;
	l->busy = 0;
	return false;
}
