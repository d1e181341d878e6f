/* SPDX-License-Identifier: Apache-2.0 */
/* The language runtimes of a session (andiron/runtime.h): their programs, the code that they claim,
 * and names of their frames. A program is loaded when a process needs it first. A runtime that
 * cannot be used is logged once, and then counts as not requested. One thread at a time, any
 * thread; programs are loaded beside it. */
#pragma once

#include "ebpf/processes/process.h"
#include "ebpf/unwind-store/unwind-store.h"

#include "base/error.h"

#include <andiron/bpf/walk.h>
#include <andiron/host.h>
#include <andiron/runtime.h>

#define RUNTIMES_MAX     (ANDIRON_WALK_CONTINUE - ANDIRON_WALK_RESUME - 1)
#define RUNTIME_NAME_MAX 32

/* One that the configuration names. */
struct runtime_requested {
	char name[RUNTIME_NAME_MAX + 1];
	struct andiron_extension extension; /* table NULL: nobody offers it */
};

struct runtimes_out {
	void *context;
	void (*log)(void *context, uint32_t level, const char *text); /* ANDIRON_LOG_* */
};

#define RUNTIMES_MAPS 32 /* of a program's own, at most */

/* What only the kernel can do. Borrowed, as long as the runtimes live. */
struct runtimes_kernel {
	void *context;
	/* Loads the table's object, and lets walks call its program by this slot. *program is NULL
	 * at first. 0; -EINPROGRESS: it is being loaded by another thread, so ask again with the
	 * same *program; or another negative errno and the reason, and *program is NULL again. */
	int (*load)(void *context, uint32_t slot, const struct andiron_runtime *table,
		    void **program, struct error *err);
	/* The maps that are its own; how many. */
	uint64_t (*maps)(void *program, struct andiron_runtime_map *ret, uint64_t max);
	/* Also while it is being loaded: waits for that. */
	void (*unload)(void *context, uint32_t slot, void *program);
	/* Behind the first load that succeeded: what walks with runtimes need beside, and processes
	 * that execute what is watched are reported from now on. 0; or a negative errno, where they
	 * are not. */
	int (*begin)(void *context);
	/* Walks come to code of runtimes from now on, or do so no more. */
	void (*have_walks)(void *context, bool any);
	/* Other processes that execute what this one has, if it has that generation still, are to
	 * be reported when they do. */
	void (*watch)(void *context, const struct sampler_process_key *process,
		      uint64_t generation);
};

/* The kernel that the session is loaded into, which outlives it (runtime-program.c). Some 100 ms a
 * program. */
struct session;
struct runtimes_kernel runtime_programs(struct session *session);

struct runtimes;

/* Those requested, at most RUNTIMES_MAX. `requested` is copied. NULL when memory is short. */
struct runtimes *runtimes_new(const struct runtimes_kernel *kernel,
			      const struct runtime_requested *requested, size_t n,
			      const struct runtimes_out *out);
/* Releases all mapped files. */
void runtimes_free(struct runtimes *t);

/* Loads the runtime in this slot, from 1 on, unless it is loaded. 0; -EINPROGRESS: that takes a
 * while; -EAGAIN: memory is short, and it is tried again; another negative errno: it is not to be
 * used. */
int runtimes_load(struct runtimes *t, uint32_t slot);
/* Whether any is being loaded; and begins to use those that have come to an end. */
bool runtimes_loading(const struct runtimes *t);
void runtimes_take(struct runtimes *t);

/* Asks for the claims on what the process has mapped, once for a set of mappings: gives the store
 * the new ones on files, and the set those on addresses. Before unwind_map, so that they are there
 * for the first walk. Loads the runtimes that the process is the first to need; false: they are
 * being loaded, and nothing was asked. */
bool runtimes_process(struct runtimes *t, struct process *p, struct unwind *store);

/* When the next process whose claim was too early is to be asked again, CLOCK_MONOTONIC; INT64_MAX:
 * there is none. */
int64_t runtimes_due(const struct runtimes *t);
/* Before runtimes_retry for all processes, which finds when the next one is due. */
void runtimes_begin_retries(struct runtimes *t);
/* Whether this process is due: then runtimes_process asks again. */
bool runtimes_retry(struct runtimes *t, struct process *p, int64_t now_ns);

struct runtimes_counts {
	uint64_t claims;       /* that runtimes were asked for */
	uint64_t claim_cpu_ns; /* which took the sampler's thread so much of a CPU */
	uint64_t no_room;      /* of these, that found no room */
};

struct runtimes_counts runtimes_get_counts(const struct runtimes *t);

/* Whether code of this set of the process's is a runtime's, which is asked if need be. O(mappings
 * times claimed files). */
bool runtimes_walk(struct runtimes *t, struct process *p, const struct mapset *set,
		   struct unwind *store);
void runtimes_gone(struct runtimes *t, const struct process *p);

/* What runtimes say of the process, for people, in one line: "CPython 3.11.2; …". Its length, below
 * `max`; 0: it has none. */
size_t runtimes_describe(struct runtimes *t, const struct process *p, char *ret, size_t max);

/* The runtime whose program is in this slot; NULL: none. O(1). */
const char *runtimes_name(const struct runtimes *t, uint32_t slot);
/* The type of its frames, as OpenTelemetry names it; NULL: no runtime. O(1). */
const char *runtimes_frame_type(const struct runtimes *t, uint32_t slot);

/* Names what the two words of andiron_walk_push stand for: how many frames, innermost first, at
 * most ANDIRON_RUNTIME_FRAMES. What has no name, or one that is no UTF-8, is named by the frame
 * type: "[cpython]". 0: their slot has no runtime. *ret and its texts hold until the next call. */
uint32_t runtimes_resolve(struct runtimes *t, const struct process *p, const uint64_t words[2],
			  const struct andiron_runtime_frame **ret);
