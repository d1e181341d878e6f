/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about a configuration: every error and warning of a file at once, each with its place,
 * the source line, and what to do.
 *
 *     agent.alloy:7:3: error: pyroscope.ebpf has no argument "sample_rat"
 *         7 |   sample_rat = 97
 *           |   ^~~~~~~~~~
 *       did you mean "sample_rate"? */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One file of configuration. Name and text are borrowed and outlive all else. */
struct source {
	const char *name;
	struct str text;
};

/* A run of bytes in a source; line and column from 1, 0: no place. */
struct place {
	const struct source *source;
	uint32_t line;
	uint32_t column;
	uint32_t length;
};

#define DIAG_ERROR   0
#define DIAG_WARNING 1

struct diag {
	int severity;
	struct place place;
	const char *text;
	const char *hint; /* what to do; may be NULL */
	const bool *subject; /* as the list's was */
};

/* The list keeps at most 100 findings and counts the rest. */
struct diags {
	struct arena arena;
	VEC(struct diag) list;
	VEC(const char *) secrets; /* names whose values are not printed (syntax/redact.h) */
	size_t n_errors, n_warnings;
	bool *subject;   /* of what is found now: set by an error; or NULL */
	size_t n_blamed; /* errors of subjects, of all */
};

void diags_free(struct diags *d);

/* Text and hint are copied; hint may be NULL. */
void diag_add(struct diags *d, int severity, struct place place, const char *hint,
	      const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "did you mean …" in the arena for the nearest of `n` words, or NULL if none is
 * near. */
const char *diag_suggest(struct diags *d, struct str word, const char *const *words, size_t n);

/* Writes all findings, ordered by place, in the form above; with colour if asked. Values of secrets
 * are shown as ********, in quoted lines and texts. */
void diags_print(const struct diags *d, FILE *out, bool colour);

/* The first line of a finding, without what it quotes of its place: the plugin that knows it for a
 * secret may not be loaded. To be freed. NULL: out of memory. */
char *diag_line(const struct diags *d, const struct diag *finding);

/* Appends the same as a JSON list of objects: file, line, column, length (0: there is no such
 * place), severity, message, hint ("" where there is none). Secrets are hidden likewise. 0 or
 * -ENOMEM. */
int diags_put_json(const struct diags *d, struct buf *out);
