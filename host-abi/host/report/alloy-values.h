/* SPDX-License-Identifier: Apache-2.0 */
/* Values as Alloy shows them to programs: a block's body is a list of attributes and blocks, each
 * value an object of its type and itself. Secrets are "(secret)", and so is the password in a URL.
 * Source: Alloy, syntax/encoding/alloyjson. */
#pragma once

#include "base/buf.h"

#include <andiron/option.h>
#include <andiron/value.h>

struct instance;

/* The arguments of a component or block, a MAP, by its options; those that are defaults are left
 * out. NULL is an empty body. Failure is left to the buffer's `failed`. */
void alloy_put_body(struct buf *out, const struct andiron_value *map,
		    const struct andiron_options *options);

/* What an instance exports: values that it has supplied, its lists of targets, and that it
 * receives. A list of which no copy is kept is there from the next time on, while somebody looks.
 * [loop] */
void alloy_put_exports(struct buf *out, struct instance *i);
