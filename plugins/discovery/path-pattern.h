/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, as doublestar has them and so Alloy: `*`, `?` and `[…]` within a name as in a
 * shell, `**` for any number of folders, none among them, and `{a,b}` for one of several texts.
 *
 * Source: github.com/bmatcuk/doublestar, its README; Alloy, local.file_match. */
#pragma once

#include "base/str.h"
#include "base/vec.h"

#define PATH_PATTERN_FORMS  1000 /* that braces may stand for */
#define PATH_PATTERN_BRACES 16   /* one after another or within each other */
#define PATH_PATTERN_PARTS  64   /* of a path, between its slashes */

/* One form of a pattern: its names between the slashes. */
struct path_form {
	char *text; /* with a NUL in place of each slash */
	VEC(const char *) parts;
};

static inline bool path_part_is_deep(const char *part)
{
	return strcmp(part, "**") == 0;
}

/* Whether it stands for itself alone. */
static inline bool path_part_is_name(const char *part)
{
	return !strpbrk(part, "*?[\\");
}

struct path_pattern {
	VEC(struct path_form) forms;
};

/* 0; -ENOMEM; -EINVAL for a text with a NUL byte or a brace that does not close, and -E2BIG for
 * more than the above or than PATH_MAX bytes. Then *ret is empty. */
int path_pattern_read(struct str text, struct path_pattern *ret);
void path_pattern_free(struct path_pattern *p);

/* Whether a whole path is one that the pattern stands for. O(parts of both, multiplied) for each of
 * its forms. */
bool path_pattern_matches(const struct path_pattern *p, const char *path);
