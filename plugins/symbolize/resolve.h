/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the parser about addresses of an object: opens the files that belong to it by
 * andiron.objects/1, and remembers what it answers. */
#pragma once

#include "symbolize/symbolizer.h"

/* Addresses in rising order, none of them in the cache. */
struct resolve {
	const uint64_t *addresses;
	size_t n;
	uint32_t demangle;
	int64_t now_ns;
};

/* Afterwards o->state says how it went, and what was answered is in the cache; an address that
 * could not be looked up is not. An object that could not be opened, or over which the parser died,
 * is not tried for a minute; one that does not parse, or killed the parser twice, no more; of one
 * that took more steps than it may, the debug information no more. 0 or -ENOMEM. */
int resolve(struct symbolizer *s, struct cached_object *o, const struct resolve *q);
