/* SPDX-License-Identifier: Apache-2.0 */
/* Frames out of Go's table of functions. */
#pragma once

#include "dwarf/dwarf.h"
#include "gosym/pclntab.h"

/* The frames of an address, innermost first, replacing what *ret held; one where inlines is false.
 * -ENOENT: no function covers it; else as pclntab.h says. */
int go_frames(struct pclntab *t, uint64_t address, bool inlines, struct dwarf_frames *ret);
