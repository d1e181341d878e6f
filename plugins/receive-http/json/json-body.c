/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in json-body.h. */
#include "receive-http/json/json-body.h"

#include <errno.h>

/* What can be told before a value is made of it: text that is no JSON is found later. */
struct extent {
	size_t n_values, depth, deepest;
};

/* Behind the string that begins at `at`. */
static size_t skip_string(struct str body, size_t at)
{
	for (at++; at < body.n && body.p[at] != '"'; at++)
		at += body.p[at] == '\\';
	return at;
}

static struct extent measure(struct str body)
{
	struct extent e = {0};

	for (size_t i = 0; i < body.n; i++) {
		char c = body.p[i];

		if (c == '"')
			i = skip_string(body, i);
		e.n_values += c == ',' || c == '[' || c == '{';
		e.depth += c == '[' || c == '{';
		e.depth -= (c == ']' || c == '}') && e.depth > 0;
		e.deepest = e.depth > e.deepest ? e.depth : e.deepest;
	}
	return e;
}

int json_body_load(struct str body, json_t **ret, struct error *err)
{
	struct extent extent = measure(body);
	json_error_t why;
	json_t *root;

	if (extent.n_values > JSON_BODY_MAX_VALUES)
		return error_set(err, -E2BIG,
				 "the request has more than %u JSON values; as protobuf it may "
				 "have them",
				 JSON_BODY_MAX_VALUES);
	if (extent.deepest > JSON_BODY_MAX_DEPTH)
		return error_set(err, -EBADMSG, "the request has JSON more than %u levels deep",
				 JSON_BODY_MAX_DEPTH);
	root = json_loadb(body.n ? body.p : "", body.n, 0, &why);
	if (json_is_object(root)) {
		*ret = root;
		return 0;
	}
	error_set(err, -EBADMSG, "the request is no JSON object: %.100s",
		  root ? "it is another value" : why.text);
	json_decref(root);
	return -EBADMSG;
}
