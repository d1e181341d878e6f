/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup paths, read by hand: a component either is a container's or is not, and a regular
 * expression over the whole path would have to guess where one ends. Walking from the leaf upwards
 * makes the innermost container win and lets anything that a container nests inside itself (an init
 * system, say) pass. */
#include "proc/container.h"

#include "base/check.h"

#define ID_DIGITS   64
#define TASK_DIGITS 32
#define TASK_NUMBER 20 /* decimal digits of a 64-bit number */

static bool is_decimal(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n > 0;
}

/* ECS on Fargate: the task's 32 hex digits and the container's number. */
static bool is_task(struct str name)
{
	struct str number = str_skip(name, TASK_DIGITS + 1);

	return name.n > TASK_DIGITS + 1 && name.p[TASK_DIGITS] == '-' &&
	       str_is_hex(str_first(name, TASK_DIGITS)) && number.n <= TASK_NUMBER &&
	       is_decimal(number);
}

/* The id in one component of a path: "ID", "RUNTIME-ID.scope" or
 * "…:RUNTIME:ID". STR_NULL if it is no container's. */
static struct str component_id(struct str name)
{
	struct str prefix, id;

	if (str_ends(name, STR(".mount")))
		return STR_NULL;
	if (str_ends(name, STR(".scope")))
		name.n -= sizeof(".scope") - 1;
	if (is_task(name))
		return name;
	if (name.n < ID_DIGITS)
		return STR_NULL;
	prefix = str_first(name, name.n - ID_DIGITS);
	id = str_skip(name, prefix.n);
	if (!str_is_hex(id))
		return STR_NULL;
	if (prefix.n && prefix.p[prefix.n - 1] != '-' && prefix.p[prefix.n - 1] != ':')
		return STR_NULL;
	if (str_search(prefix, STR("conmon")) < prefix.n)
		return STR_NULL;
	return id;
}

bool container_id_of_path(struct str path, char out[CONTAINER_ID_MAX])
{
	while (path.n) {
		size_t slash = str_rfind(path, '/');
		bool last = slash == path.n;
		struct str name = last ? path : str_skip(path, slash + 1);
		struct str id = component_id(name);

		if (id.n) {
			check(id.n < CONTAINER_ID_MAX);
			memcpy(out, id.p, id.n);
			out[id.n] = 0;
			return true;
		}
		path = last ? STR_NULL : str_first(path, slash);
	}
	return false;
}

/* The path of one line; *ret_controllers is the part before it. */
static struct str line_path(struct str line, struct str *ret_controllers)
{
	str_cut(&line, ':');
	*ret_controllers = str_cut(&line, ':');
	return line;
}

bool container_id(struct str cgroup_text, char out[CONTAINER_ID_MAX])
{
	while (cgroup_text.n) {
		struct str controllers;
		struct str path = line_path(str_cut(&cgroup_text, '\n'), &controllers);

		if (container_id_of_path(path, out))
			return true;
	}
	return false;
}

static bool is_unit(struct str name)
{
	static const struct str kinds[] = {
		{".service", 8}, {".scope", 6}, {".socket", 7}, {".mount", 6}, {".swap", 5}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (name.n > kinds[i].n && str_ends(name, kinds[i]))
			return true;
	return false;
}

static struct str path_unit(struct str path)
{
	while (path.n) {
		size_t slash = str_rfind(path, '/');

		if (slash == path.n)
			return is_unit(path) ? path : STR_NULL;
		if (is_unit(str_skip(path, slash + 1)))
			return str_skip(path, slash + 1);
		path.n = slash;
	}
	return STR_NULL;
}

struct str systemd_unit(struct str cgroup_text)
{
	struct str unit = STR_NULL;

	/* Where systemd has a hierarchy of its own it precedes the unified one. */
	while (cgroup_text.n && !unit.n) {
		struct str controllers;
		struct str path = line_path(str_cut(&cgroup_text, '\n'), &controllers);

		if (!controllers.n || str_is(controllers, "name=systemd"))
			unit = path_unit(path);
	}
	return unit;
}
