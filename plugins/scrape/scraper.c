/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in time. Contract in scraper.h, parts in job.h.
 *
 * A job is in one of three places: in a heap until it is begun, under way, or its answer is with
 * judge.c. So a profile is never asked for twice at once; what takes longer than the interval
 * misses its turn. One timer serves all: it fires a little after the first is due and begins all
 * that are due by then. */
#include "scrape/scraper.h"

#include "abi/value.h"
#include "base/check.h"
#include "base/clock.h"
#include "scrape/endpoint.h"
#include "scrape/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define GATHER_NS     (200 * NS_PER_MSEC) /* at most, and a twentieth of the interval */
#define REPAIR_NS     (10 * NS_PER_SEC)
#define MAX_IN_FLIGHT 8192u
#define MAX_HELD      (128u << 20) /* bytes of answers that are not sent on yet */
#define MAX_LOGGED    20           /* lines about targets in a minute */
#define PREVIEW       100
#define MAX_KEPT      128u

/* --- Time --- */

void scraper_lacks(struct scraper *s)
{
	if (!s->repair_ns)
		s->repair_ns = clock_mono() + REPAIR_NS;
}

void scraper_schedule(struct scraper *s, struct job *job)
{
	int64_t interval = s->settings->interval_ns, now = clock_mono();
	int64_t offset = (int64_t)(endpoint_hash(job->identity) % (uint64_t)interval);

	job->due.at_ns = now - now % interval + offset;
	if (job->due.at_ns <= now)
		job->due.at_ns += interval;
	if (!due_add(&s->heap, &job->due))
		scraper_lacks(s);
}

void scraper_unschedule(struct scraper *s, struct job *job)
{
	due_remove(job->late ? &s->late : &s->heap, &job->due);
	job->late = false;
}

/* Those that failed last time, and may hang until their time is over, leave room for the others. */
static bool takes_doubtful(const struct scraper *s)
{
	return s->n_doubtful < (s->max_in_flight + 1) / 2;
}

/* The next job that may begin, taken out of its heap; NULL: none yet. */
static struct job *next_due(struct scraper *s, int64_t now)
{
	struct due *first = takes_doubtful(s) ? due_first(&s->late) : NULL;
	struct job *job = (struct job *)first;

	if (job) {
		scraper_unschedule(s, job);
		return job;
	}
	while ((first = due_first(&s->heap)) && first->at_ns <= now) {
		job = (struct job *)first;
		due_remove(&s->heap, first);
		if (job->state != STATE_DOWN || takes_doubtful(s))
			return job;
		job->late = due_add(&s->late, first);
		if (!job->late)
			scraper_lacks(s);
	}
	return NULL;
}

static void on_timer(void *context);

/* When something is to be begun; INT64_MAX: nothing. */
static int64_t next_begin(const struct scraper *s)
{
	const struct due *first = due_first(&s->heap);
	int64_t at = first ? first->at_ns : INT64_MAX;

	if (s->draining)
		return INT64_MAX;
	if (s->repair_ns && s->repair_ns < at)
		at = s->repair_ns;
	return due_first(&s->late) && takes_doubtful(s) ? 0 : at;
}

void scraper_arm(struct scraper *s)
{
	int64_t part = s->settings->interval_ns / 20, now = clock_mono();
	int64_t at = s->queue && !s->judging ? now : next_begin(s);

	if (s->stopped || at == INT64_MAX)
		return;
	at = (at > now ? at : now) + (part < GATHER_NS ? part : GATHER_NS);
	if (s->timer && s->timer_ns <= at)
		return;
	if (s->timer)
		s->context.host->timer_cancel(s->context.instance, s->timer);
	s->timer = 0;
	s->timer_ns = at;
	s->context.host->timer_set(s->context.instance, at - now, 0, on_timer, s, &s->timer);
}

/* --- What comes of a request --- */

static void count_flight(struct scraper *s, const struct flight *f, int n)
{
	s->counts.in_flight += (uint64_t)n;
	s->n_doubtful += f->doubtful ? (uint32_t)n : 0;
}

static void flight_free(struct flight *f)
{
	if (!f)
		return;
	f->scraper->held -= f->held;
	if (!f->job)
		totals_free(f->totals);
	buf_free(&f->body);
	buf_free(&f->send);
	free(f->why);
	free(f);
}

/* A line for each change, but not thousands when a network fails. */
static void log_change(struct scraper *s, const struct job *job, const struct str url,
		       const char *why)
{
	int64_t now = clock_mono();

	if (now - s->logged_ns > 60 * NS_PER_SEC) {
		s->logged_ns = now;
		s->logged = 0;
	}
	if (s->logged++ > MAX_LOGGED)
		return;
	if (s->logged > MAX_LOGGED)
		abi_log(&s->context, ANDIRON_LOG_WARN,
			"more targets change than are logged in a minute; the status of the "
			"targets says all");
	else if (why)
		abi_log(&s->context, ANDIRON_LOG_WARN, "%.*s: %s; asking again every interval",
			STR_FMT(url), why);
	else
		abi_log(&s->context, ANDIRON_LOG_INFO, "%.*s answers again", STR_FMT(url));
}

static void set_state(struct scraper *s, struct job *job, const char *why)
{
	int state = why ? STATE_DOWN : STATE_UP;
	struct error err = ERROR_NULL;
	struct endpoint e;

	if (state != job->state && (why || job->state == STATE_DOWN)) {
		if (endpoint_init(&e, s->settings, job->target->row,
				  &s->settings->kinds[job->kind], &err) == 0)
			log_change(s, job, buf_str(&e.url), why);
		endpoint_fini(&e);
	}
	s->counts.down += (uint64_t)(state == STATE_DOWN) - (uint64_t)(job->state == STATE_DOWN);
	job->state = state;
	if (why && job->why && strcmp(why, job->why) == 0)
		return;
	free(job->why);
	job->why = why ? strdup(why) : NULL;
}

void scraper_landed(struct scraper *s, struct flight *f)
{
	struct job *job = f->job;

	s->counts.failures += f->result < 0;
	if (job) {
		check(job->flight == f);
		job->flight = NULL;
		job->totals = f->totals;
		s->counts.totals_bytes -= job->totals_bytes;
		job->totals_bytes = job->totals ? totals_bytes(job->totals) : 0;
		s->counts.totals_bytes += job->totals_bytes;
		job->scraped_ns = f->ended_ns;
		set_state(s, job, f->result < 0 ? (f->why ? f->why : "out of memory") : NULL);
		if (!s->stopped)
			scraper_schedule(s, job);
	}
	flight_free(f);
	scraper_arm(s);
}

void scraper_abandon(struct scraper *s, struct job *job)
{
	struct flight *f = job->flight;

	job->flight = NULL;
	f->job = NULL;
	job->totals = NULL; /* the flight's now */
	if (!f->request)
		return; /* judge.c has it */
	http_cancel(client_loop_http(s->loop), f->request);
	count_flight(s, f, -1);
	flight_free(f);
}

static bool on_data(void *context, struct str piece)
{
	struct flight *f = context;
	struct scraper *s = f->scraper;

	f->refused = s->held + piece.n > MAX_HELD;
	if (f->refused || buf_str_append(&f->body, piece) < 0)
		return false;
	f->held += piece.n;
	s->held += piece.n;
	s->counts.bytes += piece.n;
	return true;
}

static char *status_text(const struct http_response *response)
{
	struct str body = str_first(str_trim(response->body), PREVIEW);
	char *text = NULL, shown[PREVIEW + 1];
	size_t n = 0;

	for (; n < body.n; n++)
		shown[n] = body.p[n] >= ' ' && body.p[n] < 0x7f ? body.p[n] : ' ';
	shown[n] = '\0';
	if (asprintf(&text, "HTTP status %d%s%s", response->status, n ? ": " : "", shown) < 0)
		return NULL;
	return text;
}

static void on_done(void *context, const struct http_response *response)
{
	struct flight *f = context;
	struct scraper *s = f->scraper;

	f->request = 0;
	f->ended_ns = clock_real();
	count_flight(s, f, -1);
	if (response->status >= 200 && response->status <= 299) {
		judge_add(s, f);
		return;
	}
	f->result = response->status ? -EPROTO : response->result;
	if (f->refused)
		f->why = strdup("too many answers are waiting to be read; this one was not taken");
	else
		f->why = response->status ? status_text(response) : strdup(response->error);
	scraper_landed(s, f);
	scraper_say(s);
}

/* --- Requests --- */

static int send_request(struct scraper *s, struct flight *f, const struct endpoint *e,
			struct error *err)
{
	const struct kind *kind = &s->settings->kinds[f->job->kind];
	int64_t extra = kind->timed ? s->settings->interval_ns - NS_PER_SEC : 0;
	const struct http_request request = {
		.method = "GET",
		.url = buf_str(&e->url),
		.timeout_ms = (s->settings->timeout_ns + extra + NS_PER_MSEC - 1) / NS_PER_MSEC,
		.max_response = s->settings->max_bytes,
		.uncompressed = true, /* a profile is compressed already */
		.small = true,
		.own_connection = f->job->target->at >= s->max_kept,
		.data = on_data,
		.done = on_done,
		.context = f,
	};

	return http_send(client_loop_http(s->loop), &s->settings->client.http, &request,
			 &f->request, err);
}

static struct flight *flight_new(struct scraper *s, struct job *job)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->scraper = s;
	f->job = job;
	f->totals_kind = s->settings->kinds[job->kind].totals;
	f->totals = job->totals;
	f->doubtful = job->state == STATE_DOWN;
	f->started_ns = f->ended_ns = clock_real();
	return f;
}

static void begin(struct scraper *s, struct job *job)
{
	struct flight *f = flight_new(s, job);
	struct error err = ERROR_NULL;
	struct endpoint e;

	s->counts.scrapes++;
	if (!f) {
		scraper_lacks(s);
		scraper_schedule(s, job);
		return;
	}
	job->flight = f;
	f->result = endpoint_init(&e, s->settings, job->target->row,
				  &s->settings->kinds[job->kind], &err);
	if (f->result == 0)
		f->result = send_request(s, f, &e, &err);
	endpoint_fini(&e);
	if (f->result == 0) {
		count_flight(s, f, 1);
		return;
	}
	f->why = strdup(err.code ? err.text : "out of memory");
	scraper_landed(s, f);
}

static void on_timer(void *context)
{
	struct scraper *s = context;
	int64_t now = clock_mono();
	const struct due *first;
	struct job *job;

	s->timer = 0;
	judge_begin(s);
	if (s->repair_ns && s->repair_ns <= now && !s->draining)
		targets_repair(s);
	while (!s->draining && s->counts.in_flight < s->max_in_flight && (job = next_due(s, now)))
		begin(s, job);
	first = due_first(&s->heap);
	s->counts.postponed +=
		!s->draining && (due_first(&s->late) || (first && first->at_ns <= now));
	scraper_arm(s);
}

/* --- Life --- */

/* The same one for as long as it fails. O(1) while that is so. */
static const struct job *failing(struct scraper *s)
{
	for (size_t i = 0; i < s->jobs.n; i++, s->failing_at++) {
		const struct job *job = s->jobs.p[s->failing_at %= s->jobs.n];

		if (job->state == STATE_DOWN && job->target)
			return job;
	}
	return NULL;
}

static const struct target *faulty(struct scraper *s)
{
	for (size_t i = 0; i < s->targets.n; i++, s->faulty_at++) {
		const struct target *t = s->targets.p[s->faulty_at %= s->targets.n];

		if (t->fault)
			return t;
	}
	return NULL;
}

/* How many fail, and one of them with the reason: often it is that of all. */
static void say_failures(struct scraper *s)
{
	const struct scraper_counts *c = &s->counts;
	const struct job *job = c->down ? failing(s) : NULL;
	const struct target *t = job ? job->target : c->faults ? faulty(s) : NULL;
	struct str name = job ? s->settings->kinds[job->kind].name : STR("");
	struct str address = t ? target_label_value(t->row, "__address__") : STR("");
	const char *why = job ? job->why : t ? t->fault : NULL;

	abi_health(&s->context, ANDIRON_HEALTH_HEALTHY,
		   "%llu targets, %llu profiles; %llu of these fail, and %llu targets cannot be "
		   "asked; one is %.*s%s%.*s: %s; the status of the targets has all",
		   (unsigned long long)c->targets, (unsigned long long)c->jobs,
		   (unsigned long long)c->down, (unsigned long long)c->faults, STR_FMT(name),
		   job ? " of " : "", STR_FMT(address), why ? why : "out of memory");
}

void scraper_say(struct scraper *s)
{
	const struct scraper_counts *c = &s->counts;

	if (s->stopped)
		return;
	if (s->repair_ns)
		abi_health(&s->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: not all targets are scraped; trying again soon");
	else if (c->down || c->faults)
		say_failures(s);
	else
		abi_health(&s->context, ANDIRON_HEALTH_HEALTHY, "%llu targets, %llu profiles",
			   (unsigned long long)c->targets, (unsigned long long)c->jobs);
}

int scraper_new(const struct abi_context *context, struct settings *settings, struct scraper **ret)
{
	struct scraper *s = calloc(1, sizeof(*s));
	struct rlimit limit = {.rlim_cur = 1024};

	if (s)
		s->table = target_table_new_keeping(endpoint_keeps);
	if (!s || !s->table) {
		free(s);
		settings_free(settings);
		return -ENOMEM;
	}
	s->context = *context;
	s->settings = settings;
	s->queue_end = &s->queue;
	/* The others need descriptors too. */
	getrlimit(RLIMIT_NOFILE, &limit);
	s->max_in_flight = limit.rlim_cur / 2 < MAX_IN_FLIGHT ? (uint32_t)limit.rlim_cur / 2
							       : MAX_IN_FLIGHT;
	s->max_kept = limit.rlim_cur / 8 < MAX_KEPT ? (uint32_t)limit.rlim_cur / 8 : MAX_KEPT;
	*ret = s;
	return 0;
}

int scraper_start(struct scraper *s, struct error *err)
{
	int r = client_loop_start(&s->context, &s->loop, err);

	if (r == 0)
		scraper_say(s);
	return r;
}

void scraper_stop(struct scraper *s)
{
	struct flight *f = s->queue, *next;

	s->stopped = true;
	if (s->timer)
		s->context.host->timer_cancel(s->context.instance, s->timer);
	s->timer = 0;
	s->queue = NULL;
	s->queue_end = &s->queue;
	for (; f; f = next) {
		next = f->next;
		scraper_landed(s, f);
	}
	vec_each (&s->jobs, job)
		if ((*job)->flight && (*job)->flight->request) {
			struct flight *flight = (*job)->flight;

			(*job)->totals = NULL;
			(*job)->flight = NULL;
			flight->job = NULL;
			count_flight(s, flight, -1);
			flight_free(flight);
		}
	client_loop_free(s->loop);
	s->loop = NULL;
}

void scraper_drain(struct scraper *s)
{
	s->draining = true;
	judge_begin(s);
	if (!s->judging && !s->queue)
		s->context.host->drained(s->context.instance);
}

void scraper_free(struct scraper *s)
{
	if (!s)
		return;
	check(!s->judging && !s->loop);
	targets_free(s);
	settings_free(s->settings);
	buf_free(&s->scratch);
	free(s);
}

void scraper_update(struct scraper *s, struct settings *settings)
{
	settings_free(s->settings);
	s->settings = settings;
	/* The times are the new interval's. */
	vec_each (&s->jobs, job)
		scraper_unschedule(s, *job);
	targets_rebuild(s);
}

struct scraper_counts scraper_counts(const struct scraper *s)
{
	struct scraper_counts counts = s->counts;

	counts.held_bytes = s->held;
	return counts;
}

const struct client_loop *scraper_loop(const struct scraper *s)
{
	return s->loop;
}
