/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonation. Contract in impersonate.h. */
#include "k8s-discovery/api/impersonate.h"

#include "base/ascii.h"

#include <errno.h>

#define EXTRA "Impersonate-Extra-"

/* Lists may be aliases of one another: what they come to is not what the file weighs. */
#define MAX_HEADERS 1000u

struct reading {
	struct arena *arena;
	struct yaml_view *yaml;
	struct http_header *headers; /* room for all */
	size_t n;
	bool failed; /* memory was short */
};

static void add(struct reading *r, const char *name, struct str value)
{
	struct str copy = arena_str(r->arena, value);

	r->failed |= !name || !copy.p;
	if (!r->failed)
		r->headers[r->n++] = (struct http_header){str_of(name), copy};
}

static void add_member(struct reading *r, yaml_node_t *user, const char *member, const char *name)
{
	struct str value = yaml_view_text(r->yaml, yaml_view_member(r->yaml, user, member));

	if (value.n)
		add(r, name, value);
}

static void add_list(struct reading *r, yaml_node_t *list, const char *name)
{
	for (size_t i = 0; i < yaml_view_count(list); i++) {
		struct str value = yaml_view_text(r->yaml, yaml_view_item(r->yaml, list, i));

		if (value.n)
			add(r, name, value);
	}
}

/* A header's name may hold letters, digits and few signs (RFC 9110, token); all else goes as %XX,
 * and so does the percent sign. The server takes it in lower case. */
static const char *extra_name(struct reading *r, struct str key)
{
	static const char signs[] = "!#$&'*+-.^_`|~";
	char *out = arena_alloc(r->arena, sizeof(EXTRA) + 3 * key.n);
	size_t n = sizeof(EXTRA) - 1;

	if (!out)
		return NULL;
	memcpy(out, EXTRA, n);
	for (size_t i = 0; i < key.n; i++) {
		unsigned char c = (unsigned char)key.p[i];
		bool plain = ascii_is_alnum(c) || (c && strchr(signs, c));

		if (plain)
			out[n++] = (char)c;
		else
			n += (size_t)snprintf(out + n, 4, "%%%02X", c);
	}
	out[n] = '\0';
	return out;
}

/* {key: [value, …]} */
static void add_extra(struct reading *r, yaml_node_t *extra)
{
	yaml_node_t *values;

	for (size_t i = 0; (values = yaml_view_value(r->yaml, extra, i)); i++)
		add_list(r, values, extra_name(r, yaml_view_key(r->yaml, extra, i)));
}

static size_t count(struct yaml_view *yaml, yaml_node_t *groups, yaml_node_t *extra)
{
	size_t n = 2 + yaml_view_count(groups);
	yaml_node_t *values;

	for (size_t i = 0; (values = yaml_view_value(yaml, extra, i)); i++)
		n += yaml_view_count(values);
	return n;
}

int impersonate_read(struct arena *arena, struct yaml_view *yaml, yaml_node_t *user,
		     const char *path, struct http_config *http, struct error *err)
{
	yaml_node_t *groups = yaml_view_member(yaml, user, "as-groups");
	yaml_node_t *extra = yaml_view_member(yaml, user, "as-user-extra");
	struct reading r = {.arena = arena, .yaml = yaml};
	size_t named;

	named = count(yaml, groups, extra);
	if (named > MAX_HEADERS)
		return error_set(
			err, -EINVAL,
			"%s: the user has %zu groups and extras to act with, %u are possible", path,
			named, MAX_HEADERS);
	r.headers = arena_array(arena, struct http_header, named);
	if (!r.headers)
		return -ENOMEM;
	add_member(&r, user, "as", "Impersonate-User");
	named = r.n;
	add_member(&r, user, "as-uid", "Impersonate-Uid");
	add_list(&r, groups, "Impersonate-Group");
	add_extra(&r, extra);
	if (r.failed)
		return -ENOMEM;
	if (r.n && !named)
		return error_set(err, -EINVAL,
				 "%s: the user has as-uid, as-groups or as-user-extra, but no as; "
				 "name the user to act as",
				 path);
	http->headers = r.headers;
	http->n_headers = r.n;
	return 0;
}
