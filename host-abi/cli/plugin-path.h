/* SPDX-License-Identifier: Apache-2.0 */
/* Where the command looks for plugins: --plugin-dir, ANDIRON_PLUGIN_PATH, the install directory. */
#pragma once

#include "host/registry.h"
#include "cli/options.h"

/* Opens the registry; `dirs` are those of --plugin-dir, `probe` as in registry.h: for verbs that
 * only look. NULL, after a message, when memory is short. */
struct registry *plugin_path_open(const struct texts *dirs, bool probe);

/* The same for who runs components of its own: `given` as in registry.h. */
struct registry *plugin_path_open_with(const struct texts *dirs,
				       const struct andiron_plugin *const *given);

/* The flag itself of a verb's table of options; the value is a struct texts. */
#define PLUGIN_DIR_FLAG(type, member)                                                              \
	{                                                                                          \
		"plugin-dir", 0, FLAG_INTO(type, member), "DIR",                                   \
			"look for plugins here first; may be repeated"                             \
	}
