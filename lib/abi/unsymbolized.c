/* SPDX-License-Identifier: Apache-2.0 */
/* Frames without a name. Contract in unsymbolized.h. */
#include "abi/unsymbolized.h"

#include <inttypes.h>

#define MAX_FILE 256u

/* "/usr/lib/a.so" and "[vdso]" are "a.so" and "vdso" between the brackets. */
static struct str inner(struct str file)
{
	size_t slash = str_rfind(file, '/');

	if (slash < file.n)
		file = str_skip(file, slash + 1);
	if (file.n > 2 && file.p[0] == '[' && file.p[file.n - 1] == ']')
		file = (struct str){file.p + 1, file.n - 2};
	return str_first(file, MAX_FILE);
}

int unsymbolized_put(struct buf *out, struct str file, uint64_t function)
{
	struct str name = inner(file);

	buf_clear(out);
	if (function)
		return buf_printf(out, "[%.*s fn 0x%" PRIx64 "]", STR_FMT(name), function);
	return buf_printf(out, "[%.*s]", STR_FMT(name));
}

bool unsymbolized_is(struct str name, struct str file)
{
	struct str known = inner(file);

	if (name.n < 2 || name.p[0] != '[' || name.p[name.n - 1] != ']')
		return false;
	name = (struct str){name.p + 1, name.n - 2};
	if (!known.n || !str_starts(name, known))
		return false;
	name = str_skip(name, known.n);
	return name.n == 0 || str_starts(name, STR(" fn 0x"));
}
