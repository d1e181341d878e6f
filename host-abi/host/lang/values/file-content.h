/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a file as a value: at most 1 MiB of UTF-8, as it stands. */
#pragma once

#include "host/lang/values/eval.h"

struct binding;

/* What b->file says: b->value is the file's name and becomes its content, a secret one if is_secret
 * says so. False after an error at `e`, which is the name's expression. */
bool file_content(struct lang *l, struct binding *b, const struct expr *e);

/* Of what the file holds now, or the files *.alloy of a folder; 0 if that cannot be read. Equal
 * contents have equal hashes in one process. */
uint64_t file_content_hash(const char *path);
