/* SPDX-License-Identifier: Apache-2.0 */
/* Which job goes next, and within what. Contract in uploads-private.h. */
#include "pyroscope-push/uploads/uploads-private.h"

#include "base/check.h"
#include "base/clock.h"

#define SHARE_NS (NS_PER_SEC / 4) /* until the node's budget is asked for again */

/* Files are opened one at a time, and before any is sent: who waits may exit. */
static void open_next(struct uploads *u)
{
	struct upload_job *next = NULL;

	vec_each (&u->jobs, j) {
		if ((*j)->state == JOB_OPENING)
			return;
		if ((*j)->state == JOB_NEW && !next)
			next = *j;
	}
	if (!next)
		return;
	upload_job_open(next);
}

/* What was sent, and will have been when all that is under way has ended. */
static uint64_t spent(const struct uploads *u)
{
	uint64_t sum = u->counts.bytes;

	vec_each (&u->jobs, j)
		if ((*j)->state == JOB_RUNNING)
			sum += (*j)->opened.image.size;
	return sum;
}

/* Whether it fits into what may be sent; it is refused where it does not. */
static bool fits(struct upload_job *j)
{
	const struct uploads_options *o = &j->uploads->config->uploads;
	uint64_t size = j->opened.image.size, sent = spent(j->uploads);

	if (!upload_job_is_requested(
		    j, j->uploads->config)) { /* it came to that while this was opened */
		upload_job_settle(j, 0);
		return false;
	}
	if (size > o->max_file_bytes) {
		upload_job_refuse_by_limit(j, "too_large", UPLOADS_NEVER,
					   "it is larger than debuginfo.max_file_bytes");
		return false;
	}
	if (o->max_total_bytes && (sent > o->max_total_bytes || size > o->max_total_bytes - sent)) {
		upload_job_refuse_by_limit(j, "budget", UPLOADS_AGAIN_NS,
					   "debuginfo.max_total_bytes are used up");
		return false;
	}
	return true;
}

static void on_timer(void *arg)
{
	struct uploads *u = arg;

	u->timer = 0;
	uploads_pump(u);
}

void uploads_arm(struct uploads *u, int64_t due_ns)
{
	int64_t now = clock_mono();

	if (u->timer)
		u->context.host->timer_cancel(u->context.instance, u->timer);
	u->timer = 0;
	if (due_ns == UPLOADS_NEVER)
		return;
	if (u->context.host->timer_set(u->context.instance, due_ns > now ? due_ns - now : 0, 0,
				       on_timer, u, &u->timer) != 0)
		u->timer = 0; /* the next batch tries again */
}

/* The first that may go now; *due_ns: when another could. */
static struct upload_job *next_ready(const struct uploads *u, int64_t *due_ns)
{
	int64_t now = clock_mono();
	size_t running = 0;

	*due_ns = UPLOADS_NEVER;
	vec_each (&u->jobs, j)
		running += (*j)->state == JOB_RUNNING;
	if (running >= (size_t)u->config->uploads.max_parallel)
		return NULL;
	vec_each (&u->jobs, j) {
		if ((*j)->state != JOB_READY)
			continue;
		if ((*j)->due_ns <= now)
			return *j;
		if ((*j)->due_ns < *due_ns)
			*due_ns = (*j)->due_ns;
	}
	return NULL;
}

void uploads_pump(struct uploads *u)
{
	int64_t due_ns;
	struct upload_job *j;

	open_next(u);
	while ((j = next_ready(u, &due_ns))) {
		if (!fits(j))
			continue;
		if (!upload_share_take(&u->share, &u->config->uploads, &j->part)) {
			due_ns = clock_mono() + SHARE_NS;
			break;
		}
		upload_job_run(j);
	}
	uploads_arm(u, due_ns);
}
