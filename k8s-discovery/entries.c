/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in entries.h. */
#include "k8s-discovery/entries.h"

#include "base/buf.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 65536u

/* STR_NULL without memory. */
static struct str decode(struct arena *arena, struct str in, bool *ret_bad)
{
	char *out = arena_alloc(arena, in.n / 4 * 3 + 2);
	ssize_t n = out ? base64_decode(out, in, BUF_BASE64, true) : 0;

	*ret_bad = n < 0;
	return out ? (struct str){out, (size_t)n} : STR_NULL;
}

static int by_key(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* The keys of the object in their order, so that the same entries are the same value. */
static const char **keys_of(struct arena *arena, json_t *data, size_t n)
{
	const char **keys = arena_array(arena, const char *, n + 1), *key;
	json_t *value;
	size_t i = 0;

	if (!keys)
		return NULL;
	json_object_foreach(data, key, value) keys[i++] = key;
	qsort(keys, n, sizeof(*keys), by_key);
	return keys;
}

static int read_entry(struct arena *arena, const char *key, const json_t *value, bool secret,
		      struct andiron_value *ret, struct error *err)
{
	struct str text = {json_string_value(value), json_string_length(value)};
	bool bad = !text.p;

	if (text.p)
		text = secret ? decode(arena, text, &bad) : arena_str(arena, text);
	if (bad)
		return error_set(err, -EINVAL, "its entry %.100s is not %s", key,
				 secret ? "in base64" : "a string");
	*ret = (struct andiron_value){
		.kind = ANDIRON_VALUE_STRING,
		.flags = secret ? ANDIRON_VALUE_SECRET : 0,
		.string = {text.p, text.n},
	};
	return text.p ? 0 : -ENOMEM;
}

static int read_all(struct arena *arena, json_t *data, bool secret, struct andiron_value *ret,
		    size_t *ret_left_out, struct error *err)
{
	size_t n = json_object_size(data), used = 0;
	struct andiron_value *items = arena_array(arena, struct andiron_value, n + 1);
	struct andiron_str *names = arena_array(arena, struct andiron_str, n + 1);
	const char **keys = n <= MAX_ENTRIES ? keys_of(arena, data, n) : NULL;

	if (n > MAX_ENTRIES)
		return error_set(err, -EINVAL, "it has more than %u entries", MAX_ENTRIES);
	if (!items || !names || !keys)
		return -ENOMEM;
	*ret_left_out = 0;
	for (size_t i = 0; i < n; i++) {
		struct str name = arena_str(arena, str_of(keys[i]));
		int r = read_entry(arena, keys[i], json_object_get(data, keys[i]), secret,
				   &items[used], err);

		if (r < 0 || !name.p)
			return r < 0 ? r : -ENOMEM;
		if (!str_utf8((struct str){items[used].string.ptr, items[used].string.len})) {
			++*ret_left_out;
			continue;
		}
		names[used++] = (struct andiron_str){name.p, name.n};
	}
	*ret = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = names, .items = items, .n_items = used};
	return 0;
}

int entries_read(struct arena *arena, struct str json, bool secret, struct andiron_value *ret,
		 size_t *ret_left_out, struct error *err)
{
	const char *kind = secret ? "Secret" : "ConfigMap", *is;
	json_t *root = json_loadb(json.p ? json.p : "", json.n, 0, NULL), *data;
	int r;

	is = json_string_value(json_object_get(root, "kind"));
	data = json_object_get(root, "data");
	if (!is || strcmp(is, kind) != 0)
		r = error_set(err, -EINVAL, "the answer is no %s in JSON", kind);
	else if (data && !json_is_object(data) && !json_is_null(data))
		r = error_set(err, -EINVAL, "the data of the answer is no object");
	else
		r = read_all(arena, data, secret, ret, ret_left_out, err);
	json_decref(root);
	return r;
}
