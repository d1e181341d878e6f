/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the command's parts that need neither root nor a host. */
#include "base/clock.h"
#include "testing/test.h"
#include "cli/record/child.h"
#include "cli/record/pidfd-set.h"
#include "cli/cli.h"
#include "cli/malloc-tuning.h"
#include "cli/record/cpu-usage.h"
#include "cli/options.h"
#include "cli/doctor/precheck.h"
#include "cli/doctor/probe.h"
#include "cli/record/request.h"
#include "cli/session.h"

#include <errno.h>
#include <features.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

struct given {
	bool all;
	const char *text, *level;
	struct texts texts, noted;
	uint64_t number;
	int64_t duration;
	int first;
};

static const char *const levels[] = {"low", "high", NULL};

static const struct flag flags[] = {
	{"all", 'a', FLAG_INTO(struct given, all), NULL, "all"},
	{"text", 't', FLAG_INTO(struct given, text), "T", "text"},
	{"texts", 'o', FLAG_INTO(struct given, texts), "T", "texts"},
	{"number", 'n', FLAG_INTO(struct given, number), "N", "number", .min = 1, .max = 999},
	{"duration", 'd', FLAG_INTO(struct given, duration), "D", "duration",
	 .min = NS_PER_SEC / 10},
	{"level", 0, FLAG_INTO(struct given, level), "LEVEL", "level", .choices = levels},
	{"server.http.listen-addr", 0, FLAG_NOTED, offsetof(struct given, noted)},
	{"cluster.enabled", 0, FLAG_NOTED_BOOL, offsetof(struct given, noted)},
	{0},
};

static const struct command verb_test = {
	.verb = "test", .usage = "", .summary = "A verb.", .flags = flags};

static int parse(struct given *g, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	if (!freopen("/dev/null", "w", stderr))
		return -1;
	return options_parse(&verb_test, g, argc, argv, &g->first);
}

#define PARSE(g, ...) parse(g, (char *[]){(char[]){"test"}, __VA_ARGS__, NULL})
#define A(text)       ((char[]){text})

/* One request to end that comes twice, by `timeout` for example, is one. Every reload counts, and
 * so does whoever asks again later, or otherwise. */
TEST(echoes_of_a_signal_are_left_out)
{
	struct last_signal last = {0};

	expect(!signal_is_echo(&last, SIGTERM, 10 * NS_PER_SEC));
	expect(signal_is_echo(&last, SIGTERM, 10 * NS_PER_SEC));
	expect(signal_is_echo(&last, SIGTERM, 10 * NS_PER_SEC + 499 * NS_PER_MSEC));
	expect(!signal_is_echo(&last, SIGTERM, 10 * NS_PER_SEC + 500 * NS_PER_MSEC));
	expect(!signal_is_echo(&last, SIGINT, 10 * NS_PER_SEC + 501 * NS_PER_MSEC));
	expect(!signal_is_echo(&last, SIGHUP, 11 * NS_PER_SEC));
	expect(!signal_is_echo(&last, SIGHUP, 11 * NS_PER_SEC));
}

/* The words live as long as the test, like argv. */
TEST(options_of_each_kind_are_read)
{
	char *argv[] = {A("test"), A("-a"), A("-o"),    A("x"),      A("--texts=y"), A("-n"),
			A("11"),   A("-d"), A("1m30s"), A("--text"), A("one"),       A("--text"),
			A("two"),  A("--"), A("-a"),    NULL};
	struct given g = {.number = 97};

	expect_eq(parse(&g, argv), OPTIONS_DONE);
	expect(g.all);
	expect_eq(g.texts.n, 2);
	expect_str(str_of(g.texts.p[0]), "x");
	expect_str(str_of(g.texts.p[1]), "y");
	expect_eq(g.number, 11);
	expect_eq(g.duration, 90 * NS_PER_SEC);
	expect_str(str_of(g.text), "two");
	expect_eq(g.first, 14);
	vec_free(&g.texts);
}

/* Seconds without a unit are what people type. */
TEST(a_bare_number_is_seconds)
{
	struct given g = {0};

	expect_eq(PARSE(&g, A("-d"), A("5")), OPTIONS_DONE);
	expect_eq(g.duration, 5 * NS_PER_SEC);
}

TEST(nonsense_is_a_usage_error)
{
	char *argv[] = {A("test"), A("--level"), A("low"), NULL};
	struct given g = {0};

	expect_eq(PARSE(&g, A("--alll")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-z")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("--text")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-n"), A("0")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-n"), A("1000")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-n"), A("1x")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-d"), A("soon")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-d"), A("0")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-d"), A("-5s")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("-d"), A("18446744073709551615")), EXIT_USAGE);
	expect_eq(PARSE(&g, A("--level"), A("lower")), EXIT_USAGE);
	expect_eq(parse(&g, argv), OPTIONS_DONE);
	expect_str(str_of(g.level), "low");
}

/* Alloy's switches may stand with or without a value, and never eat the next word. What is off is
 * off here, too. */
TEST(foreign_flags_are_noted)
{
	struct given g = {0};

	expect_eq(PARSE(&g, A("--server.http.listen-addr"), A("0.0.0.0:1"), A("--cluster.enabled"),
			A("--cluster.enabled=true"), A("--cluster.enabled=false"), A("x")),
		  OPTIONS_DONE);
	expect_eq(g.noted.n, 3);
	expect_eq(g.first, 6);
	expect_eq(PARSE(&g, A("--cluster.enabled=maybe")), EXIT_USAGE);
	vec_free(&g.noted);
}

TEST(words_are_suggested_if_near)
{
	static const char *const words[] = {"record", "report", "run"};

	expect_str(str_of(options_nearest("recrod", words, 3)), "record");
	expect(!options_nearest("frobnicate", words, 3));
}

TEST(busy_time_is_read)
{
	struct machine_time a, b;

	expect(machine_parse(STR("cpu  10 0 10 70 10 0 0 0 5 0\ncpu0 …"), &a));
	expect_eq(a.busy, 20);
	expect_eq(a.total, 100);
	expect(machine_parse(STR("cpu  20 10 20 130 20"), &b));
	expect_eq(machine_busy(&a, &b), 30);
	expect_eq(machine_busy(&b, &a), 0);
	expect(!machine_parse(STR("cpu  1 2 3"), &b));
	expect(!machine_parse(STR("cpu  1 x 3 4 5"), &b));
	expect(!machine_parse(STR("intr 1 2 3 4"), &b));
	expect(!machine_parse(STR(""), &b));
	a = machine_time();
	expect(a.total > 0);
}

/* --- record --- */

/* Whether the request is refused with these words; it is then blank again. */
static bool check_fails(struct record_request *q, const char *words)
{
	struct error err = ERROR_NULL;
	bool named = record_check(q, &err) < 0 && strstr(err.text, words);

	vec_free(&q->outputs);
	vec_free(&q->pids);
	*q = (struct record_request){0};
	return named;
}

TEST(recording_alone_is_everything_for_ten_seconds)
{
	struct record_request q = {.rate_hz = 97};
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	expect_eq(record_check(&q, &err), 0);
	expect(q.everything);
	expect_eq(q.duration_ns, 10 * NS_PER_SEC);
	expect_eq(record_config(&q, 0, &text, &err), 0);
	expect(str_search(buf_str(&text), STR("targets_only     = false")) < text.n);
	expect(str_search(buf_str(&text), STR("paths = [\"flame.html\",\"profile.pb.gz\",]")) <
	       text.n);
	expect(str_search(buf_str(&text), STR("targets          =")) == text.n);
	buf_free(&text);
	vec_free(&q.outputs);
}

TEST(what_cannot_be_recorded_is_refused)
{
	struct record_request q = {0};
	char *command[] = {A("true"), NULL};

	expect(vec_push(&q.outputs, "/tmp/x.png"));
	expect(check_fails(&q, ".html (flame graph), .pb.gz (pprof) or .folded"));
	expect(vec_push(&q.outputs, ".html"));
	expect(check_fails(&q, "must end in"));
	expect(vec_push(&q.outputs, "/does/not/exist/x.html"));
	expect(check_fails(&q, "/does/not/exist"));
	expect(vec_push(&q.pids, "12x"));
	expect(check_fails(&q, "no process id"));
	expect(vec_push(&q.pids, "0"));
	expect(check_fails(&q, "no process id"));
	expect(vec_push(&q.pids, "4194305"));
	expect(check_fails(&q, "there is no process"));
	expect(vec_push(&q.pids, "1"));
	q.command = command;
	expect(check_fails(&q, "leave -p away"));
	q.everything = true;
	expect(vec_push(&q.pids, "1"));
	expect(check_fails(&q, "choose one"));
}

/* Names that people choose become strings of the configuration, whatever is in them. */
TEST(the_text_quotes_what_it_is_given)
{
	char *command[] = {A("sh"), A("-c"), A("echo \"\\\n\""), A("\xff"), NULL};
	struct record_request q = {.rate_hz = 49, .command = command, .group_by = "pod, \"x"};
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;
	struct str all;

	expect(vec_push(&q.outputs, "a\"b\\c\td.html"));
	expect_eq(record_check(&q, &err), 0);
	expect_eq(q.duration_ns, 0);
	expect_eq(record_config(&q, 4711, &text, &err), 0);
	all = buf_str(&text);
	expect(str_search(all, STR("paths = [\"a\\\"b\\\\c\\u0009d.html\",]")) < all.n);
	expect(str_search(all, STR("group_by = [\"pod\",\"\\\"x\",]")) < all.n);
	expect(str_search(all, STR("title = \"sh -c echo \\\"\\\\\\n\\\"\"")) < all.n);
	expect(str_search(all, STR("{\"__process_pid__\" = \"4711\"}")) < all.n);
	expect(str_search(all, STR("follow           = true")) < all.n);
	expect(str_search(all, STR("sample_rate      = 49")) < all.n);
	expect(str_utf8(all));
	buf_free(&text);
	vec_free(&q.outputs);
}

/* --- the command --- */

static int run_command(char **argv)
{
	struct caller nobody = {.by_sudo = false};
	struct ends ends = ENDS_NULL;
	struct pollfd ended = {.events = POLLIN};
	struct child child;
	int code;

	expect_eq(child_start(&child, argv, false, &nobody, NULL), 0);
	expect_eq(ends_add(&ends, child.pid), 0);
	ended.fd = ends.fd;
	expect_eq(poll(&ended, 1, 0), 0); /* held back */
	expect(!child_reap(&child));
	expect_eq(ends_take(&ends), 1);
	child_let_go(&child);
	expect_eq(child_exec_error(&child), 0);
	expect_eq(poll(&ended, 1, -1), 1);
	expect_eq(ends_take(&ends), 0);
	expect_eq(poll(&ended, 1, 0), 0); /* said once */
	expect(child_reap(&child));
	code = child.exit_code;
	child_fini(&child);
	ends_fini(&ends);
	return code;
}

TEST(a_command_keeps_its_exit_code)
{
	expect_eq(run_command((char *[]){A("true"), NULL}), 0);
	expect_eq(run_command((char *[]){A("sh"), A("-c"), A("exit 42"), NULL}), 42);
	expect_eq(run_command((char *[]){A("sh"), A("-c"), A("kill -9 $$"), NULL}), 137);
}

TEST(a_command_that_cannot_run_is_refused_before)
{
	struct caller nobody = {.by_sudo = false};
	struct error err = ERROR_NULL;
	struct child child;

	/* A folder of PATH that we may not search would answer for all others. */
	expect_eq(setenv("PATH", "/usr/bin:/bin", 1), 0);
	expect_eq(child_start(&child, (char *[]){A("no-such-command"), NULL}, false, &nobody, &err),
		  -ENOENT);
	expect_eq(child_start(&child, (char *[]){A("/etc/passwd"), NULL}, false, &nobody, &err),
		  -EACCES);
	expect_eq(child_start(&child, (char *[]){A("/"), NULL}, false, &nobody, &err), -EACCES);
	expect_eq(child_start(&child, (char *[]){A(""), NULL}, false, &nobody, &err), -ENOENT);
	expect_eq(child_code_of(ENOENT), 127);
	expect_eq(child_code_of(EACCES), 126);
}

/* Whoever is never let go runs nothing and leaves nothing. */
TEST(a_command_that_is_not_let_go_never_runs)
{
	struct caller nobody = {.by_sudo = false};
	char path[] = "/tmp/test-cli-XXXXXX", script[64];
	int fd = mkstemp(path);
	struct child child;

	expect(fd >= 0);
	close(fd);
	snprintf(script, sizeof(script), "rm %s", path);
	expect_eq(child_start(&child, (char *[]){A("sh"), A("-c"), script, NULL}, false, &nobody,
			      NULL),
		  0);
	child_fini(&child);
	expect_eq(access(path, F_OK), 0);
	unlink(path);
}

/* Without privilege the first failure names the capability, and what would only repeat it says
 * nothing. */
TEST(points_have_causes_and_fixes)
{
	struct precheck p;

	precheck_run(&p);
	expect(p.n > 8);
	for (size_t i = 0; i < p.n; i++) {
		expect(*p.points[i].name && *p.points[i].text);
		if (p.points[i].state == POINT_FAILED || p.points[i].state == POINT_NOTE)
			expect(*p.points[i].fix);
	}
	if (p.points[0].state == POINT_FAILED)
		expect(precheck_failure(&p) == &p.points[0]);
}

TEST(kernels_are_compared_by_number)
{
	struct probe_kernel k = {5, 9, ""};

	expect(probe_kernel_below(&k, 5, 10));
	k.minor = 10;
	expect(!probe_kernel_below(&k, 5, 10));
	k.major = 6, k.minor = 1;
	expect(!probe_kernel_below(&k, 5, 10));
	k = probe_kernel();
	expect(k.major >= 4);
}

#ifdef __GLIBC__
/* How many arenas the C library's heap has. */
static size_t n_arenas(void)
{
	char text[65536] = "";
	FILE *f = fmemopen(text, sizeof(text) - 1, "w");
	size_t n = 0;

	expect(f);
	expect_eq(malloc_info(0, f), 0);
	fclose(f);
	for (const char *p = text; (p = strstr(p, "<heap nr=")); p++)
		n++;
	return n;
}

static void *use_heap(void *context)
{
	void *p = malloc(1000);

	*(bool *)context = p != NULL;
	free(p);
	return NULL;
}

/* No thread of the agent's gets an arena, in which what it frees would stay. */
TEST(threads_share_one_arena)
{
	size_t before = n_arenas();
	pthread_t thread;
	bool done = false;

	heap_keep_small();
	expect(before > 0);
	expect_eq(pthread_create(&thread, NULL, use_heap, &done), 0);
	expect_eq(pthread_join(thread, NULL), 0);
	expect(done);
	expect_eq(n_arenas(), before);
}
#endif
