/* SPDX-License-Identifier: Apache-2.0 */
/* relabel N: works the rules of a case on standard input (tests/golden/relabel.txt tells the form)
 * off over its labels, N times. Prints nanoseconds per target of the rules alone, and of a change
 * on its way through the whole component: from an update that comes in to the row that goes out.
 * Both are of the best thousand, since on a busy machine the others measure the neighbours. */
#include "relabel/answers.h"
#include "base/clock.h"
#include "relabel/relabel.h"

#include <stdio.h>
#include <stdlib.h>

#define TARGETS 1000u

struct bench {
	struct answers answers;
	struct arena arena;
	struct answer_labels in;
};

static bool read_case(struct bench *b)
{
	struct buf ignored = BUF_NULL;
	char *line = NULL;
	size_t capacity = 0;
	ssize_t n;
	bool good = true;

	while (good && (n = getline(&line, &capacity, stdin)) > 0) {
		struct str s = {line, (size_t)(n - (line[n - 1] == '\n'))};

		if (str_starts(s, STR("in ")))
			good = answers_labels(&b->arena, str_skip(s, 3), &b->in);
		else
			good = answers_take(&b->answers, s, &ignored);
	}
	if (b->answers.failed)
		fprintf(stderr, "bench-relabel: %s\n", b->answers.err.text);
	free(line);
	buf_free(&ignored);
	return good && !b->answers.failed && b->answers.rules.n && b->in.n;
}

static bool run_rules(struct bench *b, struct labels *labels)
{
	int r = labels_begin(labels, b->in.p, b->in.n);

	for (size_t k = 0; r == RULE_KEPT && k < b->answers.rules.n; k++)
		r = rule_apply(b->answers.rules.p[k], labels);
	return r == RULE_KEPT;
}

static int64_t measure_rules(struct bench *b, long n, long *ret_kept)
{
	struct labels labels = LABELS_NULL;
	int64_t best = INT64_MAX;

	for (long i = 0; i < n / (long)TARGETS; i++) {
		int64_t took = clock_mono();

		for (unsigned int k = 0; k < TARGETS; k++)
			*ret_kept += run_rules(b, &labels);
		took = clock_mono() - took;
		best = took < best ? took : best;
	}
	labels_free(&labels);
	return best / (int64_t)TARGETS;
}

/* Every target changes one label in each round. */
static bool set_all(struct bench *b, struct target_list *list, long round)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", round);
	for (size_t i = 0; i < b->in.n; i++)
		if (str_is(b->in.p[i].name, "__meta_kubernetes_pod_ready"))
			b->in.p[i].value = str_of(text);
	for (uint64_t row = 0; row < TARGETS; row++)
		if (target_list_set(list, row, row, b->in.p, b->in.n))
			return false;
	return true;
}

static bool carry(struct bench *b, struct target_list *list, struct relabel *relabel, long round,
		  int64_t *ret_ns)
{
	const struct andiron_targets *in = NULL, *out = NULL;
	int64_t began;
	bool good = set_all(b, list, round) && target_list_flush(list, &in) == 0;

	began = clock_mono();
	good = good && relabel_apply(relabel, in) == 0 && relabel_flush(relabel, &out) == 0;
	*ret_ns = clock_mono() - began;
	if (in)
		in->release(in->owner);
	if (out)
		out->release(out->owner);
	return good;
}

static int64_t measure_component(struct bench *b, long n)
{
	struct target_list *list = target_list_new(1);
	struct relabel *relabel = relabel_new(2);
	struct rules rules = {0};
	int64_t ns = 0, best = INT64_MAX;
	long rounds = n / (long)TARGETS;
	bool good = list && relabel;

	/* The rules are lent to it and taken back, so that they are freed once. */
	for (size_t i = 0; good && i < b->answers.rules.n; i++)
		good = vec_push(&rules, b->answers.rules.p[i]);
	b->answers.rules.n = 0;
	if (good)
		relabel_set_rules(relabel, &rules);
	good = good && carry(b, list, relabel, -1, &ns);
	for (long i = 0; good && i < rounds; i++) {
		good = carry(b, list, relabel, i, &ns);
		best = ns < best ? ns : best;
	}
	relabel_free(relabel);
	target_list_free(list);
	return good ? best / (int64_t)TARGETS : -1;
}

int main(int argc, char **argv)
{
	struct bench b = {.in = {NULL, 0}};
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 0, kept = 0;
	int64_t rules, component;

	if (n < (long)TARGETS || !read_case(&b)) {
		fprintf(stderr, "usage: bench-relabel N < CASE\n");
		return 1;
	}
	rules = measure_rules(&b, n, &kept);
	component = measure_component(&b, n);
	printf("%lld ns per target, kept %ld of %ld\n", (long long)rules, kept, n);
	printf("%lld ns per change through the component\n", (long long)component);
	answers_free(&b.answers);
	arena_free(&b.arena);
	return component < 0;
}
