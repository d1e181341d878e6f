/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's types as far as our programs read them, kept by hand.
 *
 * A struct under `preserve_access_index` names only the members that are used. The loader moves
 * each access to where the running kernel's BTF has the member (CO-RE), so order and gaps do not
 * matter. All of them exist under these names from 5.10 on. What is outside of that pragma is fixed
 * by the kernel's user-space ABI.
 *
 * Include this first, then <bpf/bpf_helpers.h> and <bpf/bpf_core_read.h>. */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#define __VMLINUX_H__ /* tells libbpf's headers that the kernel's types are here */

typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef signed int __s32;
typedef unsigned int __u32;
typedef signed long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
};

enum {
	BPF_F_USER_STACK = 1 << 8,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/* Arguments of a raw tracepoint. */
struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

/* include/uapi/linux/bpf_perf_event.h: the context of a perf_event program. Each register is read
 * as a whole long; the verifier wants that. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};

typedef struct pt_regs bpf_user_pt_regs_t;

static inline bool regs_in_user_mode(const bpf_user_pt_regs_t *regs)
{
	return (regs->cs & 3) != 0;
}

/* Where the registers of the process stand while a task is in the kernel: at the top of its stack
 * of 16 KiB. For kernels without bpf_task_pt_regs, of which none pads it. */
#define KERNEL_STACK_BYTES 16384
#define USER32_CS          0x23
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};

typedef struct user_pt_regs bpf_user_pt_regs_t;

/* The kernel's begins with the former. */
struct pt_regs {
	struct user_pt_regs user;
};

#define KERNEL_STACK_BYTES 16384
#define PSR_MODE32_BIT     0x10

static inline bool regs_in_user_mode(const bpf_user_pt_regs_t *regs)
{
	return (regs->pstate & 0xf) == 0; /* EL0t */
}
#else
#error "no register layout for this architecture"
#endif

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

/* include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state;

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

#define CGROUP_SUBSYS_MAX 16

/* Helpers that a kernel may lack: bpf_core_enum_value_exists tells. */
enum bpf_func_id {
	BPF_FUNC_task_pt_regs = 175,
	BPF_FUNC_loop = 181,
};

/* Which of them a kernel has, and their values, are relocated too. */
enum cgroup_subsys_id {
	cpu_cgrp_id = 1,
	memory_cgrp_id = 4,
	pids_cgrp_id = 11,
};

struct css_set {
	struct cgroup_subsys_state *subsys[CGROUP_SUBSYS_MAX];
	struct cgroup *dfl_cgrp;
};

typedef struct {
	void *vdso;
} mm_context_t;

struct file;

struct mm_struct {
	mm_context_t context;
	unsigned long exec_vm; /* pages mapped executable */
	unsigned long start_code, end_data, start_stack;
	unsigned long arg_start;
	struct file *exe_file;
};

struct bpf_map {
	__u32 id;
};

struct super_block {
	unsigned int s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_generation;
	__s64 i_ctime_sec; /* since 6.11 */
	__u32 i_ctime_nsec;
};

struct file {
	struct inode *f_inode;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct mm_struct *vm_mm;
	struct file *vm_file;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

/* Where its local storage is. */
struct thread_struct {
#if defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#else
	unsigned long fsbase;
#endif
};

struct task_struct {
	struct thread_struct thread;
	int pid;
	int tgid;
	unsigned int flags;
	__u64 start_boottime; /* ns */
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	struct css_set *cgroups;
	void *stack;
	unsigned long sas_ss_sp, sas_ss_size; /* for handlers of signals */
	char comm[16];
};

#pragma clang attribute pop

/* Fixed by the kernel: include/uapi/linux/bpf.h, kernel/bpf/task_iter.c, include/linux/mm.h. */
struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

#define VM_WRITE    0x2
#define VM_EXEC     0x4
#define VM_MAYSHARE 0x80 /* shared with the file, writable or not */
/* What a driver may have put there. */
#define VM_PFNMAP   0x400
#define VM_IO       0x4000
#define VM_MIXEDMAP 0x10000000

#endif
