/* SPDX-License-Identifier: Apache-2.0 */
/* Application and labels. Contract in series-name.h. */
#include "receive-http/series-name.h"

#include <errno.h>

static int refuse(struct error *err, const char *why, struct str name)
{
	name = str_first(name, 200);
	return error_set(err, -EINVAL, "name=%.*s: %s", STR_FMT(name), why);
}

/* Takes a label off the front, and the comma behind it: NULL, or what is wrong. */
static const char *cut_label(struct str *rest, struct target_label *ret)
{
	size_t equals = str_find(*rest, '='), end = equals + 1;

	ret->name = str_trim(str_first(*rest, equals));
	if (equals == rest->n || !ret->name.n)
		return "a label has no name or no \"=\"";
	while (end < rest->n && rest->p[end] != ',' && rest->p[end] != '}')
		end++;
	if (end == rest->n)
		return "the labels do not end with \"}\"";
	ret->value = str_trim((struct str){rest->p + equals + 1, end - equals - 1});
	*rest = str_skip(*rest, rest->p[end] == ',' ? end + 1 : end);
	return NULL;
}

int series_name_parse(struct str name, struct str *ret_app, series_labels *labels,
		      struct error *err)
{
	struct str rest = name;
	struct str app = str_trim(str_cut(&rest, '{'));

	if (!str_utf8(name))
		return error_set(err, -EINVAL, "name= is not UTF-8");
	if (!app.n)
		return refuse(err, "it names no application; write APP or APP{LABEL=VALUE}", name);
	while (rest.n && rest.p[0] != '}') {
		struct target_label l;
		const char *why = cut_label(&rest, &l);

		if (!why && labels->n >= SERIES_NAME_MAX_LABELS)
			why = "it has too many labels";
		if (why)
			return refuse(err, why, name);
		if (!vec_push(labels, l))
			return -ENOMEM;
	}
	if (!rest.n && str_find(name, '{') < name.n)
		return refuse(err, "the labels do not end with \"}\"", name);
	*ret_app = app;
	return 0;
}
