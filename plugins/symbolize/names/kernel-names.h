/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's names. The list is read when the first kernel frame comes, and again when an address
 * is unknown (a module or BPF program that came later), at most every ten seconds. Printing it
 * costs the kernel tens of milliseconds, so each time that was in vain, or failed, doubles the
 * pause, up to ten minutes. */
#pragma once

#include "base/error.h"
#include "elf/kallsyms.h"

#include <andiron/host.h>
#include <andiron/object.h>

#define KERNEL_REREAD_NS    (INT64_C(10) * 1000000000)
#define KERNEL_PAUSE_MAX_NS (INT64_C(600) * 1000000000)

struct kernel {
	const struct andiron_objects *objects;
	void *objects_self;
	struct kallsyms symbols;
	bool loaded;
	int64_t next_ns; /* not read again before */
	int64_t pause_ns;
	uint64_t reads;
	struct error why; /* why the last read failed; code 0 if it did not */
};

void kernel_init(struct kernel *k, const struct andiron_extension *objects);
void kernel_fini(struct kernel *k);
size_t kernel_bytes(const struct kernel *k);

/* The linked name that covers an address, borrowed until the next call. 0;
 * -ENOENT: none does; -EACCES or another errno: there is no list (k->why). */
int kernel_find(struct kernel *k, uint64_t address, int64_t now_ns, struct str *ret);
