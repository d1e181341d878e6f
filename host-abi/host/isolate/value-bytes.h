/* SPDX-License-Identifier: Apache-2.0 */
/* A component's arguments (andiron/value.h) as bytes, for a process that is given them. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <andiron/value.h>

#define VALUE_BYTES_MAX ((size_t)32 << 20)

/* Appends the whole tree. Failure shows in the buffer. */
void value_bytes_put(struct buf *b, const struct andiron_value *value);
/* The tree that these bytes are, copied into the arena: 0, -EBADMSG, -ENOMEM. */
int value_bytes_get(struct str bytes, struct arena *arena, struct andiron_value *ret);
