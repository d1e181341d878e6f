/* SPDX-License-Identifier: Apache-2.0 */
/* Subscribers come from any thread, so the list of them is under a lock; the tracer is used on the
 * service's own turns only. No callback runs with the lock held.
 *
 * A new subscription waits (LISTING) while a worker reads the list of processes; events that happen
 * meanwhile queue up behind it. So a process may be told as EXISTING and again by its FORK, never
 * missed between the two.
 *
 * A subscription with a turn on its way stays allocated until that turn or the service's end,
 * because the turn holds its address. */
#include "process/service.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "proc/haste.h"

#include <linux/types.h>
#include "bpfwire/process.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define QUEUE_MAX 16384 /* events; 0.9 MB */

enum state { WANTED, LISTING, READY, DEAD };

struct subscription {
	struct service *service;
	uint64_t id, instance;
	andiron_process_fn fn;
	void *arg;
	enum state state;
	bool posted; /* a turn is on its way */
	bool lost;   /* the queue was full: a LOST event is due */
	struct process_events queue;
};

struct service {
	struct abi_context context;
	pthread_mutex_t lock;
	VEC(struct subscription *) subscriptions; /* under the lock */
	uint64_t next_id;                         /* under the lock */
	int failed;                               /* under the lock: why there are no events */
	struct tracer *tracer;
	uint64_t watch, timer;
	bool listing;
	struct process_events events; /* of one drain */
	struct service_totals totals;
	struct error cause; /* of a start that failed; not on the stack, which libbpf needs */
};

/* What a worker reads. */
struct list {
	struct service *service;
	int fd, result;
	struct process_events events;
};

struct service *service_new(const struct andiron_host *host, uint64_t instance)
{
	struct service *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->context = (struct abi_context){host, instance};
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void subscription_free(struct subscription *sub)
{
	vec_free(&sub->queue);
	free(sub);
}

void service_free(void *self)
{
	struct service *s = self;

	if (!s)
		return;
	check(!s->tracer);
	vec_each (&s->subscriptions, sub)
		subscription_free(*sub);
	vec_free(&s->subscriptions);
	vec_free(&s->events);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Under the lock. */
static void drop(struct service *s, struct subscription *sub)
{
	vec_each (&s->subscriptions, each) {
		if (*each != sub)
			continue;
		*each = s->subscriptions.p[--s->subscriptions.n];
		subscription_free(sub);
		return;
	}
	absurd("a subscription of another service");
}

/* The subscriber's turn: hands over what its queue holds. */
static void on_turn(void *arg)
{
	static const struct andiron_process_event lost = {.kind = ANDIRON_PROCESS_LOST};
	struct subscription *sub = arg;
	struct service *s = sub->service;
	struct process_events events;
	andiron_process_fn fn = sub->fn;
	void *fn_arg = sub->arg;

	pthread_mutex_lock(&s->lock);
	check(sub->posted);
	sub->posted = false;
	if (sub->state == DEAD) {
		drop(s, sub);
		pthread_mutex_unlock(&s->lock);
		return;
	}
	if (sub->lost && vec_push(&sub->queue, lost))
		sub->lost = false;
	events = sub->queue;
	sub->queue = (struct process_events){0};
	pthread_mutex_unlock(&s->lock);
	if (events.n)
		fn(fn_arg, events.p, events.n); /* may end the subscription */
	vec_free(&events);
}

/* Under the lock: appends, within the bound. */
static void enqueue(struct subscription *sub, const struct process_events *more, size_t max)
{
	size_t room = sub->queue.n < max ? max - sub->queue.n : 0;
	size_t fits = more->n < room ? more->n : room;

	if (fits && !vec_reserve(&sub->queue, fits))
		fits = 0;
	if (fits)
		memcpy(sub->queue.p + sub->queue.n, more->p, fits * sizeof(*more->p));
	sub->queue.n += fits;
	sub->lost = sub->lost || fits < more->n;
}

/* Under the lock: gives turns to whoever has something. False if one could not be had and must be
 * tried again. */
static bool give_turns(struct service *s)
{
	bool all = true;

	vec_each (&s->subscriptions, each) {
		struct subscription *sub = *each;
		int r;

		if (sub->state != READY || sub->posted || !(sub->queue.n || sub->lost))
			continue;
		r = s->context.host->post(sub->instance, on_turn, sub);
		sub->posted = r == 0;
		all = all && (r == 0 || r == -ESHUTDOWN);
	}
	return all;
}

static void on_look(void *arg);

static void look_later(struct service *s)
{
	const struct andiron_host *host = s->context.host;

	if (s->timer)
		host->timer_cancel(s->context.instance, s->timer);
	s->timer = 0;
	if (host->timer_set(s->context.instance, (int64_t)PROCESS_LOOK_NS, 0, on_look, s,
			    &s->timer))
		abi_log(&s->context, ANDIRON_LOG_WARN,
			"no memory for a timer: process events are late until the next one");
}

/* Reads the ring into the queues. Whether to look again. */
static bool fill_queues(struct service *s)
{
	bool again = false;

	s->events.n = 0;
	if (tracer_drain(s->tracer, &s->events, &again))
		again = true;
	pthread_mutex_lock(&s->lock);
	tracer_totals(s->tracer, &s->totals.events, &s->totals.lost);
	vec_each (&s->subscriptions, each) {
		if ((*each)->state != DEAD)
			enqueue(*each, &s->events, QUEUE_MAX);
	}
	pthread_mutex_unlock(&s->lock);
	if (s->events.capacity > QUEUE_MAX)
		vec_free(&s->events); /* a storm is over: do not keep its memory */
	return again;
}

/* Reads the ring, fills the queues, gives turns. */
static void look(struct service *s)
{
	bool again = s->tracer && fill_queues(s);

	pthread_mutex_lock(&s->lock);
	again = !give_turns(s) || again;
	pthread_mutex_unlock(&s->lock);
	if (again)
		look_later(s);
}

static void on_ready(void *arg, int32_t fd, uint32_t events)
{
	struct service *s = arg;

	s->totals.wakeups++;
	look(s);
}

static void read_list(void *arg)
{
	struct list *list = arg;

	list->result = tracer_list_read(list->fd, &list->events);
}

/* Under the lock: puts the list before what has queued up since. */
static void begin(struct subscription *sub, const struct list *list)
{
	struct process_events since = sub->queue;

	sub->queue = (struct process_events){0};
	sub->state = READY;
	sub->lost = sub->lost || list->result;
	enqueue(sub, &list->events, SIZE_MAX);
	enqueue(sub, &since, SIZE_MAX);
	vec_free(&since);
}

static void serve(struct service *s);

static void list_done(void *arg)
{
	struct list *list = arg;
	struct service *s = list->service;

	s->listing = false;
	pthread_mutex_lock(&s->lock);
	vec_each (&s->subscriptions, each) {
		if ((*each)->state == LISTING)
			begin(*each, list);
	}
	pthread_mutex_unlock(&s->lock);
	if (list->fd >= 0)
		close(list->fd);
	vec_free(&list->events);
	free(list);
	serve(s);
}

/* Subscriptions go from one state to the next; how many. */
static size_t advance(struct service *s, enum state from, enum state to)
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	vec_each (&s->subscriptions, each) {
		if ((*each)->state != from)
			continue;
		(*each)->state = to;
		n++;
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Starts a list. Where there are no events there is none either: its failure becomes a LOST event,
 * which sends the subscriber looking for itself. */
static int list_begin(struct service *s)
{
	struct list *list = calloc(1, sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	list->service = s;
	list->fd = s->tracer ? tracer_list(s->tracer) : s->failed;
	if (list->fd < 0) {
		list->result = list->fd;
		list_done(list);
		return 0;
	}
	s->listing = true;
	r = s->context.host->work(s->context.instance, read_list, list_done, list);
	if (r) {
		s->listing = false;
		close(list->fd);
		free(list);
	}
	return r;
}

/* Everything that may be due: events, turns, lists. */
static void serve(struct service *s)
{
	look(s);
	if (s->listing || (!s->tracer && !s->failed))
		return; /* the list that runs, or the start, comes back here */
	if (!advance(s, WANTED, LISTING) || !list_begin(s))
		return;
	advance(s, LISTING, WANTED);
	look_later(s);
}

static void on_wanted(void *arg)
{
	serve(arg);
}

static void on_look(void *arg)
{
	struct service *s = arg;

	s->timer = 0;
	s->totals.wakeups++;
	serve(s);
}

static void fail(struct service *s, const struct error *err)
{
	pthread_mutex_lock(&s->lock);
	s->failed = err->code < 0 ? err->code : -ENODEV;
	pthread_mutex_unlock(&s->lock);
	abi_health(&s->context, ANDIRON_HEALTH_UNHEALTHY, "no process events: %s", err->text);
}

int32_t service_start(void *self, struct andiron_error *err)
{
	struct service *s = self;
	const struct andiron_host *host = s->context.host;
	int nice = haste_begin(HASTE_GAIN_START);
	int r = tracer_open(0, &s->tracer, &s->cause);

	haste_end(nice);
	if (r == -ENOMEM) {
		error_set(&s->cause, r, "out of memory");
		return abi_error(host, err, &s->cause, r);
	}
	if (r) {
		fail(s, &s->cause);
	} else {
		r = host->watch_add(s->context.instance, tracer_fd(s->tracer), ANDIRON_WATCH_IN,
				    on_ready, s, &s->watch);
		if (r) {
			tracer_close(take_ptr(s->tracer));
			error_errno(&s->cause, r, "cannot watch the ring of process events");
			return abi_error(host, err, &s->cause, r);
		}
		abi_health(&s->context, ANDIRON_HEALTH_HEALTHY, "tracing fork, exec and exit");
	}
	return host->post(s->context.instance, on_wanted, s);
}

void service_stop(void *self)
{
	struct service *s = self;
	const struct andiron_host *host = s->context.host;

	if (s->watch)
		host->watch_remove(s->context.instance, s->watch);
	if (s->timer)
		host->timer_cancel(s->context.instance, s->timer);
	s->watch = s->timer = 0;
	tracer_close(take_ptr(s->tracer));
}

void service_totals(struct service *s, struct service_totals *ret)
{
	pthread_mutex_lock(&s->lock);
	*ret = s->totals;
	ret->subscribers = s->subscriptions.n;
	pthread_mutex_unlock(&s->lock);
}

static int32_t subscribe(void *self, uint64_t instance, andiron_process_fn fn, void *arg,
			 uint64_t *ret_subscription)
{
	struct service *s = self;
	struct subscription *sub = calloc(1, sizeof(*sub));
	int r = sub ? 0 : -ENOMEM;

	if (r)
		return r;
	*sub = (struct subscription){
		.service = s, .instance = instance, .fn = fn, .arg = arg, .state = WANTED};
	pthread_mutex_lock(&s->lock);
	r = s->failed;
	if (!r && !vec_push(&s->subscriptions, sub))
		r = -ENOMEM;
	if (!r) {
		r = s->context.host->post(s->context.instance, on_wanted, s);
		s->subscriptions.n -= r != 0;
	}
	if (!r)
		*ret_subscription = sub->id = ++s->next_id;
	pthread_mutex_unlock(&s->lock);
	if (r)
		subscription_free(sub);
	return r;
}

static void unsubscribe(void *self, uint64_t subscription)
{
	struct service *s = self;

	pthread_mutex_lock(&s->lock);
	vec_each (&s->subscriptions, each) {
		struct subscription *sub = *each;

		if (sub->id != subscription || sub->state == DEAD)
			continue;
		sub->state = DEAD;
		vec_free(&sub->queue);
		if (!sub->posted)
			drop(s, sub);
		break;
	}
	pthread_mutex_unlock(&s->lock);
}

const struct andiron_process_events service_table = {
	.size = sizeof(service_table),
	.subscribe = subscribe,
	.unsubscribe = unsubscribe,
};
