/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in library.h. Results are bounded, since replace in replace grows without end. */
#include "host/lang/values/library-text.h"

#define MAX_RESULT ((size_t)1 << 20)

struct buf library_text(void)
{
	return (struct buf){.limit = MAX_RESULT};
}

bool library_give(struct lang *l, const struct expr *e, struct buf *text, uint32_t flags,
		  struct andiron_value *ret)
{
	struct str copy = STR_NULL;

	if (text->failed)
		lang_error(l, e->place, NULL, "this text is longer than %zu bytes", MAX_RESULT);
	else
		copy = lang_str(l, buf_str(text));
	buf_free(text);
	*ret = eval_value(e, ANDIRON_VALUE_STRING);
	ret->string = (struct andiron_str){copy.p, copy.n};
	ret->flags = flags & ANDIRON_VALUE_SECRET;
	return copy.p;
}

bool library_give_str(struct lang *l, const struct expr *e, struct str s, uint32_t flags,
		      struct andiron_value *ret)
{
	struct buf text = library_text();

	buf_str_append(&text, s);
	return library_give(l, e, &text, flags, ret);
}

const struct expr *library_argument(const struct expr *e, size_t i)
{
	const struct expr *a = e->items;

	while (i--)
		a = a->next;
	return a;
}

bool library_refuse(struct lang *l, const struct expr *e, size_t i, const char *wanted,
		    const struct andiron_value *value)
{
	struct str name = eval_path(l, e->left);

	lang_error(l, library_argument(e, i)->place, NULL, "%.*s takes %s here, not %s",
		   STR_FMT(name), wanted, eval_describe(l, value));
	return false;
}

bool library_string(struct lang *l, const struct expr *e, size_t i, const char *wanted,
		    const struct andiron_value *v, struct str *ret)
{
	if (v->kind == ANDIRON_VALUE_NULL) {
		*ret = STR("");
		return true;
	}
	if (v->kind != ANDIRON_VALUE_BOOL && library_scalar(l, v, ret))
		return true;
	return !l->no_memory && library_refuse(l, e, i, wanted, v);
}

bool library_strings(struct lang *l, const struct expr *e, const struct andiron_value *args,
		     size_t n, struct str *ret)
{
	for (size_t i = 0; i < n; i++)
		if (!library_string(l, e, i, "a string", &args[i], &ret[i]))
			return false;
	return true;
}

bool library_open_strings(struct lang *l, const struct expr *e, const struct andiron_value *args,
			  size_t n, struct str *ret)
{
	struct str name = eval_path(l, e->left);

	for (size_t i = 0; i < n; i++)
		if (args[i].flags & ANDIRON_VALUE_SECRET) {
			lang_error(l, library_argument(e, i)->place,
				   "convert.nonsensitive(…) says that it may be shown",
				   "%.*s does not look into a secret", STR_FMT(name));
			return false;
		}
	return library_strings(l, e, args, n, ret);
}

#define MANY UINT32_MAX

const struct library_function library_functions[] = {
	{"string.format", "format", 1, MANY, "FORMAT, VALUE, …", library_format},
	{"string.join", "join", 2, 2, "LIST, SEPARATOR", library_join},
	{"string.replace", "replace", 3, 3, "TEXT, OLD, NEW", library_replace},
	{"string.split", "split", 2, 2, "TEXT, SEPARATOR", library_split},
	{"string.to_lower", "to_lower", 1, 1, "TEXT", library_lower},
	{"string.to_upper", "to_upper", 1, 1, "TEXT", library_upper},
	{"string.trim", "trim", 2, 2, "TEXT, CHARACTERS", library_trim},
	{"string.trim_prefix", "trim_prefix", 2, 2, "TEXT, PREFIX", library_trim_prefix},
	{"string.trim_suffix", "trim_suffix", 2, 2, "TEXT, SUFFIX", library_trim_suffix},
	{"string.trim_space", "trim_space", 1, 1, "TEXT", library_trim_space},
	{"encoding.to_base64", NULL, 1, 1, "TEXT", library_to_base64},
	{"encoding.from_base64", "base64_decode", 1, 1, "TEXT", library_from_base64},
	{"encoding.to_URLbase64", NULL, 1, 1, "TEXT", library_to_url64},
	{"encoding.from_URLbase64", NULL, 1, 1, "TEXT", library_from_url64},
	{"encoding.from_json", "json_decode", 1, 1, "TEXT", library_from_json},
	{"encoding.from_yaml", "yaml_decode", 1, 1, "TEXT", library_from_yaml},
	{"encoding.to_json", NULL, 1, 1, "OBJECT", library_to_json},
	{"encoding.url_encode", NULL, 1, 1, "TEXT", library_url_encode},
	{"encoding.url_decode", NULL, 1, 1, "TEXT", library_url_decode},
	{"file.path_join", NULL, 0, MANY, "PART, …", library_path_join},
	{"convert.nonsensitive", "nonsensitive", 1, 1, "SECRET", library_nonsensitive},
	{"array.combine_maps", NULL, 3, 4, "LIST, LIST, KEYS[, KEEP_LEFT]", library_combine_maps},
	{"array.group_by", NULL, 3, 3, "LIST, KEY, DROP_MISSING", library_group_by},
	{"json_path", NULL, 2, 2, "JSON, PATH", library_json_path},
	{NULL, NULL, 0, 0, NULL, NULL},
};

bool library_call(struct lang *l, const struct expr *e, const struct library_function *f,
		  struct andiron_value *ret)
{
	struct andiron_value *args = lang_array(l, struct andiron_value, e->n_items);
	bool good = args;
	size_t n = 0;

	if (e->n_items < f->least || e->n_items > f->most) {
		bool few = e->n_items < f->least;
		uint32_t bound = few ? f->least : f->most;

		lang_error(l, e->place,
			   arena_printf(l->arena, "write %s(%s)", f->name, f->usage),
			   "%s takes %s%u value%s, not %u", f->name,
			   f->most == f->least ? ""
			   : few               ? "at least "
					       : "at most ",
			   bound, bound == 1 ? "" : "s", e->n_items);
		return false;
	}
	for (const struct expr *a = e->items; args && a; a = a->next)
		good &= eval_open(l, a, &args[n++]);
	good = good && f->call(l, e, args, ret);
	while (good && n-- > 0)
		if (args[n].kind == ANDIRON_VALUE_LIST && ret->kind == ANDIRON_VALUE_LIST &&
		    args[n].string.len)
			ret->string = args[n].string;
	return good;
}
