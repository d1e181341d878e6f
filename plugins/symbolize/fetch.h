/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files from debuginfod servers. They are fetched by elfutils' own client, debuginfod-find,
 * as a child process: so its cache on disk is the one that gdb and perf use too, and who talks to
 * the network neither parses nor samples. Nothing is fetched unless a server is configured.
 *
 * Each build id is asked for once; a server that does not have it is asked again after ten minutes.
 * At most two clients run, each at most two minutes and for files of at most 512 MiB.
 */
#ifndef SYMBOLIZE_FETCH_H
#define SYMBOLIZE_FETCH_H

#include "abi/log.h"
#include "base/str.h"
#include "base/vec.h"

#define FETCH_RUNNING_MAX 2u
#define FETCH_KNOWN_MAX 1024u
#define FETCH_RETRY_NS (INT64_C(600) * 1000000000)
#define FETCH_DEADLINE_NS (INT64_C(120) * 1000000000)
#define FETCH_MAX_BYTES (UINT64_C(512) << 20)

/* Called when a file has arrived. [loop] [serial]. */
typedef void (*fetch_arrived_fn)(void *context);

struct fetched;

struct fetch {
	struct abi_context abi;
	fetch_arrived_fn arrived;
	void *context;
	char *urls;  /* separated by spaces; NULL: none */
	char *cache; /* NULL: elfutils' default */
	VEC(struct fetched *) known;
	unsigned int n_running;
	uint64_t n_arrived, n_absent, n_failed;
};

void fetch_init(struct fetch *f, const struct abi_context *abi, fetch_arrived_fn arrived,
		void *context);
void fetch_fini(struct fetch *f);

/* Servers, separated by spaces, and where to keep files; both copied, either may be empty. 0 or
 * -ENOMEM. */
int fetch_set(struct fetch *f, struct str urls, struct str cache);

/* A descriptor of the debug file of that build id, to close; -ENOENT: it has
 * not arrived. O(known). */
int fetch_open(const struct fetch *f, struct str build_id);

/* Notes that a build id's debug file would help. Any thread of the instance's turn. */
void fetch_want(struct fetch *f, struct str build_id, int64_t now_ns);

/* Starts clients for what is wanted. [serial]. */
void fetch_start(struct fetch *f);

#endif
