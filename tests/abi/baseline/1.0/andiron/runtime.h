/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.runtime.NAME/1: frames of a language runtime whose stacks are not the machine's (an
 * interpreter, a compiler with frames of its own). A SERVICE offers it. The sampler uses those that
 * are installed, or those that its configuration names (`wants` of component.h).
 *
 * The runtime brings a BPF program and says which code is its own. Where a walk comes to that code,
 * the sampler calls the program (andiron/bpf/walk.h). It writes its frames down as pairs of words
 * and returns at the native frame behind them. When the interval is read, the pairs are given names
 * here.
 *
 * Where no process runs the language the program is not loaded: `recognizes` says by a file whether
 * it is needed. From the first yes on the session lasts as long as the sampler.
 *
 * A runtime that is absent, of another version, refused by the kernel or mistaken costs its own
 * frames: its code is walked as any other's, or the stack ends in "[runtime]". Nothing else is
 * lost.
 *
 * Every function is [any]: threads change from call to call. No function of a session is called
 * beside another of the same session, so a session without threads of its own needs no lock.
 * Sessions of several samplers run at once, and `recognizes` may run beside all others. */
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
#define ANDIRON_RUNTIME_FRAMES 64u /* of one pair of words, at most */

/* A process, by its pid in the sampler's namespace and its start since boot. `exec_generation` is
 * another one after each exec; a child that was only forked has its parent's. Frozen. */
struct andiron_runtime_process {
	uint32_t pid;
	uint32_t reserved;
	uint64_t start_ns;
	uint64_t exec_generation;
};

/* An executable mapping of it: [start, limit) in the process, the file's own address (as its
 * symbols count) of the byte at `start`, and the file as an object of andiron.objects/1, held
 * during the call. `object` 0: it has no file (a compiler's memory), and `address` equals `start`.
 * Frozen. */
struct andiron_runtime_mapping {
	uint64_t start;
	uint64_t limit;
	uint64_t address;
	uint64_t object;
};

/* Code that the program walks: [from, to) of an object's own addresses; with `object` 0 of the
 * process's addresses, which need not be mapped yet. Frozen. */
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

/* The frame is no code. `function` is a text for people: what the runtime lacked, as
 * "[CPython 3.15.0: not known, no field frame_size]". */
#define ANDIRON_RUNTIME_MARKER 1u

/* Nor is this one, but nothing was lacking: `function` says how the frames on both sides of it
 * belong together, as "[awaited by a task]". */
#define ANDIRON_RUNTIME_NOTE 2u

/* What a frame is called. `file` may be empty; `line`, the one being executed, and `first_line`,
 * where the function begins, may be 0. Texts are the runtime's and hold until the next call of the
 * session. They are untrusted: a function whose text is empty or no UTF-8 is named after the
 * runtime, and such a file is left out. Frozen. */
struct andiron_runtime_frame {
	uint32_t size; /* stored by the caller, in each of an array */
	uint32_t line;
	uint32_t first_line;
	uint32_t flags; /* ANDIRON_RUNTIME_MARKER or NOTE */
	struct andiron_str function;
	struct andiron_str file;
};

struct andiron_runtime {
	uint32_t size;
	uint32_t walk_version; /* the ANDIRON_WALK_VERSION that the program was built with */

	/* A BPF object file for libbpf, and the name of its program that is called. All programs in
	 * it are loaded as perf_event programs. Its maps `walks` and `programs` become the
	 * sampler's; all others are its own. Lives as long as the table. */
	const void *object;
	uint64_t object_bytes;
	const char *program;

	/* OpenTelemetry's profile.frame.type of its frames: "cpython", "jvm", "v8js". Lower-case
	 * letters and digits, at most 32. */
	const char *frame_type;

	/* Whether an object (andiron.objects/1) is or holds this runtime: an interpreter, a
	 * library, a program with it inside. By the file alone, in any version, also one whose
	 * frames cannot be shown. Asked for each file with code when a process has mapped it,
	 * before `open` and without a session, once while the file is in use. 1 or 0; or a negative
	 * errno: the file could not be read, and is asked for again with the next process that maps
	 * it. The answer is usually no: some 10 µs where the file's dynamic symbols tell, at most
	 * 5 ms where more of it has to be read. */
	int32_t (*recognizes)(void *self, uint64_t object);

	/* A process has mapped an object that `recognizes` knows, for the first time, and the
	 * program is loaded: a session begins, with the maps that are its own, which last as long
	 * as it does. *ret_session is the first argument of all that follows. A negative
	 * errno: the program is not used. */
	int32_t (*open)(void *self, const struct andiron_runtime_map *maps, uint64_t n_maps,
			void **ret_session);
	/* No program runs any more, and no call follows. */
	void (*close)(void *session);

	/* A process that maps an object which `recognizes` knows has begun, was sampled, or its
	 * executable mappings have changed: what of its code is the runtime's, into
	 * ret[0 … max), max being at least ANDIRON_RUNTIME_CLAIMS.
	 *
	 * The ranges of an object hold wherever it is mapped, and replace what was claimed of that
	 * object before; none: as before. Those of the process's addresses hold for this process
	 * alone (and children that are only forked), win over what is mapped there, and replace all
	 * of them; none: it has none. The number of ranges, 0 for a process that is of no interest,
	 * or a negative errno, which counts as 0. After -EAGAIN (the runtime has not yet set up
	 * what is needed) and -ENOMEM (memory is short, or a map is full; the log says so) it is
	 * asked again though nothing is mapped anew: 1, 2, 4 … 256 ms after an exec that was
	 * expected, then ten times at intervals of a second, then ten times at intervals of a
	 * minute.
	 *
	 * The same process (`pid` and `start_ns`) may have executed another program since the last
	 * call: then `exec_generation` differs, and nothing that was known of its memory holds.
	 *
	 * What is kept by object is bounded by the runtime itself, which does not learn that a file
	 * is gone: what was used last is kept.
	 *
	 * Before it returns the program's maps must say what the program needs. May read files and
	 * the process's memory. The sampler waits, and so do short-lived processes: at most 2 ms
	 * where all objects are known, 50 ms of CPU for a new one. It may be called while the
	 * dynamic linker still maps, or before the runtime has set up its memory. */
	int32_t (*claim)(void *session, const struct andiron_runtime_process *process,
			 const struct andiron_runtime_mapping *mappings, uint64_t n_mappings,
			 struct andiron_runtime_claim *ret, uint64_t max);

	/* The process is gone, or was not sampled for some intervals: `claim` comes first if it is
	 * sampled again. For each that `claim` was called for, under any generation. O(1). */
	void (*gone)(void *session, const struct andiron_runtime_process *process);

	/* Names what a process's pair of words stands for, of which `what` has its low 56 bits: one
	 * frame, or several where functions were inlined, innermost first, into ret[0 … max), max
	 * being at least ANDIRON_RUNTIME_FRAMES. The process may have gone by then. The number of
	 * frames; or a negative errno, and the frame is named after the runtime. Called once for
	 * each pair of each different stack of an interval: some 100 ns a frame. */
	int32_t (*resolve)(void *session, const struct andiron_runtime_process *process,
			   uint64_t what, uint64_t where, struct andiron_runtime_frame *ret,
			   uint64_t max);

	/* What of this runtime the process has, for people, in one line of UTF-8 without a NUL:
	 * "CPython 3.11.2"; "CPython 3.15.0: not known, …" with what was not found. Its length, at
	 * most `max`, which is at least 128; 0: nothing, or a negative errno, which counts as 0.
	 * Between the first `claim` for the process and `gone`. O(1). */
	int32_t (*describe)(void *session, const struct andiron_runtime_process *process, char *ret,
			    uint64_t max);
};

#ifdef __cplusplus
}
#endif

#endif
