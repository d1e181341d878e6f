/* SPDX-License-Identifier: Apache-2.0 */
/* Settings. Contract in settings.h. */
#include "cli/convert/settings.h"

#include "base/ascii.h"
#include "base/buf.h"

#include <errno.h>
#include <string.h>

#define MAX_DEPTH 16 /* of maps; an alias may stand in its own anchor */

void settings_fini(struct settings *s)
{
	vec_free(&s->list);
	arena_free(&s->arena);
}

static struct str without_marks(struct str s)
{
	while (s.n && (*s.p == '-' || *s.p == '_'))
		s = str_skip(s, 1);
	return s;
}

/* Whether `name` begins with `start`; then *name is what is left of it. */
static bool skip_start(struct str *name, struct str start)
{
	for (;;) {
		start = without_marks(start);
		*name = without_marks(*name);
		if (!start.n || !name->n || ascii_lower(*start.p) != ascii_lower(*name->p))
			return !start.n;
		start = str_skip(start, 1);
		*name = str_skip(*name, 1);
	}
}

bool settings_same_name(struct str a, struct str b)
{
	return skip_start(&a, b) && !a.n;
}

static bool row_fits(const struct counterpart *row, struct str name)
{
	struct str pattern = str_of(row->name);

	if (str_ends(pattern, STR("*")))
		return skip_start(&name, str_first(pattern, pattern.n - 1));
	return settings_same_name(name, pattern);
}

static const struct counterpart *find_row(const struct counterpart *table, struct str name)
{
	for (const struct counterpart *row = table; row->name; row++)
		if (row_fits(row, name))
			return row;
	return NULL;
}

static int add(struct settings *s, const struct setting *from)
{
	struct setting kept = *from;

	kept.name = arena_str(&s->arena, from->name);
	kept.key = arena_str(&s->arena, from->key.p ? from->key : STR(""));
	kept.text = arena_str(&s->arena, from->text.p ? from->text : STR(""));
	if (!kept.name.p || !kept.key.p || !kept.text.p || !vec_push(&s->list, kept))
		return -ENOMEM;
	return 0;
}

static bool takes_no_value(const struct counterpart *row)
{
	return row && (row->kind == PUT_BOOL || row->kind == PUT_NOT || row->kind == PUT_OWN_BOOL ||
		       row->kind == HAS_NONE_BOOL || row->kind == IS_MOOT_BOOL);
}

/* "a=b;c=d" */
static int add_entries(struct settings *s, struct setting *entry)
{
	struct str rest = entry->text;
	int r = 0;

	while (rest.n && r == 0) {
		struct str value = str_cut(&rest, ';');

		entry->key = str_cut(&value, '=');
		entry->text = value;
		r = add(s, entry);
	}
	return r;
}

int settings_add(struct settings *s, const struct counterpart *table, const struct setting *from)
{
	struct setting one = *from;

	one.row = find_row(table, from->name);
	return one.row && one.row->kind == PUT_MAP ? add_entries(s, &one) : add(s, &one);
}

/* Of a flag that is in no table nothing says whether it takes a value. */
static bool is_known(const struct counterpart *row)
{
	return row && strcmp(row->name, "*") != 0;
}

static int add_flag(struct settings *s, const struct counterpart *table, struct str flag,
		    const char *next, bool *ret_taken)
{
	struct setting one = {0};
	bool has_value = str_find(flag, '=') < flag.n;

	one.name = str_cut(&flag, '=');
	one.text = flag;
	one.row = find_row(table, one.name);
	*ret_taken = false;
	if (!has_value && takes_no_value(one.row)) {
		one.text = STR("true");
	} else if (!has_value && next && (is_known(one.row) || *next != '-')) {
		one.text = str_of(next);
		*ret_taken = true;
	} else if (!has_value) {
		one.text = STR("true");
	}
	return settings_add(s, table, &one);
}

int settings_add_flags(struct settings *s, const struct counterpart *table, int argc, char **argv,
		       struct error *err)
{
	int r = 0;

	for (int i = 0; i < argc && r == 0; i++) {
		struct str flag = str_of(argv[i]);
		bool taken;

		if (!str_utf8(flag) || (i + 1 < argc && !str_utf8(str_of(argv[i + 1]))))
			return error_set(err, -EINVAL, "a flag is not UTF-8");
		if (*argv[i] != '-' || !without_marks(flag).n)
			return error_set(
				err, -EINVAL,
				"\"%s\" is no flag: flags are --name=value or --name value",
				argv[i]);
		r = add_flag(s, table, without_marks(flag), i + 1 < argc ? argv[i + 1] : NULL,
			     &taken);
		i += taken;
	}
	return r;
}

struct reader {
	struct settings *settings;
	const struct counterpart *table;
	struct yaml_view *view;
	struct error *err;
};

static int add_node(struct reader *r, struct setting *at, yaml_node_t *node, unsigned int depth);

static int add_member(struct reader *r, struct setting *at, struct str key, yaml_node_t *value,
		      unsigned int depth)
{
	struct setting inner = *at;
	struct buf name = BUF_NULL;
	int code;

	if (at->row && at->row->kind == PUT_MAP) {
		inner.key = key;
	} else {
		buf_printf(&name, "%.*s%s%.*s", STR_FMT(at->name), at->name.n ? "-" : "",
			   STR_FMT(key));
		inner.name = buf_str(&name);
		inner.row = find_row(r->table, inner.name);
	}
	code = name.failed ? -ENOMEM : add_node(r, &inner, value, depth + 1);
	buf_free(&name);
	return code;
}

static int add_node(struct reader *r, struct setting *at, yaml_node_t *node, unsigned int depth)
{
	int code = 0;

	if (depth > MAX_DEPTH || ++r->settings->visited > SETTINGS_MAX)
		return error_set(r->err, -E2BIG, "the file has more than %d values or %d levels",
				 SETTINGS_MAX, MAX_DEPTH);
	if (!node)
		return 0;
	at->line = node->start_mark.line + 1;
	if (node->type == YAML_MAPPING_NODE)
		for (size_t i = 0; yaml_view_value(r->view, node, i) && code == 0; i++)
			code = add_member(r, at, yaml_view_key(r->view, node, i),
					  yaml_view_value(r->view, node, i), depth);
	else if (node->type == YAML_SEQUENCE_NODE)
		for (size_t i = 0; i < yaml_view_count(node) && code == 0; i++)
			code = add_node(r, at, yaml_view_item(r->view, node, i), depth + 1);
	else if (at->name.n) {
		at->text = yaml_view_text(r->view, node);
		code = add(r->settings, at);
	}
	return code;
}

int settings_add_member(struct settings *s, const struct counterpart *table, struct yaml_view *view,
			yaml_node_t *map, size_t i, struct error *err)
{
	struct reader r = {s, table, view, err};

	return add_member(&r, &(struct setting){.name = STR("")}, yaml_view_key(view, map, i),
			  yaml_view_value(view, map, i), 0);
}

int settings_add_map(struct settings *s, const struct counterpart *table, struct yaml_view *view,
		     yaml_node_t *map, struct error *err)
{
	int r = 0;

	for (size_t i = 0; yaml_view_value(view, map, i) && r == 0; i++)
		r = settings_add_member(s, table, view, map, i, err);
	return r;
}

const struct setting *settings_find(const struct settings *s, const char *name)
{
	for (size_t i = s->list.n; i > 0; i--)
		if (settings_same_name(s->list.p[i - 1].name, str_of(name)))
			return &s->list.p[i - 1];
	return NULL;
}
