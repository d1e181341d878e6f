/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The mappings of the current process, as its thread can list them in task work (6.18 and
 * later). */
#pragma once

#include "task-work/snapshot.h"

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 address) __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym;

/* By the helper: for a pointer that a plain load gives, the verifier looks through all types of the
 * kernel four times, which takes ten milliseconds. */
static __always_inline struct file *mapping_file(struct vm_area_struct *vma)
{
	return BPF_CORE_READ(vma, vm_file);
}

/* Whether it is memory of no file or device; or the end of the program's data, where zeroed data
 * begins. */
static __always_inline bool mapping_is_plain(struct vm_area_struct *vma)
{
	__u64 end;

	if (!mapping_file(vma))
		return true;
	end = BPF_CORE_READ(vma, vm_mm, end_data);
	return !(vma->vm_flags & (VM_MAYSHARE | VM_PFNMAP | VM_IO | VM_MIXEDMAP)) &&
	       vma->vm_start < end && end <= vma->vm_end;
}

/* The end of the mapping that holds `at`; 0: none does, or it cannot be asked now. `plain`: 0 also
 * for a mapping that is not, whose reading may have effects. */
static __noinline __u64 mapping_end(__u64 at, bool plain)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	__u64 end = 0;

	if (bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), at) == 0) {
		vma = bpf_iter_task_vma_next(&it);
		if (vma && vma->vm_start <= at && !(plain && !mapping_is_plain(vma)))
			end = vma->vm_end;
	}
	bpf_iter_task_vma_destroy(&it);
	return end;
}

/* Up to where the stack that `at` is in can be of use: the end of its mapping, or of what is copied
 * of the first thread's; 0 as mapping_end. */
static __always_inline __u64 mapping_stack_end(__u64 at, bool plain)
{
	__u64 end = mapping_end(at, plain),
	      limit = snapshot_limit((struct task_struct *)bpf_get_current_task(), at);

	return end < limit ? end : limit;
}

/* Whether n bytes at an address, a word's, lie in plain memory. */
static __always_inline bool mapping_has(__u64 at, __u32 n)
{
	__u64 end = at == 0 || at % 8 != 0 ? 0 : mapping_end(at, true);

	return end != 0 && end - at >= n;
}
