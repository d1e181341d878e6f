/* SPDX-License-Identifier: Apache-2.0 */
/* The scraper where memory is short, on a host that keeps what it is given: what was missing is
 * made later, and each answer is counted once, as what came of it. No request is made. */
#include "scrape/job.h"
#include "scrape/tests/test-profile.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

#define N_TARGETS 3
#define N_KINDS   5

static struct {
	andiron_call_fn run, done;
	void *arg;
	uint32_t health;
	char said[300];
	uint64_t n_sent, n_requests;
	bool has_timer;
} seen;

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 0;
}

static void health(uint64_t instance, uint32_t state, const struct andiron_str *message)
{
	seen.health = state;
	snprintf(seen.said, sizeof(seen.said), "%.*s", (int)message->len, message->ptr);
}

static int32_t timer_set(uint64_t instance, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
			 void *arg, uint64_t *ret_timer)
{
	seen.has_timer = true;
	*ret_timer = 1;
	return 0;
}

static void timer_cancel(uint64_t instance, uint64_t timer)
{
	seen.has_timer = false;
}

static int32_t work(uint64_t instance, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	seen.run = run;
	seen.done = done;
	seen.arg = arg;
	return 0;
}

static int32_t send_batch(uint64_t instance, const struct andiron_batch *batch)
{
	seen.n_sent += batch->samples;
	return 0;
}

static void ledger_add(uint64_t instance, uint32_t entry, const struct andiron_str *reason,
		       uint64_t samples)
{
}

static void request_targets(uint64_t instance, const char *port)
{
	seen.n_requests++;
}

static const struct andiron_host host = {
	.size = sizeof(host),
	.log_enabled = log_enabled,
	.health = health,
	.timer_set = timer_set,
	.timer_cancel = timer_cancel,
	.work = work,
	.send_batch = send_batch,
	.ledger_add = ledger_add,
	.request_targets = request_targets,
};

static int scraper_of(struct scraper **ret)
{
	static const struct abi_context context = {&host, 1};
	const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	struct error err = ERROR_NULL;
	struct settings *settings;
	int r = settings_new(&none, &settings, &err);

	return r < 0 ? r : scraper_new(&context, settings, ret);
}

static void free_scraper(struct scraper *s)
{
	scraper_stop(s);
	scraper_free(s);
}

static const struct andiron_targets *targets_of(size_t n)
{
	struct target_list *list = target_list_new(1);
	const struct andiron_targets *ret;

	for (size_t i = 0; i < n; i++) {
		char address[] = "h0:1";
		struct target_label label = {STR("__address__"), str_of(address)};

		address[1] = (char)('0' + i);
		expect_eq(target_list_set(list, i, i, &label, 1), 0);
	}
	expect_eq(target_list_flush(list, &ret), 0);
	target_list_free(list);
	return ret;
}

static int take_targets(void *context)
{
	const struct andiron_targets *targets = context;
	struct scraper *s;
	int r = scraper_of(&s);

	if (r < 0)
		return r;
	seen.n_requests = 0;
	scraper_targets(s, targets);
	r = s->repair_ns ? -ENOMEM : 0;
	if (r < 0) {
		expect_eq(seen.health, ANDIRON_HEALTH_UNHEALTHY);
		expect(seen.has_timer);
		targets_repair(s);
		if (seen.n_requests)
			scraper_targets(s, targets);
	}
	expect_eq(s->targets.n, N_TARGETS);
	expect_eq(s->jobs.n, N_TARGETS * N_KINDS);
	expect_eq(s->heap.items.n, N_TARGETS * N_KINDS);
	expect_eq(seen.health, ANDIRON_HEALTH_HEALTHY);
	free_scraper(s);
	return r;
}

/* Whatever memory is short for, all profiles are scraped when there is some again, although the
 * targets stay what they are; and health says so. */
TEST(what_memory_was_short_for_comes_later)
{
	const struct andiron_targets *targets = targets_of(N_TARGETS);

	test_each_failing_allocation(take_targets, (void *)(uintptr_t)targets);
	targets->release(targets->owner);
}

/* An answer of the first job; false: no memory for it here. */
static bool answer(struct scraper *s, int totals_kind, struct str body)
{
	struct flight *f = calloc(1, sizeof(*f));
	struct job *job = s->jobs.p[0];

	if (!f)
		return false;
	f->scraper = s;
	f->job = job;
	f->totals_kind = totals_kind;
	f->totals = job->totals;
	if (buf_str_append(&f->body, body) < 0) {
		free(f);
		return false;
	}
	due_remove(&s->heap, &job->due);
	job->flight = f;
	judge_add(s, f);
	judge_begin(s);
	seen.run(seen.arg);
	seen.done(seen.arg);
	return true;
}

/* What comes of a request of a job; NULL: an answer. */
static void come(struct scraper *s, size_t i, const char *why)
{
	struct flight *f = calloc(1, sizeof(*f));
	struct job *job = s->jobs.p[i];

	f->scraper = s;
	f->job = job;
	f->totals = job->totals;
	f->result = why ? -EPROTO : 0;
	f->why = why ? strdup(why) : NULL;
	due_remove(&s->heap, &job->due);
	job->flight = f;
	scraper_landed(s, f);
	scraper_say(s);
}

/* Health names one profile that fails now, with its reason, and never one that does not. */
TEST(health_says_why_one_fails)
{
	const struct andiron_targets *targets = targets_of(2);
	struct scraper *s;

	expect_eq(scraper_of(&s), 0);
	scraper_targets(s, targets);
	targets->release(targets->owner);
	expect_str(str_of(seen.said), "2 targets, 10 profiles");
	come(s, 3, "it is gone");
	come(s, 7, "it is mad");
	expect_str(str_of(seen.said),
		   "2 targets, 10 profiles; 2 of these fail, and 0 targets cannot be asked; one is "
		   "mutex of h0:1: it is gone; the status of the targets has all");
	come(s, 3, NULL);
	expect_str(str_of(seen.said),
		   "2 targets, 10 profiles; 1 of these fail, and 0 targets cannot be asked; one is "
		   "goroutine of h1:1: it is mad; the status of the targets has all");
	come(s, 7, NULL);
	expect_str(str_of(seen.said), "2 targets, 10 profiles");
	free_scraper(s);
}

struct one {
	struct scraper *s;
	struct buf body;
};

static int take_answer(void *context)
{
	struct one *one = context;
	struct scraper *s = one->s;
	struct scraper_counts before = s->counts;
	uint64_t n_sent = seen.n_sent;

	if (!answer(s, TOTALS_NONE, buf_str(&one->body)))
		return -ENOMEM;
	n_sent = seen.n_sent - n_sent;
	expect_eq(s->counts.profiles - before.profiles, n_sent);
	expect_eq(s->counts.failures - before.failures, 1 - n_sent);
	return n_sent ? 0 : -ENOMEM;
}

/* A profile is sent and counted as that, or is counted as failed: never neither, never both. */
TEST(each_answer_is_counted_once)
{
	struct one one = {.body = profile_of((struct counted[]){{7, 10, 100}}, 1)};
	const struct andiron_targets *targets = targets_of(1);

	expect_eq(scraper_of(&one.s), 0);
	scraper_targets(one.s, targets);
	targets->release(targets->owner);
	test_each_failing_allocation(take_answer, &one);
	free_scraper(one.s);
	buf_free(&one.body);
}

/* Totals of all targets have a bound: beyond it an answer is refused, and the target says why. */
TEST(totals_of_all_have_a_bound)
{
	struct buf body = profile_of((struct counted[]){{7, 10, 100}}, 1);
	const struct andiron_targets *targets = targets_of(1);
	struct scraper *s;

	expect_eq(scraper_of(&s), 0);
	scraper_targets(s, targets);
	targets->release(targets->owner);
	s->counts.totals_bytes = TOTALS_MAX_BYTES - 23;
	expect(answer(s, TOTALS_ALLOC, buf_str(&body)));
	expect_eq(s->counts.failures, 1);
	expect(strstr(s->jobs.p[0]->why, "more than 256 MiB would be kept of all totals") != NULL);
	s->counts.totals_bytes = TOTALS_MAX_BYTES - 24;
	s->jobs.p[0]->totals_bytes = 0;
	expect(answer(s, TOTALS_ALLOC, buf_str(&body)));
	expect_eq(s->counts.failures, 1);
	expect(!s->jobs.p[0]->why);
	free_scraper(s);
	buf_free(&body);
}
