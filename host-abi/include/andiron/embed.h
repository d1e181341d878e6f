/* SPDX-License-Identifier: Apache-2.0 */
/* libandiron: the host as a library, for any process that loads it.
 *
 *     struct andiron_embed how = {.size = sizeof(how)};
 *     struct andiron *a;
 *     char *why;
 *
 *     if (andiron_open(&how, &a, &why) < 0 ||
 *         andiron_on_profiles(a, "mine", ANDIRON_FORM_PPROF, take, NULL, &why) < 0 ||
 *         andiron_load_file(a, "agent.alloy", &why) < 0 || andiron_start(a, &why) < 0)
 *             …
 *
 * with `embed.profiles "mine" {}` and `forward_to = [embed.profiles.mine.receiver]` in the
 * configuration. Link with `pkg-config --libs andiron`, or load libandiron.so.1 with dlopen.
 *
 * WHAT IT DOES TO A PROCESS
 * An open instance has one thread of its own, a running one `workers` more; they block all signals.
 * A sampler, and whatever else is configured, has descriptors, mappings and children (posix_spawn,
 * waited for by pidfd). After andiron_close the threads, descriptors and mappings are gone, apart
 * from the code of plugins, which stays loaded as all code of plugins does. Nothing is printed. No
 * signal handler or mask, environment, locale, directory, exit or atfork handler is changed.
 *
 * FOR ALL FUNCTIONS
 * An instance may be used by any thread, and a process may have several. Results are 0 or a
 * negative errno. Text that is handed out (`ret_text`, which may be NULL) is the caller's, who
 * gives it back by andiron_text_free. It is NULL where there is nothing to say, and where memory is
 * short. -EDEADLK: called within a callback that it would wait for. -ECHILD: the process has forked
 * since andiron_open: the child has no use of the instance, and opens one of its own. A broken
 * invariant of our own ends the process with a line on standard error. */
#ifndef ANDIRON_EMBED_H
#define ANDIRON_EMBED_H

#include <andiron/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One profiler: a configuration and what runs by it. */
struct andiron;

/* How it is to be. Whatever is 0 means the default. */
struct andiron_embed {
	uint32_t size;
	uint32_t log_level;      /* least level that `log` gets: ANDIRON_LOG_* */
	const char *plugin_dirs; /* absolute, apart by ":"; NULL: where plugins are installed */
	/* The program that parses untrusted files in a sandbox: an absolute path of `andiron`.
	 * NULL: the one installed. "": none, and functions that only a file knows have no names. */
	const char *worker;
	uint64_t queue_bytes; /* bound of each consumer's queue; 64 MiB */
	uint32_t workers;     /* threads for what computes or blocks; 2 */
	uint32_t reserved;    /* 0 */
	void *context;        /* of `log` */
	/* A line of the log, without time; both texts are borrowed. NULL: there is no log. [any] */
	void (*log)(void *context, uint32_t level, const char *component, const char *line);
	/* Libraries that the program has in itself and exports, and whose functions may answer
	 * plugins' calls: "zstd", "protobuf-c", apart by a space; for all of the process. NULL:
	 * none, and such a plugin is refused. */
	const char *answers;
};

/* A finished profile: the stacks of one interval, with names. Borrowed; a consumer that keeps it
 * past the call retains it, and releases it before andiron_close. */
#define ANDIRON_FORM_BATCH 1u /* `batch` (batch.h): no copy is made */
#define ANDIRON_FORM_PPROF 2u /* `bytes`: pprof, gzip, or as somebody else has encoded it */

struct andiron_profile {
	uint32_t size;
	uint32_t form;
	const char *name; /* under which the consumer was registered */
	const struct andiron_batch *batch;
	const void *bytes;
	uint64_t n_bytes;
	uint64_t samples;
	int64_t start_ns; /* CLOCK_REALTIME */
	int64_t end_ns;
	void *owner;
	void (*retain)(void *owner); /* [any], O(1) */
	void (*release)(void *owner);
};

/* 0: delivered. Negative: dropped, which the ledger counts as "refused". One call at a time for one
 * consumer. What waits for it is bounded by queue_bytes, and what does not fit is dropped and
 * counted, so a slow consumer costs profiles and never memory. [worker]: may block. */
typedef int32_t (*andiron_profile_fn)(void *context, const struct andiron_profile *profile);

/* An update of the targets that a consumer refers to (target.h); borrowed, may be retained. [loop]:
 * must not block. */
typedef void (*andiron_targets_fn)(void *context, const struct andiron_targets *update);

/* The version of the library, "0.1.0"; a constant. */
ANDIRON_EXPORT const char *andiron_version(void);

/* Makes an instance. Reads no file. `how` is copied, strings too. */
ANDIRON_EXPORT int32_t andiron_open(const struct andiron_embed *how, struct andiron **ret,
				    char **ret_text);

/* Stops at once what still runs, and frees everything; waits for callbacks. 0; -EDEADLK or -ECHILD
 * as above, and then nothing is freed. NULL is accepted. */
ANDIRON_EXPORT int32_t andiron_close(struct andiron *a);

/* Adds components of the process's own (plugin.h): its discovery in, its exporter out. The table
 * lives as long as the process. Before the first configuration, else -EBUSY. -EINVAL and a text:
 * the table breaks the ABI. */
ANDIRON_EXPORT int32_t andiron_provide(struct andiron *a, const struct andiron_plugin *plugin,
				       char **ret_text);

/* Registers who takes profiles as `embed.profiles "NAME"`, whose receiver is
 * embed.profiles.NAME.receiver, or targets as `embed.targets "NAME" { targets = … }`. NAME is an
 * identifier. -EEXIST; -EBUSY once it runs. */
ANDIRON_EXPORT int32_t andiron_on_profiles(struct andiron *a, const char *name, uint32_t form,
					   andiron_profile_fn fn, void *context, char **ret_text);
ANDIRON_EXPORT int32_t andiron_on_targets(struct andiron *a, const char *name,
					  andiron_targets_fn fn, void *context, char **ret_text);

/* Takes a configuration: a text of `n` bytes (`name` stands before its findings), or a file, or a
 * directory of *.alloy files. Before andiron_start it is checked and kept; a running instance
 * changes to it, all or nothing. On failure what was there stays. -EINVAL and all findings; on
 * success the text has the warnings, if any. -EBUSY: another thread is changing it. What a running
 * component cannot take over is in its health: it goes on as before. */
ANDIRON_EXPORT int32_t andiron_load(struct andiron *a, const char *name, const char *text,
				    uint64_t n, char **ret_text);
ANDIRON_EXPORT int32_t andiron_load_file(struct andiron *a, const char *path, char **ret_text);

/* Starts the components and returns when each is live or has failed. -EIO and the names of those
 * that failed: the others run all the same. Another failure: nothing runs. Once for an instance. */
ANDIRON_EXPORT int32_t andiron_start(struct andiron *a, char **ret_text);

/* Ends the run: what is queued is delivered within deadline_ns from now (0: dropped). What is left
 * then is dropped and counted, and the answer is -ETIMEDOUT. Nothing runs when it returns, but a
 * callback that has not come back within three seconds of the deadline; andiron_close waits for
 * that. The counts can still be read. */
ANDIRON_EXPORT int32_t andiron_stop(struct andiron *a, int64_t deadline_ns, char **ret_text);

/* What it says of itself. METRICS: Prometheus text. HEALTH, LEDGER, TARGETS: JSON, as `andiron run`
 * has them. -EBUSY: a component cannot answer now. Here the text is the answer; after a failure it
 * says why. */
#define ANDIRON_READ_METRICS 1u
#define ANDIRON_READ_HEALTH  2u
#define ANDIRON_READ_LEDGER  3u
#define ANDIRON_READ_TARGETS 4u
ANDIRON_EXPORT int32_t andiron_read(struct andiron *a, uint32_t what, char **ret_text);

ANDIRON_EXPORT void andiron_text_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
