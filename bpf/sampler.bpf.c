/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sampling programs, and the helpers that sample.h is written over. One cpu-clock event per CPU
 * runs `sample`; the tracepoints of fork and exit keep the set of selected processes, and are
 * attached only where descendants are followed.
 *
 * Where waits are sampled, `switched` runs in a thread that leaves its CPU, as an event of context
 * switches, and has `sample` walk its stack; `resumed` runs where it is back.
 *
 * A walk of up to a thousand frames is one bpf_loop, from 5.17 on; before, `sample_calls` takes
 * some steps and calls `resume_calls` for some more, as often as the kernel lets it. Either way the
 * `resume` program is also where a language runtime's program returns to.
 *
 * Runs on 5.10: no fetching atomics, loops with constant bounds, hashes that are preallocated (a
 * perf_event program may not allocate there). Counts live in arrays, whose look-up is a few
 * instructions of the program itself. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "kernel/cgroup.h"
#include "bpfwire/sampler.h"
#include "sampler/maps.h"
#include "bpfwire/unwind-tables.h"
#include "task-work/snapshot.h"
#include "unwinder/registers.h"

#define SAMPLER_INLINE static __always_inline
#define SAMPLER_GLOBAL __noinline
#define UNWIND_INLINE  SAMPLER_INLINE
#define UNWIND_GLOBAL  SAMPLER_GLOBAL

typedef __u32 unwind_env; /* number of this CPU */

/* Of a walk by tail calls: together over 127 frames, in 32 calls at most. */
#define STEPS_A_CALL 12

/* Of a walk in one program without a loop helper: as many, all known to the verifier. */
#define STEPS_ALONE (33 * STEPS_A_CALL)

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Fixed at load. */
const volatile __u32 sampler_hierarchy = 0;
const volatile __u64 sampler_ring_crowded_bytes = 0;
const volatile __u32 sampler_log_words = 1;
const volatile __u64 sampler_pc_mask = ~0ull;     /* of return addresses */
const volatile bool sampler_walks_kernel = false; /* where sampler_kernel may be set */

/* Changed at any time. */
volatile struct sampler_config sampler_config = {};
volatile struct kernel_jit sampler_jit = {};

/* Written once, `n` last. */
volatile struct kernel_tables sampler_kernel = {};

struct sampler_context {
	struct bpf_perf_event_data *event;
	struct task_struct *task;
	__u32 cpu;
};

SAMPLER_INLINE const volatile struct sampler_config *h_config(void)
{
	return &sampler_config;
}

SAMPLER_INLINE struct sampler_cpu *h_state(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

SAMPLER_INLINE __u32 h_log_words(void)
{
	return sampler_log_words;
}

SAMPLER_INLINE struct sampler_selected *h_selected_find(__u32 tgid)
{
	return bpf_map_lookup_elem(&selected, &tgid);
}

SAMPLER_INLINE __u32 *h_cgroup_find(__u64 id)
{
	return bpf_map_lookup_elem(&cgroups, &id);
}

SAMPLER_INLINE struct sampler_process_state *h_process_find(const struct sampler_process_key *key)
{
	return bpf_map_lookup_elem(&processes, key);
}

SAMPLER_INLINE long h_process_put(const struct sampler_process_key *key,
				  const struct sampler_process_state *state)
{
	return bpf_map_update_elem(&processes, key, state, BPF_ANY);
}

SAMPLER_INLINE long h_send(void *data, __u64 size, bool wake)
{
	return bpf_ringbuf_output(&ring, data, size, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

SAMPLER_INLINE bool h_ring_crowded(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > sampler_ring_crowded_bytes;
}

SAMPLER_INLINE __u64 h_now(void)
{
	return bpf_ktime_get_ns();
}

SAMPLER_INLINE long h_wait_put(const __u64 *words)
{
	__u32 thread = (__u32)bpf_get_current_pid_tgid();

	return bpf_map_update_elem(&waits, &thread, words, BPF_ANY);
}

SAMPLER_INLINE struct andiron_walk *h_walk_state(__u32 cpu)
{
	return bpf_map_lookup_elem(&walks, &cpu);
}

SAMPLER_INLINE const __u8 *h_slab(unwind_env e, __u32 i)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&slabs, &i);

	/* Else the compiler leaves the unused argument undefined, and the verifier refuses that. */
	asm volatile("" : : "r"(e));
	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

SAMPLER_INLINE struct unwind_common *common_tables(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&common, &zero);
}

SAMPLER_INLINE const struct unwind_entry *h_entry(unwind_env e, __u32 i)
{
	struct unwind_common *all = common_tables();

	return all ? &all->rules[i & UNWIND_RULES_MAX] : NULL;
}

SAMPLER_INLINE struct unwind_set *h_rows(unwind_env e, __u32 i)
{
	struct unwind_common *all = common_tables();

	return all ? &all->rows[i & (UNWIND_SETS - 1)] : NULL;
}

SAMPLER_INLINE struct unwind_chain *h_chain(unwind_env e, __u32 i)
{
	struct unwind_common *all = common_tables();

	return all ? &all->chains[i & (UNWIND_CHAINS - 1)] : NULL;
}

SAMPLER_INLINE struct unwind_space *h_space(__u32 i)
{
	struct unwind_common *all = common_tables();

	return all ? &all->spaces[i & (UNWIND_SPACES - 1)] : NULL;
}

#define h_read(e, to, n, address)                                                                  \
	(bpf_probe_read_user(to, n, (const void *)(address)) == 0 ? 0 : UNWIND_END_NO_PAGE)

SAMPLER_INLINE __u64 h_pc_mask(unwind_env e)
{
	return sampler_pc_mask;
}

#if defined(__TARGET_ARCH_x86)
SAMPLER_INLINE const volatile struct kernel_tables *h_kernel_tables(void)
{
	return &sampler_kernel;
}

SAMPLER_INLINE const volatile struct kernel_jit *h_kernel_jit(void)
{
	return &sampler_jit;
}

SAMPLER_INLINE struct kernel_set *h_kernel_rows(__u32 i)
{
	return bpf_map_lookup_elem(&kernel_rows, &i);
}

#define h_kernel_read(to, n, address) bpf_probe_read_kernel(to, n, (const void *)(address))

#include "unwinder/kernel-stack.h"

/* 0: not of this kernel, or not this stack. The registers of a switch are no frame's: the kernel
 * takes the program counter of a caller of where it stands. */
SAMPLER_INLINE __u32 walk_kernel(struct sampler_context *c, struct andiron_walk *w)
{
	const bpf_user_pt_regs_t *regs = &c->event->regs;
	const struct sampler_cpu *state = h_state(c->cpu);

	if (!sampler_walks_kernel || !state || state->pending.off_cpu != SAMPLER_OFF_CPU_NOT)
		return 0;
	return kernel_walk(c->cpu, w, regs->ip, regs->sp, regs->bp);
}
#else
SAMPLER_INLINE __u32 walk_kernel(struct sampler_context *c, struct andiron_walk *w)
{
	return 0;
}
#endif

SAMPLER_INLINE __u32 h_kernel_frames(struct sampler_context *c, struct andiron_walk *w)
{
	__u32 n = walk_kernel(c, w);
	long bytes;

	if (n != 0)
		return n;
	bytes = bpf_get_stack(c->event, w->frames, ANDIRON_WALK_KERNEL * sizeof(w->frames[0]), 0);
	return bytes > 0 ? (__u32)bytes / sizeof(w->frames[0]) : 0;
}

SAMPLER_INLINE long h_log_put(__u32 cpu, __u32 buffer, __u32 at, const __u64 *words, __u32 n)
{
	__u32 index = cpu * SAMPLER_BUFFERS + buffer;
	__u64 from = at, *log = bpf_map_lookup_elem(&logs, &index);

	if (!log || n > SAMPLER_LOG_SPARE)
		return -1;
	/* The comparison is to be of the register that is used: verifiers before 6.8 do not carry
	 * its outcome to a copy on the stack. */
	__asm__ volatile("" : "+r"(from));
	if (from > sampler_log_words)
		return -1;
	return bpf_probe_read_kernel(&log[from], n * sizeof(*words), words);
}

struct sampler_task;
SAMPLER_INLINE __u32 h_registers(struct sampler_context *c, const struct sampler_task *task,
				 struct andiron_walk *w);
SAMPLER_INLINE __u64 h_generation(struct sampler_context *c);
struct sampler_process_key;
SAMPLER_INLINE void h_parent(struct sampler_context *c, struct sampler_process_key *key);
SAMPLER_INLINE __u64 h_cgroup(struct sampler_context *c);
SAMPLER_INLINE void h_task(struct sampler_context *c, struct sampler_task *task);

SAMPLER_INLINE void h_leader_comm(struct sampler_context *c, char *comm)
{
	struct task_struct *task = c->task;
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read(comm, SAMPLER_COMM_SIZE, &leader->comm);
}

SAMPLER_INLINE void h_comm(char *comm)
{
	bpf_get_current_comm(comm, SAMPLER_COMM_SIZE);
}

#include "sampler/sample.h"

/* Tells program images of a process apart. An address of an mm_struct is reused, so its start_stack
 * counts, too. */
SAMPLER_INLINE __u64 exec_generation(__u64 mm, __u64 start_stack)
{
	return (mm ^ start_stack << 16) | 1;
}

/* Reads through the helper, one call of some ten nanoseconds a member. Plain loads are faster, but
 * for each pointer loaded so the verifier looks through all types of the kernel four times: ten
 * milliseconds at the start. */
SAMPLER_INLINE void read_task(struct task_struct *current, struct sampler_task *task)
{
	struct mm_struct *mm = BPF_CORE_READ(current, mm);

	task->key.start_ns = BPF_CORE_READ(current, group_leader, start_boottime);
	task->groups = (__u64)BPF_CORE_READ(current, cgroups);
	task->exec = mm ? exec_generation((__u64)mm, BPF_CORE_READ(mm, start_stack)) : 0;
	task->exec_vm = mm ? BPF_CORE_READ(mm, exec_vm) : 0;
	task->kthread = (BPF_CORE_READ(current, flags) & PF_KTHREAD) != 0;
}

SAMPLER_INLINE __u64 h_cgroup(struct sampler_context *c)
{
	return cgroup_of_task(c->task, sampler_hierarchy);
}

SAMPLER_INLINE void h_task(struct sampler_context *c, struct sampler_task *task)
{
	task->key.tgid = bpf_get_current_pid_tgid() >> 32;
	task->in_user = regs_in_user_mode(&c->event->regs);
	read_task(c->task, task);
}

/* 0 while exec has not finished the program image: the registers are the former one's then. */
SAMPLER_INLINE __u64 h_generation(struct sampler_context *c)
{
	return snapshot_generation(c->task);
}

SAMPLER_INLINE void h_parent(struct sampler_context *c, struct sampler_process_key *key)
{
	struct task_struct *task = c->task;
	struct task_struct *parent = BPF_CORE_READ(task, group_leader, real_parent);

	key->tgid = (__u32)BPF_CORE_READ(parent, tgid);
	key->start_ns = BPF_CORE_READ(parent, group_leader, start_boottime);
}

/* A task that is in the kernel has left them at the top of its stack there. */
SAMPLER_INLINE const void *saved_registers(struct sampler_context *c)
{
	struct task_struct *task = c->task;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (const char *)BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES -
	       bpf_core_type_size(struct pt_regs);
}

SAMPLER_INLINE __u32 h_registers(struct sampler_context *c, const struct sampler_task *task,
				 struct andiron_walk *w)
{
	bpf_user_pt_regs_t copy;

	if (task->in_user)
		return take_registers(w, &c->event->regs);
	if (bpf_probe_read_kernel(&copy, sizeof(copy), saved_registers(c)) != 0 ||
	    !regs_in_user_mode(&copy))
		return UNWIND_END_NOTHING;
	return take_registers(w, &copy);
}

/* Counts the sample, and takes care that a stack that could not be walked here can be elsewhere. */
SAMPLER_INLINE int finish(struct bpf_perf_event_data *event, __u32 cpu)
{
	struct sampler_cpu *state = h_state(cpu);
	struct andiron_walk *w = h_walk_state(cpu);

	if (!state || !w)
		return 0;
	if (state->pending.busy >= SAMPLER_BUSY_ROUND) {
		bpf_tail_call(event, &programs, ANDIRON_WALK_ROUND);
		return 0;
	}
	if (!sampler_finish(cpu))
		return 0;
	if (w->end == UNWIND_END_SWITCHES) {
		bpf_tail_call(event, &programs, ANDIRON_WALK_CONTINUE);
		return 0;
	}
	bpf_tail_call(event, &programs, ANDIRON_WALK_SNAPSHOT);
	snapshot_now(cpu);
	return 0;
}

/* Tail-calls the runtime's program if the walk has come to its code. Returns if there is none, and
 * the walk has ended. */
SAMPLER_INLINE void hand_over(struct bpf_perf_event_data *event, __u32 cpu, struct andiron_walk *w)
{
	const struct sampler_cpu *state;

	if (w->end != UNWIND_END_HAND_OVER)
		return;
	if (w->switches >= ANDIRON_WALK_SWITCHES) {
		w->end = UNWIND_END_SWITCHES;
		return;
	}
	w->switches++;
	state = h_state(cpu);
	w->last = w->switches == ANDIRON_WALK_SWITCHES &&
		  (!sampler_config.continuation ||
		   (state && state->pending.off_cpu != SAMPLER_OFF_CPU_NOT));
	w->end = 0;
	if (w->slot != ANDIRON_WALK_RESUME)
		bpf_tail_call(event, &programs, w->slot);
	w->end = UNWIND_END_RUNTIME;
}

/* A runtime's program may write frames and registers only. A state that cannot be true is
 * dropped. */
SAMPLER_INLINE void came_back(__u32 cpu)
{
	struct andiron_walk *w = h_walk_state(cpu);

	if (!w)
		return;
	if (w->n_kernel > ANDIRON_WALK_KERNEL || w->n_kernel > w->n_words ||
	    w->n_words > ANDIRON_WALK_WORDS) {
		w->n_kernel = w->n_words = 0;
		w->end = UNWIND_END_RUNTIME;
	}
	if (w->end != 0)
		w->end = w->n_words + 2 > ANDIRON_WALK_WORDS ? UNWIND_END_TRUNCATED
							     : UNWIND_END_RUNTIME;
	if (w->native > ANDIRON_WALK_REST)
		w->native = 0;
	unwind_mark(w);
}

static long step(__u32 i, __u32 *cpu)
{
	return unwind_step(*cpu) != 0;
}

/* The whole rest of the walk. */
SAMPLER_INLINE int walk_by_loop(struct bpf_perf_event_data *event, __u32 cpu)
{
	struct andiron_walk *w = h_walk_state(cpu);

	if (!w)
		return 0;
	if (w->end == 0)
		bpf_loop(ANDIRON_WALK_WORDS + 1, step, &cpu, 0);
	hand_over(event, cpu, w);
	return finish(event, cpu);
}

/* Some of it; the rest is the next program's. */
SAMPLER_INLINE int walk_by_calls(struct bpf_perf_event_data *event, __u32 cpu)
{
	struct andiron_walk *w = h_walk_state(cpu);

	if (!w)
		return 0;
	for (int i = 0; i < STEPS_A_CALL && w->end == 0; i++)
		unwind_step(cpu);
	if (w->end == 0) {
		bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
		w->end = UNWIND_END_TRUNCATED;
	}
	hand_over(event, cpu, w);
	return finish(event, cpu);
}

/* All of it, and no other program: there are no runtimes' frames. */
SAMPLER_INLINE int walk_alone(__u32 cpu)
{
	struct andiron_walk *w = h_walk_state(cpu);

	if (!w)
		return 0;
	for (int i = 0; i < STEPS_ALONE && w->end == 0; i++)
		unwind_step(cpu);
	if (w->end == 0)
		w->end = UNWIND_END_TRUNCATED;
	if (w->end == UNWIND_END_HAND_OVER)
		w->end = UNWIND_END_RUNTIME;
	if (sampler_finish(cpu))
		snapshot_now(cpu);
	return 0;
}

/* With a frame of its own: what it needs of the stack is free again while the walk goes on. */
static __noinline bool begin(struct bpf_perf_event_data *event, __u32 cpu)
{
	struct sampler_context c = {event, (struct task_struct *)bpf_get_current_task(), cpu};

	return sampler_begin(&c, cpu, (__u32)bpf_get_current_pid_tgid());
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return begin(event, cpu) ? walk_by_loop(event, cpu) : 0;
}

SEC("perf_event")
int resume(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	came_back(cpu);
	return walk_by_loop(event, cpu);
}

SEC("perf_event")
int sample_calls(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return begin(event, cpu) ? walk_by_calls(event, cpu) : 0;
}

SEC("perf_event")
int resume_calls(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	came_back(cpu);
	return walk_by_calls(event, cpu);
}

SEC("perf_event")
int sample_alone(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return begin(event, cpu) ? walk_alone(cpu) : 0;
}

/* In a thread that leaves its CPU, as a program of its own in front of the one that samples. A dead
 * thread does not come back. */
SEC("perf_event")
int switched(struct bpf_perf_event_data *event)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct sampler_cpu *state = h_state(bpf_get_smp_processor_id());
	__u32 most = sampler_config.off_cpu;

	if (!state || most == 0 || bpf_get_prandom_u32() > most ||
	    (__u32)bpf_get_current_pid_tgid() == 0 ||
	    (BPF_CORE_READ(task, flags) & PF_EXITING) != 0)
		return 0;
	state->pending.off_cpu = SAMPLER_OFF_CPU_ASKED;
	bpf_tail_call(event, &programs, ANDIRON_WALK_SAMPLE);
	state->pending.off_cpu = SAMPLER_OFF_CPU_NOT;
	return 0;
}

/* (preempted, former, next). */
SEC("raw_tp/sched_switch")
int resumed(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *next = (struct task_struct *)ctx->args[2];
	__u32 thread = (__u32)BPF_CORE_READ(next, pid);
	struct sampler_wait *wait = bpf_map_lookup_elem(&waits, &thread);

	if (!wait)
		return 0;
	if (sampler_config.off_cpu != 0)
		sampler_waited(bpf_get_smp_processor_id(), wait);
	bpf_map_delete_elem(&waits, &thread);
	return 0;
}

/* (parent, child). A new thread is in the set with its process. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 parent_tgid = (__u32)BPF_CORE_READ(parent, tgid);
	__u32 tgid = (__u32)BPF_CORE_READ(child, tgid);
	struct sampler_selected *of_parent, of_child;

	if (tgid == parent_tgid)
		return 0;
	of_parent = bpf_map_lookup_elem(&selected, &parent_tgid);
	if (!of_parent || !of_parent->follow)
		return 0;
	of_child = *of_parent;
	bpf_map_update_elem(&selected, &tgid, &of_child, BPF_ANY);
	return 0;
}

/* (task), once per thread, after it has left signal->live. */
SEC("raw_tp/sched_process_exit")
int follow_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 tgid = (__u32)BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_delete_elem(&selected, &tgid);
	return 0;
}
