/* SPDX-License-Identifier: Apache-2.0 */
/* Split units (DWARF 5, sections 7.3.2 and 7.3.5; DebugFission for 4). */
#pragma once

#include "dwarf/file.h"

/* Tells the units of a split file (.dwo) or of a package of them (.dwp) where their shares of the
 * other sections are, and their ids. 0, -ENOEXEC, -ENOMEM or pread's errno. O(units). */
int package_apply(struct dwarf_file *f);

/* The unit of that id; NULL if it is not there. O(units). */
const struct unit_head *package_unit(const struct dwarf_file *f, uint64_t dwo_id);
