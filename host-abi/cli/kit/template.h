/* SPDX-License-Identifier: Apache-2.0 */
/* The files of new projects, made from templates/: KIND.c, KIND.alloy, and meson.build for all
 * kinds. "@NAME@" stands for the plugin's name, an identifier of C. */
#pragma once

struct kit_template {
	const char *name; /* NULL: the end */
	const char *text;
};

extern const struct kit_template kit_templates[];
