/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugins there are. Directories are searched in order (--plugin-dir,
 * ANDIRON_PLUGIN_PATH, the install directory; never the current directory;
 * the variable is ignored in a set-id process); of two plugins with one name
 * the first found counts. Every andiron-*.so is checked before it is loaded:
 * ELF class and machine, and every segment within the file, since a truncated
 * file would die of SIGBUS. A file that is refused is kept with its reason, so
 * that `plugins` can show it and a missing component can name it. A file whose outline can be read
 * is loaded once a configuration requires it. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <andiron/plugin.h>

#include <stdbool.h>
#include <stddef.h>

struct registry;
struct plugin_generation;

struct registered_plugin {
	const char *path;
	const struct andiron_plugin *plugin; /* NULL: refused, or not required yet */
	/* As registry/outline.h has it, or `plugin`; NULL: refused. */
	const struct andiron_plugin *outline;
	const char *refused; /* why, a sentence; NULL if loaded */
	/* Which file of that path it is (registry/generation.h); NULL: not loaded, or given. */
	const struct plugin_generation *generation;
	int fd; /* of the file, where a component has work for a process of its own; else -1 */
};

struct registered_component {
	const struct andiron_component *component;
	const struct registered_plugin *plugin;
};

/* `dirs`: directories in order, ends with NULL. `given`: plugins that are in this process already
 * and count as found first, ends with NULL, may be NULL; they live as long as the process. `probe`:
 * each file is tried by registry_probe, and loaded at once; for whatever only looks. 0 or -ENOMEM:
 * a fault of a single file or directory is no failure. */
int registry_new(const char *const *dirs, const struct andiron_plugin *const *given, bool probe,
		 struct registry **ret);
/* The same again, from the files as they are now; what `old` has loaded is loaded. A file that was
 * put in another's place is loaded beside it, so its components are others; a plugin whose file is
 * the same, or of the same build, has the components that it had. 0; -ENOEXEC and a sentence: such
 * a file is refused, and `old` is as good as before; -ENOMEM. */
int registry_renew(const struct registry *old, struct registry **ret, struct error *err);
/* Loads the plugins of these components, and those whose components may come into their plan by
 * themselves. All plugins, if a name is not known (so that the finding can say what there is), or
 * `names` is NULL. What is refused on the way says so in registry_plugins. What a plan of this
 * registry points to stays. 0 or -ENOMEM. */
int registry_require(struct registry *r, const struct str *names, size_t n);
/* Whether a plugin's tables keep the ABI's promises: 0, or -ENOEXEC and a sentence. Runs no code
 * of it. */
int registry_check(const struct andiron_plugin *plugin, struct error *err);
/* Forgets the tables; the loaded files stay loaded. */
void registry_free(struct registry *r);

/* The component of that name, or NULL. This and all that follows knows what is loaded. */
const struct registered_component *registry_find(const struct registry *r, struct str name);
/* The component that offers an extension, or NULL. */
const struct registered_component *registry_offering(const struct registry *r, struct str id);

/* All of them, in order of name. */
size_t registry_components(const struct registry *r, const struct registered_component **ret);
size_t registry_plugins(const struct registry *r, const struct registered_plugin **ret);

/* The directories as searched, each with "", or why it gave nothing ("does not exist"): one line
 * each, for "no such component" errors. */
const char *registry_searched(const struct registry *r);

/* Has the program's own functions of these libraries, "zstd" or "protobuf-c", apart by a space,
 * answer the calls of plugins, instead of refusing a plugin for them. Of the process, for good.
 * -EINVAL: another name. Without a call none is allowed. [any] */
int registry_allow_answers(struct str libraries);

/* Loads and checks a file in a child process, within 10 s. 0: it loads, also here. -ENOEXEC and a
 * sentence: it is refused, or it crashed or held up the child; another errno: it could not be
 * tried. Some 5 ms. For a process with one thread. */
int registry_probe(const char *path, struct error *err);

/* As registry_load. *ret_fd is the file, to be closed, if a component has work for a process of its
 * own (andiron/subprocess.h), else -1. */
int registry_load_kept(const char *path, const struct andiron_plugin **ret, int *ret_fd,
		       struct error *err);
/* Loads and checks one file. -ENOEXEC and a sentence if it is refused. A damaged file may crash the
 * caller: see registry_probe. `ret_library`, for dlclose, may be NULL: then it stays loaded. */
int registry_load(const char *path, const struct andiron_plugin **ret, void **ret_library,
		  struct error *err);
