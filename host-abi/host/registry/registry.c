/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of plugins and components. All directories are read, then the outline of every file,
 * then those that collide or require what is not there are refused, until nothing changes. So
 * whether a plugin is accepted does not depend on the order of files. Files are loaded when they
 * are required; one that is then refused may take others with it. What it has shadowed stays
 * shadowed: which of two files counts must not depend on who asks first.
 *
 * The table of components is made anew with each load. Former ones are kept, since plans point into
 * them. */
#include "host/registry.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "host/registry/describe-check.h"
#include "host/registry/generation.h"
#include "host/registry/needs.h"
#include "host/registry/outline.h"

#include <andiron/subprocess.h>
#include <andiron/object.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MAX_DIRS          64u
#define MAX_FILES_PER_DIR 1000

/* What the host itself offers. */
static const char *const host_offers[] = {ANDIRON_OBJECTS_ID, ANDIRON_SUBPROCESS_ID, NULL};

struct directory {
	dev_t device;
	ino_t inode;
};

struct registry {
	struct arena arena;
	VEC(struct registered_plugin) plugins;
	struct registered_component *components; /* in the arena */
	size_t n_components;
	VEC(struct directory) directories;
	const char **dirs; /* as it was made from; in the arena */
	const struct andiron_plugin **given;
	bool probe;
	bool changed; /* a file was opened, or refused, since the list was made */
	struct buf searched;
	const char *searched_text;
};

void registry_free(struct registry *r)
{
	if (!r)
		return;
	vec_each (&r->plugins, p)
		closep(&p->fd);
	vec_free(&r->plugins);
	vec_free(&r->directories);
	buf_free(&r->searched);
	arena_free(&r->arena);
	free(r);
}
DEFINE_CLEANUP(struct registry *, registry_free);

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --- Reading directories --- */

static int is_plugin_file(const struct dirent *entry)
{
	struct str name = str_of(entry->d_name);

	return str_starts(name, STR("andiron-")) && str_ends(name, STR(".so"));
}

static const struct andiron_component *component_of(const struct andiron_plugin *p,
						    const char *name)
{
	for (uint64_t i = 0; p && i < p->n_components; i++)
		if (strcmp(p->components[i]->name, name) == 0)
			return p->components[i];
	return NULL;
}

static int refuse(struct registered_plugin *p, const char *reason)
{
	if (!reason)
		return -ENOMEM;
	p->plugin = p->outline = NULL;
	p->generation = NULL;
	closep(&p->fd);
	p->fd = -1;
	p->refused = reason;
	return 0;
}

/* Whether what was loaded is what its outline said. */
static bool keeps_outline(const struct andiron_plugin *plugin, const struct andiron_plugin *outline)
{
	for (uint64_t i = 0; outline && i < outline->n_components; i++)
		if (!component_of(plugin, outline->components[i]->name))
			return false;
	return !outline || strcmp(plugin->name, outline->name) == 0;
}

/* A file that cannot be loaded is kept with its reason. */
static int open_file(struct registry *r, struct registered_plugin *p)
{
	struct error err = ERROR_NULL;
	int code = r->probe ? registry_probe(p->path, &err) : 0;

	r->changed = true;
	if (code == 0)
		code = registry_load_kept(p->path, &p->plugin, &p->fd, &err);
	if (code == 0 && !keeps_outline(p->plugin, p->outline))
		code = error_set(&err, -ENOEXEC,
				 "it was replaced since the plugins were looked for; SIGHUP, or "
				 "another reload, looks again");
	if (code < 0)
		return refuse(p, arena_printf(&r->arena, "%s", err.text));
	p->outline = p->plugin;
	p->generation = generation_of(p->plugin);
	return 0;
}

static int add_file(struct registry *r, const char *dir, const char *name)
{
	struct registered_plugin entry = {.path = arena_printf(&r->arena, "%s/%s", dir, name),
					  .fd = -1};
	int code = -ENOEXEC;

	if (!entry.path)
		return -ENOMEM;
	if (!r->probe)
		code = outline_read(entry.path, &r->arena, &entry.outline);
	if (code == -ENOEXEC)
		code = open_file(r, &entry);
	if (code == 0 && !vec_push(&r->plugins, entry))
		code = -ENOMEM;
	if (code < 0)
		closep(&entry.fd);
	return code;
}

static int add_files(struct registry *r, const char *dir, const char **ret_note)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, is_plugin_file, alphasort);
	int code = 0;

	if (n < 0) {
		*ret_note = strerror(errno);
		return errno == ENOMEM ? -ENOMEM : 0;
	}
	if (n == 0)
		*ret_note = "holds no andiron-*.so";
	if (n > MAX_FILES_PER_DIR)
		*ret_note = "holds more than 1,000 plugins, the rest is not read";
	for (int i = 0; i < n; i++) {
		if (code == 0 && i < MAX_FILES_PER_DIR)
			code = add_file(r, dir, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return code;
}

/* Whether the directory has been read under whatever name. */
static int is_repeated(struct registry *r, const struct stat *st, bool *ret)
{
	*ret = false;
	vec_each (&r->directories, d)
		if (d->device == st->st_dev && d->inode == st->st_ino)
			*ret = true;
	if (*ret)
		return 0;
	return vec_push(&r->directories, ((struct directory){st->st_dev, st->st_ino})) ? 0
										       : -ENOMEM;
}

static int add_directory(struct registry *r, const char *dir)
{
	const char *note = NULL;
	bool repeated = false;
	struct stat st;
	int code = 0;

	if (*dir != '/')
		note = "ignored, since it is not an absolute path";
	else if (stat(dir, &st) < 0)
		note = errno == ENOENT ? "does not exist" : strerror(errno);
	else
		code = is_repeated(r, &st, &repeated);
	if (code == 0 && !note && repeated)
		note = "is one of the above";
	if (code == 0 && !note)
		code = add_files(r, dir, &note);
	if (code < 0)
		return code;
	return buf_printf(&r->searched, "%s%s%s%s\n", *dir ? dir : "(empty)", note ? " (" : "",
			  note ? note : "", note ? ")" : "");
}

/* --- Refusing what collides or lacks something --- */

/* Of two plugins with one name or one component the first found counts. */
static int refuse_if_second(struct registry *r, struct registered_plugin *p)
{
	for (const struct registered_plugin *q = r->plugins.p; q < p; q++) {
		if (!q->outline)
			continue;
		if (strcmp(q->outline->name, p->outline->name) == 0)
			return refuse(p, arena_printf(&r->arena,
						      "%s was found before it and has the same "
						      "name, %s",
						      q->path, p->outline->name));
		for (uint64_t i = 0; i < p->outline->n_components; i++) {
			const char *name = p->outline->components[i]->name;

			if (component_of(q->outline, name))
				return refuse(p, arena_printf(&r->arena,
							      "%s was found before it and "
							      "has the component %s, too",
							      q->path, name));
		}
	}
	return 0;
}

static int refuse_seconds(struct registry *r)
{
	vec_each (&r->plugins, p) {
		int code = p->outline ? refuse_if_second(r, p) : 0;

		if (code < 0)
			return code;
	}
	return 0;
}

static bool is_offered(const struct registry *r, struct str id)
{
	if (needs_lists(host_offers, id))
		return true;
	vec_each (&r->plugins, p)
		for (uint64_t i = 0; p->outline && i < p->outline->n_components; i++)
			if (needs_lists(p->outline->components[i]->offers, id))
				return true;
	return false;
}

/* Takes plugins away until none requires what nobody offers. */
static int refuse_unmet(struct registry *r)
{
	bool again = true;

	while (again) {
		again = false;
		vec_each (&r->plugins, p) {
			const char *const *id = p->outline ? p->outline->needs : NULL;
			int code;

			while (id && *id && is_offered(r, str_of(*id)))
				id++;
			if (!id || !*id)
				continue;
			code = refuse(p, arena_printf(&r->arena,
						      "it requires the extension %s, which "
						      "nothing here offers; install the plugin "
						      "that does",
						      *id));
			if (code < 0)
				return code;
			again = true;
		}
	}
	return 0;
}

/* --- The tables --- */

static int compare_plugins(const void *a, const void *b)
{
	const struct registered_plugin *x = a, *y = b;
	int by_name = strcmp(file_name(x->path), file_name(y->path));

	return by_name ? by_name : strcmp(x->path, y->path);
}

static int compare_components(const void *a, const void *b)
{
	const struct registered_component *x = a, *y = b;

	return strcmp(x->component->name, y->component->name);
}

static int list_components(struct registry *r)
{
	struct registered_component *list;
	size_t n = 0;

	vec_each (&r->plugins, p)
		n += p->plugin ? p->plugin->n_components : 0;
	list = arena_array(&r->arena, struct registered_component, n + 1);
	if (!list)
		return -ENOMEM;
	r->components = list;
	r->n_components = n;
	vec_each (&r->plugins, p)
		for (uint64_t i = 0; p->plugin && i < p->plugin->n_components; i++)
			*list++ = (struct registered_component){p->plugin->components[i], p};
	qsort(r->components, n, sizeof(*r->components), compare_components);
	return 0;
}

/* --- Opening what is required --- */

static bool is_any(const struct str *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(names[i], name))
			return true;
	return false;
}

/* Whether a plugin has one of the components, or one that comes with those that are open. */
static bool is_required(const struct registry *r, const struct registered_plugin *p,
			const struct str *names, size_t n)
{
	if (!names)
		return true;
	for (uint64_t i = 0; i < p->outline->n_components; i++)
		if (is_any(names, n, p->outline->components[i]->name))
			return true;
	vec_each (&r->plugins, open)
		if (open->plugin && needs_brings(open->plugin, p->outline))
			return true;
	return false;
}

static bool is_known(const struct registry *r, struct str name)
{
	vec_each (&r->plugins, p)
		for (uint64_t i = 0; p->outline && i < p->outline->n_components; i++)
			if (str_is(name, p->outline->components[i]->name))
				return true;
	return false;
}

/* Opens one plugin after the other, until none more is required. */
static int open_required(struct registry *r, const struct str *names, size_t n)
{
	bool again = true;

	while (again) {
		again = false;
		vec_each (&r->plugins, p) {
			int code;

			if (p->plugin || !p->outline || !is_required(r, p, names, n))
				continue;
			code = open_file(r, p);
			if (code < 0)
				return code;
			again = true;
		}
	}
	return refuse_unmet(r);
}

static bool all_open(const struct registry *r, const struct str *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!registry_find(r, names[i]))
			return false;
	return true;
}

int registry_require(struct registry *r, const struct str *names, size_t n)
{
	int code;

	if (names && all_open(r, names, n))
		return 0;
	for (size_t i = 0; names && i < n; i++)
		if (!is_known(r, names[i]))
			names = NULL;
	code = open_required(r, names, n);
	if (code < 0 || !r->changed)
		return code;
	r->changed = false;
	return list_components(r);
}

int registry_check(const struct andiron_plugin *plugin, struct error *err)
{
	return describe_check(plugin, err);
}

/* What a program that embeds us offers. */
static int add_given(struct registry *r, const struct andiron_plugin *plugin)
{
	struct registered_plugin entry = {
		.path = "(this program)", .plugin = plugin, .outline = plugin, .fd = -1};
	struct error err = ERROR_NULL;

	if (describe_check(plugin, &err) < 0 &&
	    refuse(&entry, arena_printf(&r->arena, "%s", err.text)) < 0)
		return -ENOMEM;
	return vec_push(&r->plugins, entry) ? 0 : -ENOMEM;
}

static int refuse_some(struct registry *r)
{
	int code = refuse_unmet(r);

	if (code == 0)
		code = refuse_seconds(r);
	if (code == 0)
		code = refuse_unmet(r); /* what only a second one offered */
	if (r->plugins.n > 0)
		qsort(r->plugins.p, r->plugins.n, sizeof(*r->plugins.p), compare_plugins);
	return code;
}

static size_t count(const void *const *list, size_t max)
{
	size_t n = 0;

	while (list && list[n] && n < max)
		n++;
	return n;
}

/* What it is made from, to be made again. */
static int keep_sources(struct registry *r, const char *const *dirs,
			const struct andiron_plugin *const *given)
{
	size_t n_dirs = count((const void *const *)dirs, MAX_DIRS);
	size_t n_given = count((const void *const *)given, SIZE_MAX);

	r->dirs = arena_array(&r->arena, const char *, n_dirs + 1);
	r->given = arena_array(&r->arena, const struct andiron_plugin *, n_given + 1);
	if (!r->dirs || !r->given)
		return -ENOMEM;
	for (size_t i = 0; i < n_dirs; i++) {
		r->dirs[i] = arena_str(&r->arena, str_of(dirs[i])).p;
		if (!r->dirs[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < n_given; i++)
		r->given[i] = given[i];
	return 0;
}

int registry_new(const char *const *dirs, const struct andiron_plugin *const *given, bool probe,
		 struct registry **ret)
{
	_cleanup_(registry_freep) struct registry *r = calloc(1, sizeof(*r));
	int code = r ? keep_sources(r, dirs, given) : -ENOMEM;

	if (r)
		r->probe = probe;
	for (size_t i = 0; code == 0 && r->given[i]; i++)
		code = add_given(r, r->given[i]);
	for (size_t i = 0; code == 0 && r->dirs[i]; i++)
		code = add_directory(r, r->dirs[i]);
	if (code < 0)
		return code;
	code = refuse_some(r);
	if (code == 0)
		code = list_components(r);
	if (code == 0)
		code = buf_putc(&r->searched, '\0');
	if (code < 0)
		return code;
	r->searched_text = r->searched.p;
	*ret = take_ptr(r);
	return 0;
}

static const struct registered_plugin *by_path(const struct registry *r, const char *path)
{
	vec_each (&r->plugins, p)
		if (strcmp(p->path, path) == 0)
			return p;
	return NULL;
}

/* What is loaded of `old` is loaded from its file as it is now. One that is gone is left to the
 * plan, which names what it lacks. */
static int load_again(struct registry *r, const struct registered_plugin *old, struct error *err)
{
	const struct registered_plugin *now = by_path(r, old->path);
	int code = 0;

	for (uint64_t i = 0; now && now->outline && i < now->outline->n_components; i++) {
		struct str name = str_of(now->outline->components[i]->name);

		code = registry_require(r, &name, 1);
		if (code < 0)
			return error_set(err, code, "out of memory");
	}
	if (now && now->refused)
		return error_set(err, -ENOEXEC,
				 "the plugin %s has changed and is refused: %s. What was loaded of "
				 "it before goes on",
				 old->path, now->refused);
	return 0;
}

int registry_renew(const struct registry *old, struct registry **ret, struct error *err)
{
	_cleanup_(registry_freep) struct registry *r = NULL;
	int code = registry_new(old->dirs, old->given, old->probe, &r);

	if (code < 0)
		return error_set(err, code, "out of memory");
	vec_each (&old->plugins, p) {
		code = p->generation ? load_again(r, p, err) : 0;
		if (code < 0)
			return code;
	}
	*ret = take_ptr(r);
	return 0;
}

const struct registered_component *registry_find(const struct registry *r, struct str name)
{
	for (const struct registered_component *c = r->components;
	     c < r->components + r->n_components; c++)
		if (str_is(name, c->component->name))
			return c;
	return NULL;
}

const struct registered_component *registry_offering(const struct registry *r, struct str id)
{
	for (const struct registered_component *c = r->components;
	     c < r->components + r->n_components; c++)
		if (needs_lists(c->component->offers, id))
			return c;
	return NULL;
}

size_t registry_components(const struct registry *r, const struct registered_component **ret)
{
	*ret = r->components;
	return r->n_components;
}

size_t registry_plugins(const struct registry *r, const struct registered_plugin **ret)
{
	*ret = r->plugins.p;
	return r->plugins.n;
}

const char *registry_searched(const struct registry *r)
{
	return r->searched_text;
}
