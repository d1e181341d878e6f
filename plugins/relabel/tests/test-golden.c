/* SPDX-License-Identifier: Apache-2.0 */
/* Runs tables of cases: tests/golden/relabel.txt, whose head describes their form, and
 * tests/golden/relabel-prometheus.txt, what Prometheus has answered. */
#include "relabel/answers.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>

struct table {
	const char *path;
	struct str name; /* of the case */
	struct answers answers;
	struct buf answer; /* to the last line that asked; empty: compared */
	unsigned int n_checked;
};

static _Noreturn void fail(const struct table *t, const char *what, struct str want, struct str got)
{
	test_fail(t->path, 0, "%.*s: %s:\n# wanted %.*s\n# got    %.*s", STR_FMT(t->name), what,
		  STR_FMT(want), STR_FMT(got));
}

static bool same_labels(struct arena *arena, struct str want, struct str got)
{
	struct answer_labels a, b;

	if (!answers_labels(arena, want, &a) || !answers_labels(arena, got, &b) || a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (!str_eq(a.p[i].name, b.p[i].name) || !str_eq(a.p[i].value, b.p[i].value))
			return false;
	return true;
}

/* Labels in any order; of an error a part. */
static void compare(struct table *t, struct str want)
{
	struct str got = str_trim(buf_str(&t->answer)), want_rest = want, got_rest = got;
	struct str verb = str_cut(&want_rest, ' '), got_verb = str_cut(&got_rest, ' ');
	bool same;

	if (!str_eq(verb, got_verb))
		fail(t, "another answer", want, got);
	if (str_is(verb, "out"))
		same = same_labels(&t->answers.arena, want_rest, got_rest);
	else if (str_is(verb, "error"))
		same = !want_rest.n || str_search(got_rest, want_rest) < got_rest.n;
	else
		same = !want_rest.n || str_eq(want_rest, got_rest);
	if (!same)
		fail(t, "another result", want, got);
	buf_clear(&t->answer);
	t->n_checked++;
}

static bool is_answer(struct str line)
{
	static const struct str answers[] = {
		{"out", 3}, {"dropped", 7}, {"error", 5}, {"groups", 6}, {"none", 4}};

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (str_starts(line, answers[i]))
			return true;
	return false;
}

static void run_line(struct table *t, struct str line)
{
	if (is_answer(line)) {
		compare(t, line);
		return;
	}
	if (t->answer.n)
		fail(t, "nothing says what is right for", line, buf_str(&t->answer));
	if (str_starts(line, STR("== ")))
		t->name = str_skip(line, 3);
	if (!answers_take(&t->answers, line, &t->answer))
		fail(t, "what is", line, STR(""));
}

static unsigned int run_table(const char *path)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	struct table t = {.path = path};
	struct str rest;

	expect_eq(file_read(AT_FDCWD, path, &text, 8 << 20), 0);
	for (rest = buf_str(&text); rest.n;)
		run_line(&t, str_cut(&rest, '\n'));
	answers_free(&t.answers);
	buf_free(&t.answer);
	printf("# %u cases\n", t.n_checked);
	return t.n_checked;
}

/* Every case of the table that people wrote holds. */
TEST(by_hand)
{
	expect(run_table(GOLDEN "/relabel.txt") > 60);
}

/* What Prometheus's library answered to rules and expressions of all kinds is what comes out here.
 */
TEST(by_prometheus)
{
	expect(run_table(GOLDEN "/relabel-prometheus.txt") > 1000);
}
