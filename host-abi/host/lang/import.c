/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in import.h. A module sees what it declares and imports itself and nothing else. Modules
 * that import each other end at a depth; how many files are read is bounded, too. */
#include "host/lang/import.h"

#include "host/lang/fetched.h"
#include "host/lang/local-file.h"
#include "host/lang/values/eval.h"
#include "host/lang/values/file-content.h"
#include "host/lang/module.h"
#include "host/lang/syntax/parse.h"
#include "host/lang/syntax/scan.h"

#include "base/check.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MAX_DEPTH 32
#define MAX_FILES 1000

struct import {
	struct str label;
	struct space space;
	struct place place;
	const char *waits_for; /* the component that fetches it, and has not yet */
	bool failed;           /* which was told */
	struct import *next;
};

/* One that is neither refused nor has a source is a component's (fetched.h). */
static const struct {
	const char *name, *source, *refused;
	const char *known[4];
} kinds[] = {
	{"import.file", "filename", NULL, {"filename", "detector", "poll_frequency"}},
	{"import.string", "content", NULL, {"content"}},
	{"import.http", NULL, NULL, {NULL}},
	{"import.git",
	 NULL,
	 "the agent has no Git in it: keep a clone beside it, and name the module's file in "
	 "import.file, which follows its changes",
	 {NULL}},
};

static int kind_of(struct str name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (str_is(name, kinds[i].name))
			return (int)i;
	return -1;
}

bool import_is(struct str name)
{
	return kind_of(name) >= 0;
}

static const struct import *find(const struct space *space, struct str label)
{
	const struct import *i = space->imports;

	while (i && !str_eq(i->label, label))
		i = i->next;
	return i;
}

bool import_failed(const struct space *space, struct str label)
{
	const struct import *i = find(space, label);

	return i && i->failed;
}

const struct space *import_find(const struct space *space, struct str label)
{
	const struct import *i = find(space, label);

	return i ? &i->space : NULL;
}

const char *import_waits_for(const struct space *space, struct str name)
{
	struct str rest = name, label = str_cut(&rest, '.');

	for (; space && scan_is_ident(rest); space = space->around) {
		const struct import *i = find(space, label);

		if (i && i->waits_for)
			return i->waits_for;
	}
	return NULL;
}

/* What the module's text declares. */
static bool add_text(struct draft *d, const struct scope *scope, const struct place *place,
		     const char *name, struct str text)
{
	struct source *source = lang_array(&d->l, struct source, 1);
	size_t errors = d->l.diags->n_errors;
	const struct stmt *first = NULL;

	if (d->imported.n >= MAX_FILES) {
		lang_error(&d->l, *place, NULL, "more than %d modules are imported", MAX_FILES);
		return false;
	}
	if (!source || !vec_push(&d->imported, source)) {
		d->l.no_memory = true;
		return false;
	}
	*source = (struct source){name, text};
	if (parse_is_text(&d->l, source))
		first = parse_source(&d->l, source);
	module_declare(d, scope, first, true);
	return !d->l.no_memory && d->l.diags->n_errors == errors;
}

static bool add_file(struct draft *d, const struct scope *scope, const struct expr *e,
		     const char *path)
{
	struct buf text = BUF_NULL;
	struct str copy;
	int r;

	/* One byte more than is taken, so that what is too long is told as such. */
	r = file_read(AT_FDCWD, path, &text, PARSE_MAX_SOURCE + 1);
	if (r < 0 && r != -E2BIG) {
		lang_error(&d->l, e->place, NULL, "cannot read the module %s: %s", path,
			   strerror(-r));
		buf_free(&text);
		return false;
	}
	copy = lang_str(&d->l, buf_str(&text));
	buf_free(&text);
	return copy.p && add_text(d, scope, &e->place, path, copy);
}

static int is_configuration(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && str_ends(str_of(entry->d_name), STR(".alloy"));
}

int import_list(const char *folder, struct dirent ***ret)
{
	return scandir(folder, ret, is_configuration, alphasort);
}

static bool add_folder(struct draft *d, const struct scope *scope, const struct expr *e,
		       const char *folder)
{
	struct dirent **entries = NULL;
	int n = import_list(folder, &entries);
	bool good = n > 0;

	if (n <= 0)
		lang_error(&d->l, e->place, NULL, "cannot read the modules of %s: %s", folder,
			   n < 0 ? strerror(errno) : "no file in it is named *.alloy");
	for (int i = 0; i < n; i++) {
		const char *path = arena_printf(d->l.arena, "%s/%s", folder, entries[i]->d_name);

		d->l.no_memory |= !path;
		good = path && add_file(d, scope, e, path) && good;
		free(entries[i]);
	}
	free(entries);
	return good;
}

/* The folder of a path, for the module's own imports. */
static const char *folder_of(struct draft *d, const char *path, bool is_folder)
{
	struct str s = str_of(path);
	size_t slash = str_rfind(s, '/');

	if (is_folder)
		return path;
	return slash < s.n ? lang_str(&d->l, str_first(s, slash ? slash : 1)).p : ".";
}

/* One that is missing may come. */
static void note_file(struct draft *d, const char *path)
{
	const struct plan_file file = {path, file_content_hash(path), d->l.diags->subject};

	d->l.no_memory |= !vec_push(&d->files, file);
}

static bool add_path(struct draft *d, struct scope *scope, const struct expr *e, struct str value)
{
	struct str path = lang_str(&d->l, value);
	struct stat st;

	if (!path.p)
		return false;
	if (stat(path.p, &st) < 0) {
		note_file(d, path.p);
		lang_error(&d->l, e->place, NULL, "cannot read the module %s: %s", path.p,
			   strerror(errno));
		return false;
	}
	/* A pipe would be waited for. */
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		lang_error(&d->l, e->place, NULL, "%s is neither a file nor a folder", path.p);
		return false;
	}
	scope->space->folder = folder_of(d, path.p, S_ISDIR(st.st_mode));
	/* Before it is read, so that what changes meanwhile is seen as changed. */
	note_file(d, path.p);
	if (!scope->space->folder || d->l.no_memory)
		return false;
	return S_ISDIR(st.st_mode) ? add_folder(d, scope, e, path.p)
				   : add_file(d, scope, e, path.p);
}

static struct import *import_new(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	struct import *made = lang_array(&d->l, struct import, 1);

	const struct import *known = find(scope->space, s->label);

	if (known)
		module_refuse_second(d, s, &known->place);
	if (known || !made)
		return NULL;
	*made = (struct import){.label = s->label, .place = s->place};
	made->space.folder = scope->space->folder;
	made->space.importer = scope->space;
	made->next = scope->space->imports;
	scope->space->imports = made;
	return made;
}

/* What the module's own imports stand in, under names that are theirs alone. */
static struct scope *scope_inside(struct draft *d, const struct scope *scope, const struct stmt *s,
				  struct import *made)
{
	struct scope *inside = lang_array(&d->l, struct scope, 1);

	if (!inside)
		return NULL;
	*inside = (struct scope){
		.space = &made->space,
		.prefix = arena_printf(d->l.arena, "%s%.*s.%.*s/", scope->prefix, STR_FMT(s->name),
				       STR_FMT(str_first(s->label, 1000))),
		.depth = scope->depth + 1,
	};
	d->l.no_memory |= !inside->prefix;
	return inside->prefix ? inside : NULL;
}

static bool add_fetched(struct draft *d, const struct scope *scope, const struct scope *inside,
			const struct stmt *s, struct import *made)
{
	struct source module;

	if (!fetched_get(d, scope, s, &made->space, &module, &made->waits_for))
		return false;
	return made->waits_for || add_text(d, inside, &s->place, module.name, module.text);
}

/* It is read before the agent runs, when no component has supplied a value. */
static bool eval_source(struct draft *d, const struct stmt *s, struct andiron_value *ret)
{
	size_t first = d->l.value_uses.n;
	const char *supplier;
	bool good;

	scope_window(&d->l);
	d->l.waits_for = NULL;
	good = eval(&d->l, s->value, ret);
	supplier = d->l.value_uses.n > first
			   ? d->l.names.list.p[d->l.value_uses.p[first].node].id
			   : d->l.waits_for;
	if (supplier)
		lang_error(&d->l, s->value->place, "give import.string what it supplies",
			   "files of modules are read before the agent runs, so filename cannot "
			   "be what %s supplies",
			   supplier);
	else if (good && ret->kind != ANDIRON_VALUE_STRING)
		lang_error(&d->l, s->value->place, NULL, "%.*s is a string, not %s",
			   STR_FMT(s->name), eval_describe(&d->l, ret));
	return good && !supplier && ret->kind == ANDIRON_VALUE_STRING;
}

/* `source` is the argument that names the module, or else the block itself. */
static bool read_module(struct draft *d, const struct scope *scope, const struct stmt *s,
			const struct stmt *source, struct import *made)
{
	bool is_text = str_is(s->name, "import.string");
	struct scope *inside = scope_inside(d, scope, s, made);
	struct andiron_value value;
	const char *name;
	struct str text;

	if (!inside)
		return false;
	if (source == s || (is_text && !fetched_is_known(d, scope, s, "content")))
		return add_fetched(d, scope, inside, s, made);
	d->l.scope = scope;
	local_file_detect(d, s);
	if (!eval_source(d, source, &value))
		return false;
	text = (struct str){value.string.ptr, value.string.len};
	if (!is_text)
		return add_path(d, inside, source->value, text);
	name = arena_printf(d->l.arena, "content of %s:%u", s->place.source->name,
			    source->value->place.line);
	d->l.no_memory |= !name;
	return name && add_text(d, inside, &s->place, name, text);
}

bool import_block(struct draft *d, const struct scope *scope, const struct stmt *s)
{
	int kind = kind_of(s->name);
	const struct stmt *source;
	struct import *made;

	check(kind >= 0);
	if (kinds[kind].refused) {
		lang_error(&d->l, s->place, kinds[kind].refused, "%s is not supported",
			   kinds[kind].name);
		made = import_new(d, scope, s);
		if (made)
			made->failed = true;
		return false;
	}
	if (scope->depth >= MAX_DEPTH) {
		lang_error(&d->l, s->place, "does one of them import itself?",
			   "modules import each other more than %d levels deep", MAX_DEPTH);
		return false;
	}
	source = kinds[kind].source ? NULL : s;
	if (!source && module_only(d, s, kinds[kind].known))
		source = module_needed(d, s, kinds[kind].source);
	made = source ? import_new(d, scope, s) : NULL;
	if (!made)
		return false;
	made->failed = !read_module(d, scope, s, source, made);
	return !made->failed;
}
