/* SPDX-License-Identifier: Apache-2.0 */
/* What a function is called, through the entries that stand for it. */
#pragma once

#include "dwarf/unit.h"

struct dwarf_name {
	struct buf text;
	bool linked;   /* as a linker knows it; else as it is in the source */
	uint32_t line; /* that declares it; 0: unknown */
};

/* Follows abstract origins and specifications from the entry that `from`
 * refers to, at most 16. The linked name counts wherever it stands, else the first name. What
 * *ret held is gone. -ENOENT: there is no name; -ENOEXEC, -ENOMEM or pread's errno. */
int dwarf_name_read(const struct unit *u, const struct form_value *from, struct dwarf_name *ret);
