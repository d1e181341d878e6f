/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in json-body.h. */
#include "receive-http/json/json-body.h"

#include <errno.h>

int json_body_load(struct str body, json_t **ret, struct error *err)
{
	size_t n_values = 0;
	json_error_t why;
	json_t *root;

	for (size_t i = 0; i < body.n; i++)
		n_values += body.p[i] == ',' || body.p[i] == '[' || body.p[i] == '{';
	if (n_values > JSON_BODY_MAX_VALUES)
		return error_set(err, -E2BIG,
				 "the request has more than %u JSON values; as protobuf it may "
				 "have them",
				 JSON_BODY_MAX_VALUES);
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
