/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin file says of itself, read without loading it: so a plugin is opened only for a
 * configuration that needs it, and another's code and libraries stay out of the process.
 *
 * A plugin's tables are constant data, and the pointers within them are relative relocations. A
 * file in which anything is not as expected has no outline; it is opened to be known. */
#pragma once

#include "base/arena.h"

#include <andiron/plugin.h>

/* The plugin with its name and needs, and each component with its name, flags, needs, offers and
 * wants; all else is 0. In the arena. 0; -ENOEXEC: there is no outline; -ENOMEM. Bounded in the
 * size of what it reads. */
int outline_read(const char *path, struct arena *arena, const struct andiron_plugin **ret);
