/* SPDX-License-Identifier: Apache-2.0 */
/* local.file_match: the files that targets name by pattern. Each target of `path_targets` becomes
 * one for each file that its __path__ stands for and its __path_exclude__ does not, with the file's
 * path as __path__ and all other labels kept.
 *
 * One search runs at a time, on a worker: disks may be slow. */
#pragma once

#include <andiron/host.h>
#include <andiron/target.h>
#include <andiron/value.h>

/* Verbs of a component (andiron/component.h). */
int32_t file_match_create(const struct andiron_host *host, uint64_t instance,
			  const struct andiron_value *args, void **ret_self,
			  struct andiron_error *ret_err);
int32_t file_match_start(void *self, struct andiron_error *err);
void file_match_stop(void *self);
void file_match_free(void *self);
void file_match_targets(void *self, const char *port, const struct andiron_targets *update);

struct file_match_counts {
	uint64_t targets, searches, entries;
};
struct file_match_counts file_match_counts(const void *self);
