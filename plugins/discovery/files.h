/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.file: target groups in files, which are named by patterns. The files' folders are
 * watched, and everything is read again when something in them changes, as Prometheus does: a file
 * is replaced in more ways than can be told apart. A file that cannot be used keeps the targets it
 * had.
 *
 * One reading runs at a time, on a worker: folders may be slow. */
#pragma once

#include "base/buf.h"
#include "discovery/target-rows.h"

#include <andiron/value.h>

#define FILES_MAX 10000

/* Whether a pattern can be one of files with target groups: NULL, or why not in words that follow
 * it. */
const char *files_pattern_fault(struct str pattern);

/* Verbs of a component (andiron/component.h). */
int32_t files_create(const struct andiron_host *host, uint64_t instance,
		     const struct andiron_value *args, void **ret_self,
		     struct andiron_error *ret_err);
int32_t files_start(void *self, struct andiron_error *err);
void files_stop(void *self);
void files_free(void *self);

struct files_counts {
	uint64_t files, targets, reads, failures;
};
struct files_counts files_counts(const void *self);
