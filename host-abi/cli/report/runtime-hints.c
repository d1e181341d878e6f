/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes that hide what they run. Contract in runtime-hints.h. */
#include "cli/report/runtime-hints.h"

#include "export/call-tree.h"
#include "export/frame-type.h"

enum { CPYTHON, COMPILED, N_RUNTIMES };

/* What a frame says of its stack. */
struct signs {
	bool loop;  /* CPython's, which runs the functions */
	bool named; /* a function of a runtime, by its plugin, a perf map or a jitdump */
	bool bare;  /* code without a file or a name */
};

static struct str system_name_of(const struct profile *p, const struct profile_location *l)
{
	return p->functions[p->lines[l->line_start].function].system_name;
}

static bool is_of_a_runtime(const struct profile *p, const struct profile_location *l)
{
	static const char *const others[] = {"", "native", "kernel", "go", "rust"};
	struct str type = frame_type(p, l);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (str_is(type, others[i]))
			return false;
	return true;
}

static void look_at(const struct profile *p, const struct profile_location *l, struct signs *signs)
{
	struct str name = STR(""), file = p->mappings[l->mapping].file;

	if (l->n_lines)
		name = p->functions[p->lines[l->line_start + l->n_lines - 1].function].name;
	signs->loop |= str_starts(name, STR("_PyEval_EvalFrame")) ||
		       str_starts(name, STR("PyEval_EvalFrame")) ||
		       str_starts(name, STR("_TAIL_CALL_"));
	/* A marker of a runtime's plugin says itself what was not found. */
	signs->named |= is_of_a_runtime(p, l) || str_starts(name, STR("[CPython")) ||
			(l->n_lines && str_starts(system_name_of(p, l), STR("py::")));
	signs->bare |= str_starts(file, STR("[anon")) && call_tree_unsymbolized(name, file);
}

/* Which runtime hides what this sample ran; N_RUNTIMES: none. */
static int hidden_by(const struct profile *p, const struct profile_sample *s)
{
	struct signs signs = {0};

	for (uint32_t i = 0; i < s->n_frames; i++)
		look_at(p, &p->locations[p->frames[s->frame_start + i]], &signs);
	if (signs.loop && !signs.named)
		return CPYTHON;
	return signs.bare && !signs.named ? COMPILED : N_RUNTIMES;
}

const char *runtimes_hint(const struct profile *p)
{
	static const char *const hints[N_RUNTIMES] = {
		[CPYTHON] = "much of this is run by CPython's own loop, which hides the Python "
			    "functions:\n"
			    "  install the plugin andiron-python.so, or from Python 3.12 on run "
			    "`python3 -X perf`; then record again\n",
		[COMPILED] =
			"much of this is code that a runtime has compiled, without names:\n"
			"  of Node.js or Java: install the plugin andiron-v8.so or andiron-jvm.so, "
			"or run `node --perf-basic-prof`, or tell a JVM `jcmd PID "
			"Compiler.perfmap`; then record again\n"
			"  of another runtime, as PyPy, LuaJIT or .NET: names need a perf map, "
			"where it can write one\n",
	};
	int64_t sum = 0, hidden[N_RUNTIMES + 1] = {0};

	for (size_t i = 0; i < p->n_samples; i++) {
		int64_t value = p->values[i * p->n_types + p->default_type];

		sum += value;
		hidden[hidden_by(p, &p->samples[i])] += value;
	}
	for (int k = 0; k < N_RUNTIMES; k++)
		if (sum > 0 && hidden[k] > sum / 100 * RUNTIMES_SHARE)
			return hints[k];
	return NULL;
}
