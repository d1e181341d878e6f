/* SPDX-License-Identifier: Apache-2.0 */
/* What most rules' expressions are: a literal, `.*` or `.+` or neither, a literal, and groups
 * around any of it. Whether a text matches is then a comparison at its two ends, and where the
 * groups lie is known beforehand. */
#pragma once

#include "base/buf.h"
#include "regex/program.h"

/* Where a slot is: so many bytes from the text's beginning or end. */
struct place {
	uint32_t slot;
	bool from_end;
	size_t offset;
};

struct shape {
	bool whole;        /* describes all of the program, not only how it begins */
	bool any;          /* there is a `.*` or `.+` */
	size_t min;        /* of characters for it */
	struct buf prefix; /* of every text that matches */
	uint64_t tail;     /* its last eight bytes, which tell most names apart */
	struct buf suffix; /* where `any` */
	VEC(struct place) places;
};

/* 0 or -ENOMEM; to be freed in any case. */
int shape_find(const struct program *program, struct shape *ret);
void shape_free(struct shape *s);

/* Whether the text can match; if `whole`, whether it does. O(literals). */
bool shape_fits(const struct shape *s, struct str text);
