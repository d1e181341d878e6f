/* SPDX-License-Identifier: Apache-2.0 */
/* How each version of CPython lays its structures out. To 3.12 a table of ours; from 3.13 what the
 * interpreter says itself at the beginning of _PyRuntime, checked before it is believed. */
#pragma once

#include "python/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_OFFSETS_BYTES 1024u /* of _PyRuntime that layout_of_runtime() reads */

/* Of a version 3.6 to 3.12, without the loop's machine frame. false: it has no table, and `kind` is
 * PYTHON_UNKNOWN. `version` as in PY_VERSION_HEX. */
bool layout_of_version(uint32_t version, struct python_layout *ret);

/* From the beginning of _PyRuntime, 3.13 to 3.15. NULL, or in plain words what was not found, or
 * was not credible; *ret then has the version, if it is there, and `kind` PYTHON_UNKNOWN. */
const char *layout_of_runtime(const unsigned char *bytes, size_t n, struct python_layout *ret);

/* As people write it: "3.11.2", "3.13.0rc1", with a "t" where threads are free.
 * At most 24 bytes. */
void layout_version_text(const struct python_layout *l, char *ret, size_t n);
