/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "agents/fluent-bit/job.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct job {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool has_answer;
	bool alone;   /* one of the two has left */
	bool reading; /* or read: the chunk is the reader's to free */
	int result;
	const struct andiron_batch *batch;
	struct error why;
	char *chunk;
	size_t n;
};

struct job *job_new(const void *data, size_t n)
{
	struct job *j = calloc(1, sizeof(*j));
	pthread_condattr_t clock;

	if (!j)
		return NULL;
	j->chunk = malloc(n + 1);
	if (!j->chunk) {
		free(j);
		return NULL;
	}
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&j->answered, &clock);
	pthread_condattr_destroy(&clock);
	j->n = n;
	if (n)
		memcpy(j->chunk, data, n);
	return j;
}

static void release(struct job *j)
{
	if (j->batch)
		j->batch->release(j->batch->owner);
	j->batch = NULL;
}

/* The second to leave frees it. */
static void leave(struct job *j)
{
	bool last = j->alone;

	j->alone = true;
	if (!j->reading) {
		free(j->chunk);
		j->chunk = NULL;
	}
	pthread_mutex_unlock(&j->lock);
	if (!last)
		return;
	release(j);
	pthread_cond_destroy(&j->answered);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

int job_wait(struct job *j, int64_t patience_ns, struct error *ret_why)
{
	int64_t until = clock_mono() + patience_ns;
	struct timespec at = {until / NS_PER_SEC, until % NS_PER_SEC};
	int r = 0;

	pthread_mutex_lock(&j->lock);
	while (r == 0 && !j->has_answer)
		r = -pthread_cond_timedwait(&j->answered, &j->lock, &at);
	*ret_why = ERROR_NULL;
	if (j->has_answer) {
		r = j->result;
		*ret_why = j->why;
	}
	leave(j);
	return r;
}

/* Whether the flush has left. If not, and it is to be read, the chunk is the reader's. */
static bool flush_left(struct job *j, bool read)
{
	bool left;

	pthread_mutex_lock(&j->lock);
	left = j->alone;
	j->reading |= read && !left;
	pthread_mutex_unlock(&j->lock);
	return left;
}

void job_read(struct job *j, const struct chunk_head *head)
{
	uint64_t left_out = 0;

	if (flush_left(j, true)) {
		j->result = -ECANCELED;
		return;
	}
	j->result = chunk_read((struct str){j->chunk, j->n}, head, &j->batch, &left_out, &j->why);
	free(j->chunk);
	j->chunk = NULL;
	if (j->result == 0 && left_out > 0) {
		error_wrap(&j->why, -EBADMSG,
			   "profiles left out of a chunk: %" PRIu64 ", the first since", left_out);
		j->result = j->batch ? 0 : -EBADMSG;
	}
}

int job_ready(struct job *j, const struct andiron_batch **ret)
{
	*ret = NULL;
	if (flush_left(j, false)) {
		release(j);
		return -ECANCELED;
	}
	*ret = j->batch;
	j->batch = NULL;
	return j->result;
}

void job_answer(struct job *j, int result)
{
	pthread_mutex_lock(&j->lock);
	j->result = result;
	j->has_answer = true;
	pthread_cond_signal(&j->answered);
	leave(j);
}
