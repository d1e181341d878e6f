/* SPDX-License-Identifier: Apache-2.0 */
/* The block local.file: a file whose content is a value of the configuration. It is no component
 * that runs: its one export is a binding (scope.h) that reads the file when the plan is built, as
 * import.file is read, so the content may stand wherever a value does, in a foreach's collection as
 * in a password. The plan names the files, so that who runs it can build it again when they change.
 * What cannot be read is an error, so a running graph keeps what it was made with. */
#pragma once

#include "host/lang/draft.h"
#include "host/lang/values/scope.h"

#define LOCAL_FILE "local.file"

/* Where a file or a body has a module with the label `local`, the block is the module's. */
void local_file_give_way(struct space *space, const struct stmt *first);

/* What a file or a body has of them, before its imports, which may be of what they hold. */
void local_file_blocks(struct draft *d, const struct scope *scope, const struct stmt *first);

/* Reads those that nothing names, so that what is wrong with them is told, too; keeps
 * the names of all in d->files. */
void local_file_read_all(struct draft *d);

/* How changes are to be found, as the block says it (import.file, too): d->poll_ns has the shortest
 * time of those that are to be looked at. */
void local_file_detect(struct draft *d, const struct stmt *s);
