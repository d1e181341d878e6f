/* SPDX-License-Identifier: Apache-2.0 */
/* relabel-answers: cases of relabeling and of regular expressions, lines on standard input,
 * answered by andiron's engine; as `prometheus-oracle answers` does by Prometheus's.
 * tests/golden/relabel.txt describes the lines. */
#include "relabel/answers.h"

#include <stdio.h>
#include <stdlib.h>

static int write_out(struct buf *out)
{
	int good = !out->n || fwrite(out->p, 1, out->n, stdout) == out->n;

	buf_clear(out);
	return good;
}

int main(void)
{
	struct answers answers = {.failed = false};
	struct buf out = BUF_NULL;
	char *line = NULL;
	size_t capacity = 0;
	ssize_t n;
	int good = 1;

	while (good && (n = getline(&line, &capacity, stdin)) > 0) {
		n -= line[n - 1] == '\n';
		good = answers_take(&answers, (struct str){line, (size_t)n}, &out);
		if (!good)
			fprintf(stderr, "relabel-answers: what is %.*s\n", (int)n, line);
		good = good && write_out(&out);
	}
	buf_free(&out);
	answers_free(&answers);
	free(line);
	return good && fflush(stdout) == 0 ? 0 : 1;
}
