/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files from debuginfod servers. A child process (fetcher.c) fetches them into the cache of
 * elfutils' client, which gdb and perf share. So the process that talks to the network neither
 * parses nor samples. Nothing is fetched unless a server is configured.
 *
 * Each build id is requested once, and again ten minutes after a server did not have it. At most
 * two children run, each for at most two minutes. Of a file that is too large only the line table
 * and the symbols are fetched, where the server offers sections. */
#pragma once

#include "abi/log.h"
#include "base/str.h"
#include "base/vec.h"

#define FETCH_RUNNING_MAX 2u
#define FETCH_KNOWN_MAX   1024u
#define FETCH_RETRY_NS    (INT64_C(600) * 1000000000)
#define FETCH_DEADLINE_NS (INT64_C(120) * 1000000000)

/* Called when a file has arrived. [loop] [serial]. */
typedef void (*fetch_arrived_fn)(void *context);

struct fetched;

struct fetch {
	struct abi_context abi;
	fetch_arrived_fn arrived;
	void *context;
	char *program; /* that fetches; NULL: the one beside the plugin */
	char *urls;    /* separated by spaces; NULL: none */
	char *cache;   /* NULL: elfutils' default */
	uint64_t max_bytes, cache_bytes;
	bool lines_only;
	VEC(struct fetched *) known;
	unsigned int n_running;
	uint64_t n_arrived, n_absent, n_failed;
};

void fetch_init(struct fetch *f, const struct abi_context *abi, fetch_arrived_fn arrived,
		void *context);
void fetch_fini(struct fetch *f);

struct fetch_settings {
	struct str urls;      /* of servers, separated by spaces; empty: nothing is fetched */
	struct str cache;     /* where to keep files; empty: as elfutils' client does */
	uint64_t max_bytes;   /* of a file; of a larger one its table of lines is fetched */
	uint64_t cache_bytes; /* of all that is kept; 0: not bounded */
	bool lines_only;      /* inlined calls are not requested */
};

/* All is copied. 0 or -ENOMEM. */
int fetch_set(struct fetch *f, const struct fetch_settings *settings);

/* A descriptor of the debug file of that build id, to close; -ENOENT: it has not arrived. O(known).
 */
int fetch_open(const struct fetch *f, struct str build_id);

/* Notes that a build id's debug file would help. Any thread of the instance's turn. */
void fetch_want(struct fetch *f, struct str build_id, int64_t now_ns);

/* Starts clients for what is wanted. [serial]. */
void fetch_start(struct fetch *f);
