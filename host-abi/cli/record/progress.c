/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. All of it goes to standard error: standard output may be the recorded command's.
 */
#include "cli/record/progress.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define WIDTH 40

void progress_begin(struct progress *p, int64_t duration_ns, const char *what)
{
	*p = (struct progress){isatty(STDERR_FILENO) == 1, clock_mono(), duration_ns};
	if (p->terminal)
		return;
	if (duration_ns > 0)
		fprintf(stderr, "recording %s for %.3g s\n", what,
			(double)duration_ns / (double)NS_PER_SEC);
	else
		fprintf(stderr, "recording %s until it ends\n", what);
}

void progress_draw(const struct progress *p)
{
	int64_t passed = clock_mono() - p->started_ns;
	double seconds = (double)passed / (double)NS_PER_SEC;
	int filled;

	if (!p->terminal)
		return;
	if (p->duration_ns <= 0) {
		fprintf(stderr, "\rrecording %.1f s, Ctrl-C ends it", seconds);
		return;
	}
	filled = passed >= p->duration_ns ? WIDTH : (int)(passed * WIDTH / p->duration_ns);
	fprintf(stderr, "\rrecording [%.*s%.*s] %.1f of %.3g s", filled,
		"########################################", WIDTH - filled,
		"                                        ", seconds,
		(double)p->duration_ns / (double)NS_PER_SEC);
}

void progress_end(const struct progress *p)
{
	if (p->terminal && p->started_ns)
		fprintf(stderr, "\r\033[K");
}
