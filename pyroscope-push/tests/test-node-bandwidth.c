/* SPDX-License-Identifier: Apache-2.0 */
/* The node's budget: what is held at once never passes the largest limit, whoever holds it, and
 * what a process held that is gone is free. */
#include "pyroscope-push/uploads/node-bandwidth.h"

#include "testing/test.h"
#include "pyroscope-push/tests/test-directory.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD 64

static int n_warnings;

static int32_t log_enabled(uint64_t instance, uint32_t level)
{
	return 1;
}

static void log_line(uint64_t instance, uint32_t level, const struct andiron_str *message,
		     const struct andiron_kv *kv, uint64_t n_kv)
{
	n_warnings += level == ANDIRON_LOG_WARN;
}

static const struct andiron_host host = {
	.size = sizeof(host), .log_enabled = log_enabled, .log = log_line};

static struct upload_share new_share(void)
{
	return (struct upload_share){.context = {.host = &host, .instance = 1}};
}

/* Writers of several limits come and go: the rates of those that run together stay below. */
TEST(what_is_held_at_once_stays_below_the_limit)
{
	static const int64_t limits[] = {1, 3, 100, 4096, 100000};
	struct {
		int part;
		int64_t rate, limit;
	} held[HELD];
	struct upload_share s = new_share();
	unsigned int seed = 3;
	uint64_t refused = 0, taken = 0;
	char directory[64];

	test_directory_make(directory, sizeof(directory));
	for (size_t i = 0; i < HELD; i++)
		held[i].part = -1;
	for (int round = 0; round < 20000; round++) {
		size_t at = (size_t)rand_r(&seed) % HELD;
		struct uploads_options o = {
			.bytes_per_second = limits[rand_r(&seed) % 5],
			.max_parallel = 1 + rand_r(&seed) % 8,
			.share = directory,
		};
		int64_t sum = 0, most = 0;

		if (held[at].part >= 0) {
			upload_share_give(&held[at].part);
		} else if (upload_share_take(&s, &o, &held[at].part)) {
			held[at].rate = upload_share_rate(&o);
			held[at].limit = o.bytes_per_second;
		}
		expect(held[at].part == -1 || held[at].rate > 0);
		for (size_t i = 0; i < HELD; i++) {
			if (held[i].part < 0)
				continue;
			sum += held[i].rate;
			most = held[i].limit > most ? held[i].limit : most;
		}
		expect(sum <= most);
		taken += held[at].part >= 0;
		refused += held[at].part < 0;
	}
	expect(taken > 1000 && refused > 1000);
	expect_eq(n_warnings, 0);
	for (size_t i = 0; i < HELD; i++)
		upload_share_give(&held[i].part);
	test_directory_clear(directory);
	rmdir(directory);
}

/* Takes all there is and says so; then it waits to be killed. */
static pid_t hold(const struct uploads_options *o)
{
	int ends[2], part;
	pid_t pid;
	char said;

	expect_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		struct upload_share s = new_share();

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (upload_share_take(&s, o, &part) && write(ends[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	expect_eq(read(ends[0], &said, 1), 1);
	close(ends[0]);
	return pid;
}

TEST(what_a_killed_process_held_is_free)
{
	char directory[64];
	struct uploads_options o = {.bytes_per_second = 1 << 20, .max_parallel = 1};
	struct upload_share s = new_share();
	int part = -1;
	pid_t pid;

	test_directory_make(directory, sizeof(directory));
	o.share = directory;
	pid = hold(&o);
	expect(!upload_share_take(&s, &o, &part));
	kill(pid, SIGKILL);
	expect_eq(waitpid(pid, NULL, 0), pid);
	expect(upload_share_take(&s, &o, &part) && part >= 0);
	upload_share_give(&part);
	upload_share_give(&part); /* harmless */
	test_directory_clear(directory);
	rmdir(directory);
}

/* Where there can be no file, nobody waits for it, and that is said once; where there is no limit,
 * no file is needed. */
TEST(without_a_file_each_keeps_its_own)
{
	struct uploads_options o = {
		.bytes_per_second = 1 << 20, .max_parallel = 1, .share = "/proc/nowhere/andiron"};
	struct upload_share s = new_share();
	int parts[3] = {7, 7, 7};

	n_warnings = 0;
	for (int i = 0; i < 3; i++) {
		expect(upload_share_take(&s, &o, &parts[i]));
		expect_eq(parts[i], -1);
	}
	expect_eq(n_warnings, 1);
	s = new_share();
	o.bytes_per_second = 0;
	expect(upload_share_take(&s, &o, &parts[0]));
	expect_eq(parts[0], -1);
	expect_eq(n_warnings, 1);
}
