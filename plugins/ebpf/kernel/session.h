/* SPDX-License-Identifier: Apache-2.0 */
/* A session: what takes samples, and what it has counted. There are two, and a plugin is linked
 * with one: the BPF programs and maps of bpf/sampler.bpf.c with their events (session.c), or perf
 * events of the own process (plugins/self). One thread at a time.
 *
 * INVARIANTS
 *   - A buffer has one reader: session_swap returns after the last run that saw it active.
 *   - For every retired buffer: taken = samples handed over + ring_full + unfinished. */
#pragma once

#include "bpfwire/sampler.h"

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;
struct unwind_kernel;

struct session_options {
	uint32_t rate_hz;    /* 1..1000 */
	int64_t interval_ns; /* how often session_swap will be called; sizes the maps */
	bool follow;         /* keep descendants of selected processes selected */
	bool off_cpu;        /* waits can be sampled */
};

/* Called by session_drain and session_swap, with a record; `size` is what arrived. */
typedef void (*session_record_fn)(void *context, const void *record, size_t size);

/* Loads the programs; nothing is sampled before session_start. -EPERM, -ENOTSUP (kernel before 5.10
 * or without BTF) and all else with cause and remedy. 100 to 200 ms. */
int session_open(const struct session_options *options, session_record_fn fn, void *context,
		 struct session **ret, struct error *err);
void session_close(struct session *s);

/* (Re)starts the events with this rate, on the CPUs that are online. On failure it samples as
 * before. One that was stopped goes on at the rate that it had without any privilege, on the CPUs
 * that were online before. */
int session_start(struct session *s, uint32_t rate_hz, struct error *err);
/* Whether there are logs for all CPUs that are online; else the session has to be opened anew. */
bool session_has_room(const struct session *s);
/* Has snapshots taken by task work from now on (session_info.defer_snapshots), where the kernel has
 * that and lets us use it. Once. It reads the kernel's types twice, some 100 ms: behind
 * session_start samples are taken meanwhile, and their stacks copied at once.
 * SAMPLER_DEFERRED_BYTES of the kernel's memory at most. */
void session_defer_snapshots(struct session *s);
/* No program is started after this; what was counted can still be read. */
void session_stop(struct session *s);

/* What is sampled from now on, and what is kept of it. */
struct session_samples {
	uint32_t mode; /* SAMPLER_ALL, … */
	bool with_comm, with_tid, with_kernel;
	uint32_t off_cpu; /* as in struct sampler_config; 0 unless the session has `off_cpu` */
};
void session_configure(struct session *s, const struct session_samples *samples);

/* Members of the sets behind SAMPLER_PIDS and SAMPLER_CGROUPS. -E2BIG: the set is full. Removing
 * what is not there is no error. */
int session_select(struct session *s, uint32_t tgid, uint32_t root, bool follow);
/* The root of a selected process, 0 if it is not selected. */
uint32_t session_root(struct session *s, uint32_t tgid);
/* Removes those for whose root `keep` is false. 0 or a negative errno. */
int session_prune(struct session *s, bool (*keep)(void *context, uint32_t root), void *context);
int session_judge_cgroup(struct session *s, uint64_t cgroup, bool selected);
/* Forgets all judgements. */
int session_forget_cgroups(struct session *s);
/* The process will be reported again when it is sampled next. */
void session_forget_process(struct session *s, const struct sampler_process_key *key);

/* Readable when the ring is filling up, or a process record waits that a program has sent. */
int session_fd(const struct session *s);
/* Whether the ring is filling up. Where the descriptor tells only the first who asks, who begins to
 * wait for it asks this, too; else it is never true. */
bool session_must_drain(const struct session *s);
#define SESSION_RING_MAX_BYTES (16u << 20)
/* What may wait in the kernel; follows from rate and CPUs. */
size_t session_ring_bytes(const struct session *s);
/* Hands all records that are there to the callback, and at most a ring's worth; none begins behind
 * clock_mono's `until`. 0 or a negative errno. */
int session_drain(struct session *s, int64_t until);

/* Makes the other buffer active and returns the retired one (0 or 1), quiet, all its records handed
 * over; or a negative errno. Waits for an RCU grace period. O(samples). */
int session_swap(struct session *s);
/* The buffer that is active. */
uint32_t session_buffer(const struct session *s);
/* Samples that are counted by now, in either, and that no swap has handed over. */
uint64_t session_taken(const struct session *s);
/* A buffer's counters, summed over CPUs and cleared. */
struct sampler_counters session_counters(struct session *s, uint32_t buffer);

/* The memory of the unwind tables, for their store; lives as long as the session. */
const struct unwind_kernel *session_memory(const struct session *s);
/* Maps shared with the programs of language runtimes: the state of walks; and programs by slot, 1
 * to 14 theirs, -1 where a walk is one program. */
int session_walks_fd(const struct session *s);
int session_programs_fd(const struct session *s);
/* Loads what walks need that make more round trips between runtimes than a program can: they go on
 * in task work, where the kernel has it. Behind session_defer_snapshots. Some 20 ms. */
void session_load_continuation(struct session *s);
/* From now on there are such walks, or there are none: then page faults cost nothing (task-work.h).
 * Some 20 us a CPU. */
void session_continue_walks(struct session *s, bool on);
/* From now on processes that execute a watched program are reported then, not by their first sample
 * (launches.h). 0 or a negative errno. Some 10 ms. */
int session_report_launches(struct session *s);
/* Watches what this process has executed, if it has that generation still. */
void session_watch_program(struct session *s, const struct sampler_process_key *process,
			   uint64_t generation);

struct session_info {
	bool loop; /* walks are one loop, else of fewer steps, by tail calls or in one program */
	bool defer_snapshots; /* snapshots are taken by task work, in the thread itself */
	bool user_only;       /* time in the kernel is not sampled */
	uint32_t n_cpus;
	uint32_t rate_hz;
	uint64_t map_bytes;      /* as the kernel accounts them, without slabs */
	uint64_t verified_insns; /* of the programs loaded, 0 before 5.16 */
	uint64_t run_ns, runs;   /* of `sample`, while statistics were on */
	uint64_t missed;         /* runs that the kernel refused as recursive */
};

/* ~15 system calls. */
void session_info(const struct session *s, struct session_info *ret);

/* Turns the kernel's run time statistics on or off. They cost two clock reads a run, of every BPF
 * program of the machine. */
void session_measure(struct session *s, bool on);
