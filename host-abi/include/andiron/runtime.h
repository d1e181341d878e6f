/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron.runtime.NAME/1: frames of a language runtime whose stacks are not the machine's (an
 * interpreter, a compiler with frames of its own). A SERVICE offers it; the sampler asks for those
 * that its configuration names, and so does the host for all that are installed (`wants` of
 * component.h).
 *
 * The runtime brings a BPF program and says which code is its own. Where a walk comes to that code,
 * the sampler calls the program (andiron/bpf/walk.h), which writes its frames down as pairs of
 * words and returns at the native frame behind them. When the interval is read, the pairs are given
 * names here.
 *
 * A runtime that is absent, of another version, refused by the kernel or mistaken costs its own
 * frames: its code is walked as any other's, or the stack ends in "[runtime]". Nothing else is
 * lost.
 *
 * Every function is [worker], and called by one thread at a time for a session; sessions are
 * independent of each other.
 */
#ifndef ANDIRON_RUNTIME_H
#define ANDIRON_RUNTIME_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NAME: lower-case letters, digits and '-', at most 32. */
#define ANDIRON_RUNTIME_PREFIX "andiron.runtime."
#define ANDIRON_RUNTIME_SUFFIX "/1"

#define ANDIRON_RUNTIME_CLAIMS 64u /* of one process, at most */

/* A process, by its pid in the sampler's namespace and its start since boot. `exec_generation` is
 * another one after each exec. Frozen. */
struct andiron_runtime_process {
	uint32_t pid;
	uint32_t reserved;
	uint64_t start_ns;
	uint64_t exec_generation;
};

/* Code that it has mapped: [start, limit) in the process, the file's own address (as its symbols
 * count) of the byte at `start`, and the file as an object of andiron.objects/1, held during the
 * call. Frozen. */
struct andiron_runtime_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t address;
	uint64_t object;
};

/* Code that the program walks: [from, to) of an object's own addresses. Frozen. */
struct andiron_runtime_claim {
	uint64_t object;
	uint64_t from;
	uint64_t to;
};

/* A map of the program's own, loaded; the descriptor is the sampler's and open until `close`.
 * Frozen. */
struct andiron_runtime_map {
	const char *name;
	int32_t fd;
	uint32_t reserved;
};

/* What a frame is called. `file` and `line` may be empty and 0. Texts are the runtime's and hold
 * until the next call of the session; they are untrusted and need not be UTF-8. */
struct andiron_runtime_frame {
	uint32_t size; /* stored by the caller */
	uint32_t line;
	struct andiron_str function;
	struct andiron_str file;
};

struct andiron_runtime {
	uint32_t size;
	uint32_t walk_version; /* the ANDIRON_WALK_VERSION that the program was built with */

	/*
	 * A BPF object file for libbpf, and the name of its program that is called. All programs in
	 * it are loaded as perf_event programs. Its maps `walks` and `programs` become the
	 * sampler's; all others are its own. Lives as long as the table.
	 */
	const void *object;
	uint64_t object_bytes;
	const char *program;

	/*
	 * The program is loaded: a session begins, with the maps that are its own, which last as
	 * long as it does. *ret_session is the first argument of all that follows. A negative
	 * errno: the program is not used.
	 */
	int32_t (*open)(void *self, const struct andiron_runtime_map *maps, uint64_t n_maps,
			void **ret_session);
	/* No program runs any more, and no call follows. */
	void (*close)(void *session);

	/*
	 * A process has been sampled, or has mapped other code: what of its code is the
	 * runtime's, into ret[0 … max), max being at least ANDIRON_RUNTIME_CLAIMS. The ranges of an
	 * object hold wherever it is mapped, and replace what was claimed of that object before;
	 * none: as before. The number of ranges, 0 for a process that is of no interest, or a
	 * negative errno, which counts as 0. Before it returns the program's maps must say what the
	 * program needs. May read files; the sampler waits, so remember what an object holds.
	 */
	int32_t (*claim)(void *session, const struct andiron_runtime_process *process,
			 const struct andiron_runtime_mapping *mappings, uint64_t n_mappings,
			 struct andiron_runtime_claim *ret, uint64_t max);

	/* The process has gone. For each that `claim` was called for. O(1). */
	void (*gone)(void *session, const struct andiron_runtime_process *process);

	/*
	 * Names a frame of a process by its two words, of which `what` has its low 56 bits. The
	 * process may have gone by then. 0; or a negative errno, and the frame is named after the
	 * runtime. Called once for each frame of each different stack of an interval: some 100 ns.
	 */
	int32_t (*resolve)(void *session, const struct andiron_runtime_process *process,
			   uint64_t what, uint64_t where, struct andiron_runtime_frame *ret);
};

#ifdef __cplusplus
}
#endif

#endif
