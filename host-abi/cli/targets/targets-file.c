/* SPDX-License-Identifier: Apache-2.0 */
/* See targets-file.h. */
#include "cli/targets/targets-file.h"

#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>

#define BYTES_MAX ((size_t)64 << 20)

static struct andiron_str copy(struct arena *arena, const char *text, size_t n, bool *failed)
{
	struct str s = arena_str(arena, (struct str){text, n});

	*failed |= !s.p;
	return (struct andiron_str){s.p, s.n};
}

/* One target. */
static int read_map(json_t *object, struct arena *arena, struct andiron_value *ret,
		    struct error *err)
{
	size_t n = json_object_size(object), i = 0;
	struct andiron_value *items = arena_array(arena, struct andiron_value, n + 1);
	struct andiron_str *keys = arena_array(arena, struct andiron_str, n + 1);
	bool failed = !items || !keys;
	const char *key;
	json_t *value;

	if (failed)
		return -ENOMEM;
	json_object_foreach(object, key, value)
	{
		if (!json_is_string(value))
			return error_set(err, -EINVAL, "its label \"%s\" is no string", key);
		keys[i] = copy(arena, key, strlen(key), &failed);
		items[i++] =
			(struct andiron_value){.kind = ANDIRON_VALUE_STRING,
					       .string = copy(arena, json_string_value(value),
							      json_string_length(value), &failed)};
	}
	*ret = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = items, .n_items = n};
	return failed ? -ENOMEM : 0;
}

static int read_list(json_t *array, struct arena *arena, const struct andiron_value **ret,
		     struct error *err)
{
	struct andiron_value *list = arena_alloc(arena, sizeof(*list)), *items;
	size_t n = json_array_size(array);

	if (!json_is_array(array))
		return error_set(err, -EINVAL, "it holds no array of targets");
	items = arena_array(arena, struct andiron_value, n + 1);
	if (!list || !items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_t *target = json_array_get(array, i);
		int r = json_is_object(target)
				? read_map(target, arena, &items[i], err)
				: error_set(err, -EINVAL, "it is no object of labels");

		if (r)
			return r == -ENOMEM ? r : error_wrap(err, r, "target %zu", i + 1);
	}
	*list = (struct andiron_value){.kind = ANDIRON_VALUE_LIST, .items = items, .n_items = n};
	*ret = list;
	return 0;
}

int targets_file_read(const char *path, struct arena *arena, const struct andiron_value **ret,
		      struct error *err)
{
	struct buf text = BUF_NULL;
	json_error_t wrong;
	json_t *root;
	int r = file_read(AT_FDCWD, path, &text, BYTES_MAX);

	if (r) {
		buf_free(&text);
		return error_errno(err, r, "cannot read %s", path);
	}
	root = json_loadb(text.n ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
			  &wrong);
	buf_free(&text);
	if (!root)
		return error_set(err, -EINVAL, "%s:%d:%d: %s", path, wrong.line, wrong.column,
				 wrong.text);
	r = read_list(root, arena, ret, err);
	json_decref(root);
	if (r == -ENOMEM)
		return error_set(err, r, "out of memory");
	return r ? error_wrap(err, r, "%s", path) : 0;
}
