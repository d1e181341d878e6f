/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin files that this process has loaded. A file that is put in another's place is loaded
 * beside it, as the next generation of its path; none is ever unloaded, since nobody can tell when
 * the last pointer into one is gone. So the list is the process's, as the dynamic loader's own is,
 * and only grows: by one for each file that is new. */
#pragma once

#include "base/error.h"
#include "host/registry/plugin-file.h"

#include <andiron/plugin.h>

#include <sys/stat.h>

struct plugin_generation {
	struct plugin_generation *next;
	void *library; /* as dlopen gave it */
	char *path;
	const struct andiron_plugin *plugin; /* NULL: it was refused after it was loaded */
	unsigned int number;                 /* from 1, of those with this path; 0: refused */
	char build_id[PLUGIN_FILE_BUILD_ID]; /* "" if the file says none */
	struct stat st;                      /* when it was loaded */
};

/* The loaded one that the file at `path` is; *ret NULL: none, so it is to be loaded. A copy of the
 * same build is that build. -ENOEXEC and a sentence: the file was written over while it is
 * mapped, so the code that runs may be a mixture. [any], O(files loaded) */
int generation_find(const char *path, const struct stat *st, const char *build_id,
		    const struct plugin_generation **ret, struct error *err);

/* By library, or by entry: NULL if this process has not loaded it by registry_load. [any] */
struct plugin_generation *generation_of_library(const void *library);
const struct plugin_generation *generation_of(const struct andiron_plugin *plugin);

/* Whether it was loaded from this very file, whatever is in it by now. */
bool generation_is_file(const struct plugin_generation *g, const struct stat *st);

/* Notes what was loaded, without `plugin`: NULL when memory is short. [any] */
struct plugin_generation *generation_add(void *library, const char *path, const struct stat *st,
					 const char *build_id);

/* It has passed the checks and counts from here on. [any] */
void generation_accept(struct plugin_generation *g, const struct andiron_plugin *plugin);
