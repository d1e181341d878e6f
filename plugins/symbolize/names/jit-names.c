/* SPDX-License-Identifier: Apache-2.0 */
/* Names of JIT-compiled code. Contract in jit-names.h. */
#include "symbolize/names/jit-names.h"

#include <errno.h>

/* "inner:/app/a.py"; qualified names ("A.f.<locals>.g") have no colon. */
static int python_name(struct str reported, struct buf *out, struct str *ret_file)
{
	struct str file = reported, function = str_cut(&file, ':');

	if (!function.n || !file.n)
		return 0;
	if (buf_printf(out, "%.*s:%.*s", STR_FMT(file), STR_FMT(function)) < 0)
		return -ENOMEM;
	*ret_file = file;
	return 1;
}

/* What stands between the result's type and the parameters, if that is a method of a class. */
static struct str java_method(struct str reported)
{
	struct str head = str_first(reported, str_find(reported, '('));
	size_t space = str_rfind(head, ' ');
	struct str method = space < head.n ? str_skip(head, space + 1) : STR("");

	if (head.n == reported.n || reported.p[reported.n - 1] != ')' || !space)
		return STR("");
	return str_find(method, '.') < method.n ? method : STR("");
}

int jit_name(struct str reported, struct buf *out, struct str *ret_file)
{
	struct str method;

	buf_clear(out);
	if (str_starts(reported, STR("py::")))
		return python_name(str_skip(reported, 4), out, ret_file);
	method = java_method(reported);
	if (!method.n)
		return 0;
	return buf_append(out, method.p, method.n) < 0 ? -ENOMEM : 1;
}
