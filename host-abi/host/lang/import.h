/* SPDX-License-Identifier: Apache-2.0 */
/* import.file, import.string and import.http: modules, whose custom components are named
 * LABEL.NAME. A file is read when the plan is built, which names it, so that who runs the plan can
 * build it again when the file changes. */
#pragma once

#include "host/lang/draft.h"
#include "host/lang/values/scope.h"

struct dirent;

/* The files *.alloy of a folder, by name, as scandir gives them: how many, or -1 and errno. */
int import_list(const char *folder, struct dirent ***ret);

/* "import.file", also those that are refused ("import.git"). */
bool import_is(struct str name);

/* Adds what the block brings to the scope's space; false after an error. */
bool import_block(struct draft *d, const struct scope *scope, const struct stmt *s);

/* The space of the module with that label, or NULL. */
const struct space *import_find(const struct space *space, struct str label);

/* Whether there is one, of which nothing could be read. */
bool import_failed(const struct space *space, struct str label);

/* The component that fetches the module of the custom component "LABEL.NAME" and has not yet, or
 * NULL. */
const char *import_waits_for(const struct space *space, struct str name);
