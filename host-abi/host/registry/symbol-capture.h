/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process would answer a plugin's calls in place of the plugin's libraries. The
 * dynamic loader looks for a name in the program first and in the libraries that it was started
 * with, whatever the plugin is linked with, and -Bsymbolic is no help: the name is not the
 * plugin's own. An agent that exports what it is made of, with a JSON or HTTP library among it,
 * would be called with another library's structures. */
#pragma once

#include "host/registry/plugin-file.h"

/* 0; or -ENOEXEC and a sentence with the name. The C library's names, and those that are reserved
 * for compilers, may be anybody's: an allocator of the program's own is one for all. So may
 * those that registry_allow_answers allows, if all that the plugin calls are one program's. What
 * the plugin's libraries call in turn is not looked at. `file` has passed elf_check. O(symbols). */
int symbol_capture_check(const struct plugin_file *file, struct error *err);
