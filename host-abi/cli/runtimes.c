/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes that hide what they run. Contract in runtimes.h. */
#include "runtimes.h"

#include "abi/unnamed.h"

#define N_RUNTIMES 2

/* An interpreter is its loop; a compiler at run time leaves code without a file. */
static int runtime_of(const struct profile *p, const struct profile_location *l)
{
	struct str name = STR(""), file = STR("");

	if (l->n_lines)
		name = p->functions[p->lines[l->line_start + l->n_lines - 1].function].name;
	if (l->mapping < p->n_mappings)
		file = p->mappings[l->mapping].file;
	if (str_starts(name, STR("_PyEval_EvalFrame")) || str_starts(name, STR("PyEval_EvalFrame")))
		return 0;
	if (str_starts(file, STR("[anon")) &&
	    (name.n == 0 || str_is(name, "[unknown]") || unnamed_is(name, file)))
		return 1;
	return -1;
}

const char *runtimes_hint(const struct profile *p)
{
	static const char *const hints[N_RUNTIMES] = {
		"much of this is CPython's own loop, which hides the Python functions:\n"
		"  from Python 3.12 on run `python3 -X perf`, and record again\n",
		"much of this is code that a runtime has compiled, without names:\n"
		"  run `node --perf-basic-prof`, or tell a JVM `jcmd PID Compiler.perfmap`, and record "
		"again\n",
	};
	int64_t sum = 0, hidden[N_RUNTIMES] = {0};

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		int64_t value = p->values[i * p->n_types + p->default_type];
		int runtime =
			s->n_frames ? runtime_of(p, &p->locations[p->frames[s->frame_start]]) : -1;

		sum += value;
		if (runtime >= 0)
			hidden[runtime] += value;
	}
	for (int k = 0; k < N_RUNTIMES; k++)
		if (sum > 0 && hidden[k] > sum / 100 * RUNTIMES_SHARE)
			return hints[k];
	return NULL;
}
