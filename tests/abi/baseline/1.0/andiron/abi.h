/* SPDX-License-Identifier: Apache-2.0 */
/* The andiron plugin ABI, version 1: ground rules.
 *
 * A plugin is a shared object that exports one constant data symbol,
 * `andiron_plugin_v1` (plugin.h). Everything else crosses the border through
 * tables of functions and through the nouns of this folder: values
 * (value.h), targets (target.h), profile batches (batch.h), objects
 * (object.h). Headers are plain C11 (and C++), fixed-width integers and libc
 * only; an implementation needs nothing but this folder.
 *
 * RULES THAT HOLD EVERYWHERE
 *
 * Layout.  No struct by value, bool, enum, bit-field or floating-point
 *   argument crosses; at most six arguments. Little-endian, 64-bit.
 * Growth.  A struct whose first member is `uint32_t size` grows at its end
 *   only. The side that fills it stores sizeof; the side that reads it uses
 *   no member beyond `size`. In requests and options a non-zero tail that
 *   one does not know is refused with -E2BIG; in function tables and
 *   read-only information unknown tails are ignored, and an absent member
 *   counts as NULL. The members of version 1.0 are always there; one that is
 *   "absent in shorter tables" may be absent or NULL, which means the same:
 *   ask ANDIRON_HAS before each use. Never compare `size` with one's own
 *   sizeof: that refuses everybody who is older. Structs without `size` are
 *   frozen. Arrays of growing structs carry a stride.
 * Extensions.  Everything new that is not a tail member has an id with a
 *   revision ("andiron.objects/1"). An id never changes its meaning.
 * Strings.  Pointer and length, UTF-8, not NUL-terminated unless said.
 * Ownership.  What is handed over carries `retain` and `release`; all else
 *   is borrowed for the duration of the call. Neither side frees the other's
 *   memory. Ids are integers, 0 is "none".
 * Results.  int32_t: 0 is success (or a documented positive answer), a
 *   negative errno otherwise. After a failure outputs are untouched and the
 *   state is as before the call, unless said. Text for people goes into the
 *   host-owned `struct andiron_error` (host.h); it never pins a library.
 * Unloading.  Never: code and constants of a plugin live as long as the
 *   process. A plugin must not need constructors, signal handlers, changes
 *   of locale, directory, environment or signal masks, fork or exit.
 * Stack.  A callback uses at most 8 KiB of stack.
 *
 * THREADS. Each function is tagged:
 *   [loop]    the host's loop thread; must not block or parse at length
 *   [worker]  one of the host's worker threads; may block and compute
 *   [any]     any thread, concurrently
 *   [serial]  in addition: never concurrent with another [serial] call of
 *             the same component instance. All calls of a component that
 *             take its `self` are [serial], whatever thread they run on, so
 *             a component needs no locks of its own.
 * Threads that a plugin starts itself have all signals blocked.
 *
 * HISTORY
 *   1.0  2026-11  first version */
#ifndef ANDIRON_ABI_H
#define ANDIRON_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_ABI_MAJOR 1
#define ANDIRON_ABI_MINOR 0

/* Whether the side that filled the growing struct `p` points to knew the member. */
#define ANDIRON_KNOWS(p, struct_name, member)                                                      \
	((p)->size >= offsetof(struct struct_name, member) + sizeof((p)->member))

/* Whether it has the function, or whatever else is 0 where there is none. */
#define ANDIRON_HAS(p, struct_name, member) (ANDIRON_KNOWS(p, struct_name, member) && (p)->member)

/* A borrowed string. `ptr` may be NULL only if `len` is 0. Frozen. */
struct andiron_str {
	const char *ptr;
	uint64_t len;
};

/* A key and its value, as log lines and metrics carry them. Frozen. */
struct andiron_kv {
	struct andiron_str key;
	struct andiron_str value;
};

#ifdef __cplusplus
}
#endif

#endif
