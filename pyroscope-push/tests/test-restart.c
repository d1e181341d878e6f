/* SPDX-License-Identifier: Apache-2.0 */
/* The writer with a spool: over outages, restarts, kill -9, full disks. What every test protects:
 * what one run leaves is what the next one carries, and the server has each sample once. */
#include "base/clock.h"
#include "testing/test.h"
#include "pyroscope-push/spool/record-store.h"
#include "pyroscope-push/tests/test-bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t directory_bytes(const struct bench *t)
{
	DIR *dir = opendir(t->directory);
	const struct dirent *entry;
	uint64_t sum = 0;

	expect(dir);
	while ((entry = readdir(dir))) {
		struct stat st;

		if (strstr(entry->d_name, ".spool") &&
		    fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			sum += (uint64_t)st.st_size;
	}
	closedir(dir);
	return sum;
}

static bool has_file(const struct bench *t, const char *prefix)
{
	DIR *dir = opendir(t->directory);
	const struct dirent *entry;
	bool found = false;

	expect(dir);
	while ((entry = readdir(dir)))
		found |= strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return found;
}

static void wait_ms(int64_t ms)
{
	static const bool never;

	test_host_until(&never, ms);
}

/* An outage that outlives the agent: the next run delivers all, each sample once, and its times go
 * on after those of the run before. */
TEST(an_outage_that_outlives_the_agent)
{
	static struct bench t;
	uint64_t spooled;

	bench_open(&t);
	bench_make_directory(&t);
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	for (int i = 0; i < 5; i++)
		bench_feed(&t, 10, 20);
	bench_drain(&t, 20);
	expect_eq(t.host->spooled, t.taken);
	spooled = t.host->spooled;
	bench_end(&t);
	/* The server is back, at the same place for the writer. */
	set_url(&t.args, 0, test_server_port(t.receiver.server));
	t.taken = 0;
	bench_start(&t);
	/* Another URL: nothing is owed to it. */
	expect_eq(t.host->carried, spooled);
	expect_eq(test_host_dropped("endpoint_removed"), spooled);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* Ends a run whose server hangs, so that all of it stays; returns what stayed. */
static uint64_t leave_run(struct bench *t, uint32_t groups, uint32_t rows)
{
	uint64_t spooled;

	t->receiver.hang = true;
	bench_start(t);
	bench_feed(t, groups, rows);
	bench_feed(t, groups, rows);
	bench_drain(t, 20);
	spooled = t->host->spooled;
	bench_end(t);
	t->receiver.hang = false;
	t->taken = 0;
	return spooled;
}

TEST(what_one_run_leaves_the_next_delivers)
{
	static struct bench t;
	uint64_t spooled;

	bench_open(&t);
	bench_make_directory(&t);
	spooled = leave_run(&t, 10, 20);
	expect_eq(spooled, 1200);
	bench_start(&t);
	expect_eq(t.host->carried, spooled);
	bench_feed(&t, 10, 20);
	bench_drain(&t, 10000);
	expect_eq(t.host->delivered, t.taken + spooled);
	expect_eq(t.host->spooled, 0);
	bench_end(&t);
	expect_eq(stored_samples(&t.receiver), 1800); /* one time, two profiles: refused there */
	t.taken = 0;
	bench_start(&t); /* nothing is left */
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void until_requests(const struct bench *t, uint64_t n)
{
	while (endpoint_counts(writer_endpoint(t->writer, 0))->requests < n)
		wait_ms(1);
}

static void until_uncertain(const struct bench *t, uint64_t samples)
{
	while (t->host->uncertain < samples)
		wait_ms(1);
}

static void until_dropped(const char *reason, uint64_t samples)
{
	while (test_host_dropped(reason) < samples)
		wait_ms(1);
}

/* Against the bench's server, which does not answer. */
static void run_unanswered(struct bench *t, const struct bench_run *run)
{
	t->receiver.hang = true;
	bench_run_end(run, test_server_port(t->receiver.server));
	t->receiver.hang = false;
}

static void feed_thrice(struct bench *t)
{
	for (int i = 0; i < 3; i++)
		bench_feed(t, 10, 20);
}

static void until_one_request(struct bench *t)
{
	bench_feed(t, 10, 20);
	until_requests(t, 1);
}

/* kill -9 after batches: what is in the spool is delivered by the next run. */
TEST(kill_9_costs_nothing_that_was_taken)
{
	static struct bench t;
	struct bench_run run;

	bench_make_directory(&t);
	run = bench_run(&t, feed_thrice);
	bench_open(&t);
	run_unanswered(&t, &run);
	bench_start(&t);
	expect_eq(t.host->carried, 1800);
	bench_drain(&t, 10000);
	expect_eq(t.host->delivered, 1800);
	expect_eq(test_host_dropped("lost_at_kill"), 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* A batch that was begun and never ended, as kill -9 leaves it. */
TEST(what_was_lost_at_a_kill_is_told)
{
	static struct bench t;
	struct spool_options options = {
		.directory = t.directory, .owner = "pyroscope.write", .max_bytes = 8 << 20};
	struct spool_events events = {0};
	struct spool *spool;

	bench_open(&t);
	bench_make_directory(&t);
	expect_eq(spool_open(&options, &events, &spool, NULL), 0);
	expect_eq(spool_begin(spool, 77), 0);
	spool_close(spool);
	bench_start(&t);
	expect_eq(t.host->carried, 77);
	expect_eq(test_host_dropped("lost_at_kill"), 77);
	bench_check(&t);
	bench_end(&t);
	bench_start(&t);
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* With a dead server beside a living one, the living one gets all at once, and what is kept is for
 * the dead one alone. */
TEST(endpoints_have_cursors_of_their_own)
{
	static struct bench t;
	uint16_t dead = test_unused_port();

	bench_open(&t);
	bench_make_directory(&t);
	t.args.n = 2;
	t.args.backoff_ms = 50;
	set_url(&t.args, 1, dead);
	bench_start(&t);
	bench_feed(&t, 10, 10);
	while (endpoint_counts(writer_endpoint(t.writer, 0))->sent_profiles < 10)
		wait_ms(1);
	expect_eq(stored_samples(&t.receiver), 300);
	bench_drain(&t, 20);
	expect_eq(t.host->spooled, 300);
	bench_end(&t);
	t.taken = 0;
	bench_start(&t);
	expect_eq(t.host->carried, 300);
	expect(endpoint_is_idle(writer_endpoint(t.writer, 0)));
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 1))->queued_profiles, 10);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* An outage is waited out however short the retries are; what becomes too old is given up and
 * counted, and never sent. */
TEST(what_is_too_old_expires)
{
	static struct bench t;

	bench_open(&t);
	bench_make_directory(&t);
	t.args.retries = 2;
	t.args.max_age_ms = 3000;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 3, 10);
	until_requests(&t, 5);
	expect_eq(t.host->n_dropped, 0);
	until_dropped("expired", t.taken);
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 0))->expired_profiles, 3);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* What was sent before it became too old may be there, though no answer came. */
TEST(what_may_have_arrived_is_uncertain_at_its_end)
{
	static struct bench t;

	bench_open(&t);
	bench_make_directory(&t);
	t.args.timeout_ms = 500;
	t.args.max_age_ms = 3000;
	t.receiver.hang = true; /* having stored it */
	bench_start(&t);
	bench_feed(&t, 3, 10);
	until_uncertain(&t, t.taken);
	expect_eq(t.host->n_dropped, 0);
	expect_eq(t.host->spooled, 0);
	expect_eq(endpoint_counts(writer_endpoint(t.writer, 0))->uncertain_profiles, 3);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* That it was sent is not forgotten over a restart. */
TEST(what_an_earlier_run_sent_is_uncertain_at_its_end)
{
	static struct bench t;

	bench_open(&t);
	bench_make_directory(&t);
	t.args.timeout_ms = 500;
	t.receiver.hang = true;
	bench_start(&t);
	bench_feed(&t, 3, 10);
	while (endpoint_counts(writer_endpoint(t.writer, 0))->retries == 0)
		wait_ms(1);
	bench_drain(&t, 20);
	expect_eq(t.host->spooled, t.taken);
	bench_end(&t);
	t.taken = 0;
	t.args.max_age_ms = 1;
	bench_start(&t);
	expect_eq(t.host->carried, 90);
	until_uncertain(&t, 90);
	expect_eq(t.host->n_dropped, 0);
	bench_end(&t);
	bench_start(&t); /* and that is told once */
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* Disk and memory stay below their limits whatever comes. */
TEST(limits_are_kept_in_an_outage)
{
	static struct bench t;

	bench_open(&t);
	bench_make_directory(&t);
	t.args.backoff_ms = 60000;
	t.args.queue_bytes = 1 << 20;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	for (int i = 0; i < 110; i++) {
		bench_feed(&t, 20, 300);
		expect(directory_bytes(&t) <= 8 << 20);
		expect(endpoint_counts(writer_endpoint(t.writer, 0))->queued_bytes <= 1 << 20);
	}
	expect(test_host_dropped("spool_full") > 0);
	expect(t.host->spooled > 0);
	bench_drain(&t, 20);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* What memory cannot keep is read back when it is sent. */
TEST(a_long_queue_is_sent_from_the_disk)
{
	static struct bench t;
	uint64_t spooled = 0;

	bench_open(&t);
	bench_make_directory(&t);
	t.args.spool_bytes = 64 << 20;
	t.receiver.hang = true;
	bench_start(&t);
	for (int i = 0; i < 90; i++)
		bench_feed(&t, 20, 300);
	expect(writer_spool_bytes(t.writer, NULL) > STORE_CACHE_BYTES);
	bench_drain(&t, 20);
	spooled = t.host->spooled;
	expect_eq(spooled, t.taken);
	bench_end(&t);
	t.receiver.hang = false;
	t.taken = 0;
	bench_start(&t);
	bench_drain(&t, 60000);
	expect_eq(t.host->delivered, spooled);
	expect_eq(stored_samples(&t.receiver), (int64_t)spooled);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* A disk that is full: memory holds what waits, health says so, and when there is room again what
 * is left at the end goes to the disk. */
TEST(a_full_disk_costs_nothing)
{
	static struct bench t;
	struct rlimit before, none;

	expect_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 600; /* bytes that a file may have */
	signal(SIGXFSZ, SIG_IGN);
	bench_open(&t);
	bench_make_directory(&t);
	t.receiver.hang = true;
	bench_start(&t);
	expect_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	bench_feed(&t, 10, 20);
	expect_eq(t.host->in_flight, t.taken);
	expect_eq(t.host->health, ANDIRON_HEALTH_UNHEALTHY);
	expect(strstr(t.host->message, "cannot be written: File too large"));
	expect_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	bench_drain(&t, 20);
	expect_eq(t.host->spooled, t.taken);
	bench_end(&t);
	t.receiver.hang = false;
	t.taken = 0;
	bench_start(&t);
	bench_drain(&t, 10000);
	expect_eq(t.host->delivered, 600);
	expect_eq(stored_samples(&t.receiver), 600);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* A directory that cannot be had: everything goes on without it. */
TEST(a_missing_directory_is_told_of)
{
	static struct bench t;

	bench_open(&t);
	t.args.spool = "/proc/nowhere/spool";
	bench_start(&t);
	bench_feed(&t, 10, 20);
	expect(strstr(t.host->message, "cannot make the spool's directory"));
	bench_drain(&t, 10000);
	expect_eq(t.host->delivered, t.taken);
	bench_close(&t);
}

/* A payload after which the server breaks down three times, answering in between, is set aside, and
 * the others of its request arrive. */
TEST(what_kills_the_server_is_set_aside)
{
	static struct bench t;

	bench_open(&t);
	bench_make_directory(&t);
	t.receiver.poison = BENCH_SERIES_7;
	t.receiver.deadly = true;
	bench_start(&t);
	bench_feed(&t, 20, 10);
	bench_drain(&t, 20000);
	expect_eq(test_host_dropped("killed_server"), 30);
	expect_eq(t.host->delivered, 570);
	expect(has_file(&t, "aside-"));
	expect_eq(stored_samples(&t.receiver), 570);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* A protocol whose server counts a re-send twice. */
static struct protocol counts_twice(void)
{
	struct protocol p = protocol_pyroscope;

	p.idempotent = false;
	return p;
}

/* What went out without an answer is uncertain, and goes out once. */
TEST(what_may_have_arrived_is_not_sent_again)
{
	static struct bench t;
	struct protocol once = counts_twice();

	bench_open(&t);
	bench_make_directory(&t);
	t.protocol = &once;
	t.receiver.poison = "s";
	t.receiver.deadly = true; /* it loses every answer */
	bench_start(&t);
	bench_feed(&t, 5, 10);
	until_uncertain(&t, t.taken);
	wait_ms(100); /* for another request, which is not to come */
	expect_eq(t.host->uncertain, t.taken);
	expect_eq(t.receiver.n_requests, 1);
	bench_close(&t);
	bench_remove_directory(&t);
}

static void update_url(struct bench *t, uint16_t port)
{
	struct push_config *config;
	struct error err = ERROR_NULL;

	set_url(&t->args, 0, port);
	expect_eq(push_config_new(t->protocol ? t->protocol : &protocol_pyroscope,
				  arguments(&t->args), &config, &err),
		  0);
	expect_eq(writer_update(t->writer, config, &err), 0);
}

/* What nobody took is tried without a word to the spool, in which an outage would else stand as
 * sent whenever the disk gives up; and is sent once the server answers. */
TEST(what_nobody_took_is_not_noted_as_sent)
{
	static struct bench t;
	struct protocol once = counts_twice();
	uint64_t bytes;

	bench_open(&t);
	bench_make_directory(&t);
	t.protocol = &once;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 5, 10);
	until_requests(&t, 2);
	bytes = writer_spool_bytes(t.writer, NULL);
	until_requests(&t, 20);
	expect_eq(writer_spool_bytes(t.writer, NULL), bytes);
	expect_eq(t.receiver.n_requests, 0);
	update_url(&t, test_server_port(t.receiver.server));
	bench_drain(&t, 10000);
	expect_eq(t.host->delivered, t.taken);
	expect_eq(t.receiver.n_requests, 2);
	expect_eq(stored_samples(&t.receiver), (int64_t)t.taken);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* Nor is it by the next run, if this one is killed before an answer comes. */
TEST(what_was_sent_at_a_kill_is_uncertain)
{
	static struct bench t;
	struct protocol once = counts_twice();
	struct bench_run run;

	bench_make_directory(&t);
	t.protocol = &once;
	run = bench_run(&t, until_one_request);
	bench_open(&t);
	run_unanswered(&t, &run);
	bench_start(&t);
	expect_eq(t.host->carried, 600);
	expect_eq(t.host->uncertain, 600);
	bench_check(&t);
	bench_end(&t);
	bench_start(&t); /* told once */
	expect_eq(t.host->carried, 0);
	bench_close(&t);
	bench_remove_directory(&t);
}

/* A changed URL takes what waits along, on the disk as well. */
TEST(an_update_takes_the_spool_along)
{
	static struct bench t;

	bench_open(&t);
	bench_make_directory(&t);
	t.args.backoff_ms = 60000;
	set_url(&t.args, 0, test_unused_port());
	bench_start(&t);
	bench_feed(&t, 5, 5);
	update_url(&t, test_server_port(t.receiver.server));
	bench_drain(&t, 0);
	expect_eq(t.host->spooled, t.taken);
	bench_end(&t);
	t.taken = 0;
	bench_start(&t);
	bench_drain(&t, 10000);
	expect_eq(t.host->delivered, 75);
	bench_close(&t);
	bench_remove_directory(&t);
}
