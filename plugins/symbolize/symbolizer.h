/* SPDX-License-Identifier: Apache-2.0 */
/* The engine names the unsymbolized frames of a batch. It leaves frames with lines, frames that
 * were tried before, markers and runtime frames as they are. Targets with the label __symbolize__ =
 * "false" opt out: addresses that only they have are not looked up, their files are not opened.
 * Kernel frames are named nevertheless. Used by one thread at a time. */
#pragma once

#include "symbolize/cache.h"
#include "symbolize/names/kernel-names.h"
#include "symbolize/parser/parser.h"

#include <andiron/batch.h>

/* Why there was no name. */
#define WHY_NO_OBJECT   0 /* no file behind the mapping: JIT, unknown */
#define WHY_UNAVAILABLE 1 /* the file could not be opened or read */
#define WHY_BROKEN      2 /* the file is set aside as a whole */
#define WHY_NO_SYMBOL   3 /* no extent covers the address */
#define WHY_KERNEL      4 /* the kernel's list cannot be read */
#define WHY_OPTED_OUT   5 /* its target opted out */
#define WHY_COUNT       6

/* Why a file, or a part of it, is set aside. */
#define ASIDE_BROKEN 0 /* it does not parse */
#define ASIDE_CRASH  1 /* the parser died over it twice */
#define ASIDE_TIME   2 /* it takes more than file_steps: its debug information is not read again */
#define ASIDE_MEMORY 3 /* it takes more memory than file_bytes: what does not fit is left out */
#define ASIDE_COUNT  4

struct symbolizer_totals {
	uint64_t resolved[FROM_COUNT];
	uint64_t unresolved[WHY_COUNT];
	uint64_t lines;                  /* frames that got a line, */
	uint64_t inlined;                /* and inlined calls that became frames */
	uint64_t fetched;                /* debug files from elsewhere that came into use */
	uint64_t set_aside[ASIDE_COUNT]; /* files; once each while they are remembered */
	uint64_t crashes;                /* of the parser, where it is a process of its own */
};

/* Debug files from elsewhere: `open` gives a descriptor of the one of a build id, or -ENOENT;
 * `want` says that it would help. Absent where nobody fetches. */
struct symbolizer_source {
	int (*open)(void *self, struct str build_id);
	void (*want)(void *self, struct str build_id, int64_t now_ns);
	void *self;
};

struct symbolizer_settings {
	size_t cache_bytes;
	size_t file_bytes;   /* of memory for one file's tables, at most cache_bytes, */
	uint64_t file_steps; /* and entries and line instructions of it, for a batch */
	bool lines, inlines;
};

/* A file of which all (ASIDE_BROKEN, ASIDE_CRASH; ASIDE_MEMORY too where a table alone is too
 * large) or a part was set aside just now; for the log. */
typedef void (*symbolizer_aside_fn)(void *context, const struct andiron_str *path, bool all,
				    const struct error *why);

struct symbolizer {
	struct cache cache;
	struct kernel kernel;
	struct symbolizer_totals totals;
	struct symbolizer_settings settings;
	struct parser_port port;
	struct symbolizer_source source; /* functions NULL: none */
	struct parser parser;            /* used where the port is not another's */
	int vdso;                        /* its file; -1: none */
	symbolizer_aside_fn aside;
	void *context;
};

/* `objects` is andiron.objects/1; `aside` may be NULL. Files are parsed here
 * until s->port is set to somebody else. */
void symbolizer_init(struct symbolizer *s, const struct andiron_extension *objects,
		     const struct symbolizer_settings *settings, symbolizer_aside_fn aside,
		     void *context);
void symbolizer_fini(struct symbolizer *s);

/* New settings; what is remembered is forgotten where they change what is asked for. */
void symbolizer_set(struct symbolizer *s, const struct symbolizer_settings *settings);

/* A batch derived from `batch` with names, with one reference, or NULL in
 * *ret where it has no frame to name. 0, -ENOMEM, -E2BIG or -EINVAL. Needs
 * DEMANGLE_STACK_BYTES of stack. O(locations · log symbols), and the files
 * that are seen for the first time. */
int symbolizer_run(struct symbolizer *s, const struct andiron_batch *batch, int64_t now_ns,
		   const struct andiron_batch **ret);

/* The same on a thread that has this stack, since a callback of the ABI may use 8 KiB. The thread
 * blocks all signals; returns when it has ended. -EAGAIN: no thread could be started. */
int symbolizer_run_on_thread(struct symbolizer *s, const struct andiron_batch *batch,
			     int64_t now_ns, const struct andiron_batch **ret);
