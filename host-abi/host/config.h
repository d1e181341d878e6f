/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration as people give it: files, directories and texts into sources, sources into a plan,
 * findings into a text for people. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "host/plan.h"

#include <stdio.h>

#define CONFIG_MAX_BYTES ((16u << 20) + 1)

/* The texts live until config_free; a plan made from them, too. */
struct config {
	struct arena arena;
	VEC(struct source *) sources;
	VEC(struct buf *) texts;
	struct source *all;              /* the same in one array, for plan_build */
	const struct supplied *supplied; /* for plans of it: what components have sent, or NULL */
};

struct config *config_new(void);
void config_free(struct config *config);

/* Adds a file, or the *.alloy files of a directory by name. At most 16 MiB and one byte of a file
 * are read; plan_build refuses what is longer. */
int config_add_path(struct config *config, const char *path, struct error *err);

/* Adds standard input, likewise, as "<stdin>". */
int config_add_input(struct config *config, struct error *err);

/* Adds a text of no file. Both are copied. */
int config_add_text(struct config *config, const char *name, struct str text);

/* Formats the only source (host/lang/syntax/format.h) and appends it to `out`. Findings are printed
 * to `messages`. 0, -EINVAL after errors, -ENOMEM. */
int config_format(struct config *config, struct registry *registry, FILE *messages,
		  struct buf *out);

/* Whether both are the same texts under the same names. */
bool config_same(const struct config *a, const struct config *b);

/* Builds the plan and prints every finding to `out` (`quiet`: not if there are only warnings). 0
 * and the plan; -EINVAL after errors; -ENOMEM. */
int config_plan(struct config *config, struct registry *registry, bool quiet, FILE *out,
		struct plan **ret);

/* The same with the findings as a JSON list (diag.h) appended to `out`; *ret_left_out counts those
 * that are not in it. */
int config_findings(struct config *config, struct registry *registry, struct buf *out,
		    size_t *ret_left_out, struct plan **ret);

/* Appends a text in quotes, as a string of the language. Failure is left to the buffer's `failed`.
 */
void config_quote(struct buf *b, struct str text);
