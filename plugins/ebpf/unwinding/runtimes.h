/* SPDX-License-Identifier: Apache-2.0 */
/* The language runtimes of a session (andiron/runtime.h): their programs, the code that they claim,
 * and names of their frames. A runtime that cannot be used is logged once, and then counts as not
 * requested. One thread at a time, any thread. */
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
	/* Loads the table's object, and lets walks call its program by this slot. 0; or a negative
	 * errno and the reason, and nothing has changed. */
	int (*load)(void *context, uint32_t slot, const struct andiron_runtime *table,
		    void **ret_program, struct error *err);
	/* The maps that are its own; how many. */
	uint64_t (*maps)(void *program, struct andiron_runtime_map *ret, uint64_t max);
	void (*unload)(void *context, uint32_t slot, void *program);
	/* Other processes that execute what this one has are to be reported when they do. */
	void (*watch)(void *context, const struct sampler_process_key *process);
};

/* The kernel that the session is loaded into, which outlives it (runtime-program.c). Loading: its
 * programs must not run yet. Some 10 ms a program. */
struct session;
struct runtimes_kernel runtime_programs(struct session *session);

struct runtimes;

/* Loads those requested, at most RUNTIMES_MAX. `requested` is copied. NULL when memory is short.
 * Some 10 ms a program. */
struct runtimes *runtimes_new(const struct runtimes_kernel *kernel,
			      const struct runtime_requested *requested, size_t n,
			      const struct runtimes_out *out);
/* Releases all mapped files. */
void runtimes_free(struct runtimes *t);

/* Asks for the claims on what the process has mapped, once for a set of mappings: gives the store
 * the new ones on files, and the set those on addresses. Before unwind_map, so that they are there
 * for the first walk. */
void runtimes_process(struct runtimes *t, const struct process *p, struct unwind *store);
/* Whether code of this set of the process's is a runtime's, which is asked if need be. O(mappings
 * times claimed files). */
bool runtimes_walk(struct runtimes *t, const struct process *p, const struct mapset *set,
		   struct unwind *store);
void runtimes_gone(struct runtimes *t, const struct process *p);

/* What runtimes say of the process, for people, in one line: "CPython 3.11.2; …". Its length, below
 * `max`; 0: it has none. */
size_t runtimes_describe(struct runtimes *t, const struct process *p, char *ret, size_t max);

/* The runtime whose program is in this slot; NULL: none. O(1). */
const char *runtimes_name(const struct runtimes *t, uint32_t slot);
/* The type of its frames, as OpenTelemetry names it; its name where it says none. O(1). */
const char *runtimes_frame_type(const struct runtimes *t, uint32_t slot);

/* Names what the two words of andiron_walk_push stand for: how many frames, innermost first, at
 * most ANDIRON_RUNTIME_FRAMES; 0: they have no name, or one that is no UTF-8. *ret and its texts
 * hold until the next call. */
uint32_t runtimes_resolve(struct runtimes *t, const struct process *p, const uint64_t words[2],
			  const struct andiron_runtime_frame **ret);
