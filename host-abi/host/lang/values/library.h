/* SPDX-License-Identifier: Apache-2.0 */
/* The library's functions on text: string.*, encoding.*, file.path_join,
 * convert.nonsensitive; array.combine_maps and array.group_by; and json_path.
 *
 * library-yaml.c is not in libandiron (embed/no-yaml.c).
 *
 * Source: grafana/alloy, syntax/internal/stdlib; Go's packages strings, path/filepath, net/url and
 * encoding/base64, and go-cty's format. */
#pragma once

#include "host/lang/values/eval.h"

struct library_function {
	const char *name;
	const char *before; /* its deprecated name, or NULL */
	uint32_t least, most;
	const char *usage;
	/* With arguments of any kind, evaluated. */
	bool (*call)(struct lang *l, const struct expr *e, const struct andiron_value *args,
		     struct andiron_value *ret);
};

/* The table; a name NULL ends it. */
extern const struct library_function library_functions[];

/* Evaluates the arguments and calls it. */
bool library_call(struct lang *l, const struct expr *e, const struct library_function *f,
		  struct andiron_value *ret);
