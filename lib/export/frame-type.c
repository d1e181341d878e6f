/* SPDX-License-Identifier: Apache-2.0 */
/* See frame-type.h. */
#include "export/frame-type.h"

static struct str base_name(struct str path)
{
	size_t slash = str_rfind(path, '/');

	return slash < path.n ? str_skip(path, slash + 1) : path;
}

bool frame_type_is_kernel(struct str file)
{
	return str_starts(file, STR("[kernel")) || str_ends(file, STR(".ko")) ||
	       str_is(base_name(file), "vmlinux");
}

/* "[cpython]": lower-case letters and digits, and none of the names that other memory has. */
static struct str runtime_of(struct str file)
{
	struct str name = file.n > 2 ? str_first(str_skip(file, 1), file.n - 2) : STR_NULL;

	if (!str_starts(file, STR("[")) || !str_ends(file, STR("]")) || str_is(name, "anon") ||
	    str_is(name, "vdso") || str_is(name, "unknown") || str_is(name, "heap") ||
	    str_is(name, "stack") || str_is(name, "vsyscall"))
		return STR_NULL;
	for (size_t i = 0; i < name.n; i++)
		if (!(name.p[i] >= 'a' && name.p[i] <= 'z') &&
		    !(name.p[i] >= '0' && name.p[i] <= '9'))
			return STR_NULL;
	return name;
}

bool frame_type_is_runtime(struct str file)
{
	return runtime_of(file).n > 0;
}

static struct str language_of(struct str source)
{
	return str_ends(source, STR(".go"))   ? STR("go")
	       : str_ends(source, STR(".rs")) ? STR("rust")
					      : STR("native");
}

struct str frame_type(const struct profile *p, const struct profile_location *l)
{
	struct str file = p->mappings[l->mapping].file, runtime = runtime_of(file);

	if (str_is(file, "[andiron]"))
		return STR_NULL;
	if (frame_type_is_kernel(file))
		return STR("kernel");
	if (runtime.n)
		return runtime;
	if (l->n_lines == 0)
		return STR("native");
	return language_of(p->functions[p->lines[l->line_start].function].file);
}
