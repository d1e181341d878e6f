/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind a `struct andiron`: one host, and the one thread that everything of it happens
 * on. Functions of embed.h hand that thread a job and wait, so the host needs no locks for the sake
 * of embedding, and the thread's signal mask is ours. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "host/config.h"
#include "host/state.h"

#include <andiron/embed.h>

#include <pthread.h>

/* Who takes profiles or targets. Lives as long as the instance, and does not change. */
struct consumer {
	const char *name;
	uint32_t form; /* ANDIRON_FORM_*; 0: takes targets */
	andiron_profile_fn profiles;
	andiron_targets_fn targets;
	void *context;
};

/* Lives on the stack of the function that waits for it. */
struct embed_job {
	struct embed_job *next;
	int (*run)(struct andiron *a, struct embed_job *job);
	void *arg;
	int result;
	struct buf text;
	bool done;
};

enum embed_stage {
	EMBED_OPEN,
	EMBED_RUNNING,
	EMBED_ENDED,
};

struct andiron {
	pid_t pid;
	struct andiron_embed how;
	struct arena arena; /* of the texts of `how` and of consumers */
	pthread_t thread;
	struct loop_task wake; /* has a running loop look at the jobs */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* any of the members up to the next blank line */
	struct embed_job *jobs, **tail;
	enum embed_stage stage;
	bool ready; /* the thread has made the host, or failed to */
	bool woken; /* `wake` is posted */
	bool live, closing;
	uint32_t n_calls; /* of callbacks for profiles; none begins once it is closing */

	/* Of the thread. */
	struct host *host;
	struct error error; /* of making, starting or running the host */
	struct registry *registry;
	struct config *config; /* of `plan`, or of the plan that runs */
	struct plan *plan;     /* accepted, and not yet started */
	VEC(const struct andiron_plugin *) plugins;
	VEC(struct consumer *) consumers;
	bool stuck; /* a component was left behind, and all memory is left to it */
};

/* The components embed.profiles and embed.targets. */
extern const struct andiron_plugin embed_plugin;

/* The consumer of that name and kind; NULL: none. Of the thread. */
const struct consumer *embed_consumer(const struct andiron *a, const char *name, bool targets);

/* Around a callback that may outlast the run; false: it must not be made. */
bool embed_callback_begin(struct andiron *a);
void embed_callback_end(struct andiron *a);

/* Makes the thread, with all signals blocked. 0 or a negative errno. */
int embed_thread_start(struct andiron *a);

/* Whether the caller may have the thread do something and wait for it: 0, or a negative errno and
 * its text; *ret_text is NULL then, where it is not NULL itself. Callbacks on workers may call what
 * never waits for workers. */
#define EMBED_FROM_WORKERS true
int embed_admit(struct andiron *a, bool from_workers, char **ret_text);

/* Has the thread do it, and waits. The caller is admitted. The job's result, and its text. */
int embed_call(struct andiron *a, int (*run)(struct andiron *a, struct embed_job *job), void *arg,
	       char **ret_text);

/* Each gives the code back: with a sentence for the caller; with an error's text as the job's. */
int embed_refuse(char **ret_text, int code, const char *why);
int embed_say(struct embed_job *job, int code, const struct error *err);
