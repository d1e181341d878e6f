/* SPDX-License-Identifier: Apache-2.0 */
/* Who a file is (struct andiron_object_key), asked of an open descriptor. */
#pragma once

#include <andiron/object.h>

#include <stdbool.h>

/* 0 or fstat's negative errno. At most three system calls, none of which waits for a network.
 * ret_size may be NULL. */
int identity_of(int fd, struct andiron_object_key *ret, uint64_t *ret_size);

/* Equal; a generation of 0 (unknown) equals any, since the change time in ns already tells a reused
 * inode from its predecessor. */
bool identity_same(const struct andiron_object_key *a, const struct andiron_object_key *b);

/* Equal keys have equal hashes. */
uint64_t identity_hash(const struct andiron_object_key *key);
