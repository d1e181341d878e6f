/* SPDX-License-Identifier: Apache-2.0 */
/* Values of JSON. Contract in lists.h. */
#include "docker/lists.h"

#include <errno.h>

struct str list_text(const json_t *value)
{
	return json_is_string(value)
		       ? (struct str){json_string_value(value), json_string_length(value)}
		       : STR_NULL;
}

struct str list_member(const json_t *object, const char *name)
{
	return list_text(json_object_get(object, name));
}

struct str list_truth(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name)) ? STR("true") : STR("false");
}

uint16_t list_port(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 && n <= UINT16_MAX ? (uint16_t)n : 0;
}

int list_parse(struct str text, const char *what, json_t **ret, struct error *err)
{
	json_error_t fault;
	json_t *list = json_loadb(text.p ? text.p : "", text.n, JSON_ALLOW_NUL, &fault);

	if (!list)
		return error_set(err, -EINVAL, "the list of %s is not JSON: line %d: %s", what,
				 fault.line, fault.text);
	if (!json_is_array(list)) {
		json_decref(list);
		return error_set(err, -EINVAL, "the list of %s is JSON, but no list", what);
	}
	*ret = list;
	return 0;
}
