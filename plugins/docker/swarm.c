/* SPDX-License-Identifier: Apache-2.0 */
/* A swarm followed. Contract in swarm.h. */
#include "docker/swarm.h"

#include "base/check.h"
#include "base/clock.h"
#include "docker/stream.h"
#include "docker/swarm-targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WITHOUT_EVENTS   NS_PER_SEC          /* how long the first round waits for the stream */
#define FIRST_GAP_NS     (250 * NS_PER_MSEC) /* between rounds, at least */
#define GAPS             20                  /* how often a round would fit into the gap after it */
#define LONGEST_RETRY_NS (10 * NS_PER_SEC)
#define LIST_TIMEOUT_MS  60000
#define MAX_ROUND        (32u << 20) /* bytes of all its answers */

/* The answers of a round, while they come and while a worker reads them. */
struct round {
	struct swarm *s;
	struct buf answers[SWARM_LISTS];
	size_t n_answers;
	uint64_t bytes;
	int64_t begun_ns;
	struct swarm_targets targets;
	int result;
	struct error err;
};

struct swarm {
	struct abi_context context;
	struct settings settings;
	struct engine engine;
	struct stream stream;
	struct target_list *list;
	VEC(uint64_t) rows;  /* that are in the list, in order */
	struct round *round; /* that runs; NULL: none does */
	uint64_t request, timer, patience_timer;
	int64_t due_ns;  /* when the timer runs out */
	int64_t gap_ns;  /* after the last round, at least */
	int64_t wait_ns; /* from the next round to the one after it */
	int64_t retry_ns;
	int64_t ended_ns; /* when the last round ended */
	size_t n_objects;
	bool stopped, again, complete, reported;
	char trouble[ENGINE_TROUBLE];
	struct swarm_counts counts;
};

static const struct stream_calls stream_calls;

int32_t swarm_create(const struct andiron_host *host, uint64_t instance,
		     const struct andiron_value *args, void **ret_self,
		     struct andiron_error *ret_err)
{
	struct swarm *s = calloc(1, sizeof(*s));
	struct error err = ERROR_NULL;
	int r;

	if (!s)
		return -ENOMEM;
	s->context = (struct abi_context){host, instance};
	s->gap_ns = s->retry_ns = FIRST_GAP_NS;
	r = settings_init_swarm(&s->settings, args, &err);
	if (r < 0) {
		free(s);
		return abi_error(host, ret_err, &err, r);
	}
	s->wait_ns = s->settings.refresh_ns;
	s->list = target_list_new(instance);
	if (!s->list) {
		swarm_free(s);
		return -ENOMEM;
	}
	s->stream = (struct stream){.engine = &s->engine,
				    .calls = &stream_calls,
				    .context = s,
				    .filters = s->settings.swarm.role->events};
	*ret_self = s;
	return 0;
}

static void round_free(struct round *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < SWARM_LISTS; i++)
		buf_free(&r->answers[i]);
	swarm_targets_free(&r->targets);
	free(r);
}

void swarm_free(void *self)
{
	struct swarm *s = self;

	if (!s)
		return;
	engine_fini(&s->engine);
	stream_fini(&s->stream);
	round_free(s->round);
	target_list_free(s->list);
	vec_free(&s->rows);
	settings_fini(&s->settings);
	free(s);
}

static void say_state(struct swarm *s)
{
	const char *role = s->settings.swarm.role->name;
	char every[32];

	if (s->trouble[0]) {
		if (!s->reported)
			abi_log(&s->context, ANDIRON_LOG_WARN, "%s; trying again", s->trouble);
		s->reported = true;
		abi_health(&s->context, ANDIRON_HEALTH_UNHEALTHY, "%s%s", s->trouble,
			   s->complete ? "; the last targets stay" : "");
		return;
	}
	if (s->reported)
		abi_log(&s->context, ANDIRON_LOG_INFO, "the Docker engine answers again");
	s->reported = false;
	if (!s->complete)
		return;
	if (s->stream.following || !s->stream.trouble[0])
		abi_health(&s->context, ANDIRON_HEALTH_HEALTHY, "%zu %s are known", s->n_objects,
			   role);
	else
		abi_health(&s->context, ANDIRON_HEALTH_HEALTHY,
			   "%zu %s are known, listed every %s: %s", s->n_objects, role,
			   duration_format(s->settings.refresh_ns, every, sizeof(every)),
			   s->stream.trouble);
}

static void begin_round(void *context);

/* The next round is due then, or sooner if it was. */
static void schedule(struct swarm *s, int64_t after_ns)
{
	int64_t due = clock_mono() + after_ns;

	if (s->stopped || (s->timer && s->due_ns <= due))
		return;
	engine_timer_cancel(&s->engine, &s->timer);
	s->due_ns = due;
	engine_timer(&s->engine, &s->timer, after_ns, begin_round, s);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What is known may be out of date: asks as soon as the gap allows. */
static void ask_again(struct swarm *s)
{
	int64_t gone = clock_mono() - s->ended_ns;

	if (s->round)
		s->again = true;
	else
		schedule(s, gone < s->gap_ns ? s->gap_ns - gone : 0);
}

/* The round is over, with the targets published or some trouble. */
static void end_round(struct swarm *s, bool well)
{
	const struct settings *o = &s->settings;
	int64_t took;

	s->ended_ns = clock_mono();
	took = s->ended_ns - s->round->begun_ns;
	round_free(s->round);
	s->round = NULL;
	s->gap_ns = smaller(took > FIRST_GAP_NS / GAPS ? took * GAPS : FIRST_GAP_NS, o->refresh_ns);
	if (well) {
		s->trouble[0] = '\0';
		s->retry_ns = FIRST_GAP_NS;
		s->wait_ns = s->wait_ns > s->gap_ns ? s->wait_ns : s->gap_ns;
		schedule(s, s->again ? s->gap_ns : s->wait_ns);
		if (!s->again)
			s->wait_ns = smaller(s->wait_ns * 2, o->refresh_ns);
	} else {
		s->counts.failures++;
		schedule(s, s->retry_ns);
		s->retry_ns = smaller(s->retry_ns * 2, LONGEST_RETRY_NS);
	}
	s->again = false;
	say_state(s);
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Sets the rows and removes all others. 0 or -ENOMEM, and then all are set anew next time. */
static int set_rows(struct swarm *s, const struct swarm_targets *t)
{
	VEC(uint64_t) rows = {0};
	int r = vec_reserve(&rows, t->keys.n) ? 0 : -ENOMEM;

	for (size_t i = 0; i < t->keys.n && r == 0; i++) {
		const struct target_span *row = &t->rows.rows.p[i];

		r = target_list_set(s->list, t->keys.p[i].row, t->keys.p[i].order,
				    t->rows.labels.p + row->first, row->n);
		rows.p[rows.n++] = t->keys.p[i].row;
	}
	if (r < 0) {
		target_list_clear(s->list);
		s->rows.n = 0;
		vec_free(&rows);
		return r;
	}
	if (rows.n)
		qsort(rows.p, rows.n, sizeof(*rows.p), by_value);
	vec_each (&s->rows, old)
		if (!rows.n || !bsearch(old, rows.p, rows.n, sizeof(*rows.p), by_value))
			target_list_remove(s->list, *old);
	vec_free(&s->rows);
	s->rows.p = rows.p;
	s->rows.n = rows.n;
	s->rows.capacity = rows.capacity;
	return 0;
}

static int publish(struct swarm *s, const struct swarm_targets *t)
{
	const struct andiron_targets *update = NULL;
	int r = set_rows(s, t);

	if (r == 0)
		r = target_list_flush(s->list, &update);
	if (r < 0)
		return r;
	s->complete = true;
	s->n_objects = t->n_objects;
	if (update) {
		s->counts.updates++;
		s->context.host->send_targets(s->context.instance, "targets", update);
		update->release(update->owner);
	}
	return 0;
}

static void on_read(void *context)
{
	struct round *r = context;
	struct str answers[SWARM_LISTS];

	for (size_t i = 0; i < SWARM_LISTS; i++)
		answers[i] = buf_str(&r->answers[i]);
	r->result = swarm_targets_read(&r->s->settings.swarm, answers, &r->targets, &r->err);
}

static void on_was_read(void *context)
{
	struct round *r = context;
	struct swarm *s = r->s;

	if (s->stopped)
		return;
	if (r->result == 0)
		r->result = publish(s, &r->targets);
	if (r->result < 0)
		snprintf(s->trouble, sizeof(s->trouble), "the Docker engine at %.*s: %s",
			 STR_FMT(s->settings.host), r->err.code ? r->err.text : "out of memory");
	end_round(s, r->result == 0);
}

static void ask(struct swarm *s);

static void on_answer(void *context, const struct http_response *response)
{
	struct swarm *s = context;
	const struct swarm_role *role = s->settings.swarm.role;
	struct round *r = s->round;
	char what[32];

	s->request = 0;
	if (response->status != 200) {
		snprintf(what, sizeof(what), "its %s", swarm_list_name(role->lists[r->n_answers]));
		engine_describe(&s->engine, what, response, s->trouble);
		end_round(s, false);
		return;
	}
	s->counts.received_bytes += response->body.n;
	r->bytes += response->body.n;
	if (buf_str_append(&r->answers[r->n_answers++], response->body) == 0) {
		if (r->n_answers < role->n_lists) {
			ask(s);
			return;
		}
		if (s->context.host->work(s->context.instance, on_read, on_was_read, r) == 0)
			return;
	}
	snprintf(s->trouble, sizeof(s->trouble), "no memory for what the Docker engine answered");
	end_round(s, false);
}

/* Asks for the next list of the round. */
static void ask(struct swarm *s)
{
	struct round *r = s->round;
	struct http_request request = {
		.timeout_ms = LIST_TIMEOUT_MS,
		.max_response = r->bytes < MAX_ROUND ? MAX_ROUND - r->bytes : 1,
		.done = on_answer,
		.context = s,
	};
	struct buf url = BUF_NULL;
	char path[32];

	snprintf(path, sizeof(path), "/%s",
		 swarm_list_name(s->settings.swarm.role->lists[r->n_answers]));
	if (r->n_answers == 0)
		settings_list_url(&s->settings, &url, path, NULL, 0);
	else
		settings_url(&s->settings, &url, path, STR(""));
	if (engine_ask(&s->engine, &url, &request, &s->request, s->trouble) < 0)
		end_round(s, false);
}

static void begin_round(void *context)
{
	struct swarm *s = context;

	s->timer = 0;
	if (s->stopped || s->round)
		return;
	s->round = calloc(1, sizeof(*s->round));
	if (!s->round) {
		schedule(s, s->retry_ns);
		return;
	}
	*s->round = (struct round){.s = s, .begun_ns = clock_mono()};
	s->counts.rounds++;
	ask(s);
}

static void on_begun(void *context)
{
	struct swarm *s = context;

	engine_timer_cancel(&s->engine, &s->patience_timer);
	ask_again(s);
}

static void on_event(void *context, const struct event *e)
{
	struct swarm *s = context;

	if (s->settings.swarm.role->settling)
		s->wait_ns = s->gap_ns;
	ask_again(s);
}

/* An engine that refuses events alone may list its swarm all the same. */
static void on_ended(void *context)
{
	struct swarm *s = context;

	if (!s->stream.answered)
		memcpy(s->trouble, s->stream.trouble, sizeof(s->trouble));
	say_state(s);
}

static const struct stream_calls stream_calls = {on_begun, on_event, on_ended};

/* The stream has not begun in time, or an engine tells no events. */
static void on_impatient(void *context)
{
	struct swarm *s = context;

	s->patience_timer = 0;
	if (!s->stopped)
		ask_again(s);
}

int32_t swarm_start(void *self, struct andiron_error *err)
{
	struct swarm *s = self;
	int32_t r = engine_start(&s->engine, &s->context, &s->settings, err);

	if (r < 0)
		return r;
	engine_timer(&s->engine, &s->patience_timer, WITHOUT_EVENTS, on_impatient, s);
	stream_start(&s->stream);
	return 0;
}

void swarm_stop(void *self)
{
	struct swarm *s = self;

	s->stopped = true;
	engine_timer_cancel(&s->engine, &s->timer);
	engine_timer_cancel(&s->engine, &s->patience_timer);
	stream_stop(&s->stream);
	engine_fini(&s->engine);
}

const struct client_loop *swarm_loop(const struct swarm *s)
{
	return s->engine.loop;
}

struct swarm_counts swarm_counts(const struct swarm *s)
{
	struct swarm_counts c = s->counts;

	c.objects = s->n_objects;
	c.targets = s->rows.n;
	c.events = s->stream.n_events;
	c.failures += s->stream.n_failures;
	c.received_bytes += s->stream.n_bytes;
	return c;
}
