/* SPDX-License-Identifier: Apache-2.0 */
/* The files of new projects, made from templates/: KIND.FILE for a project of that kind, all.FILE
 * for each. "@NAME@" stands for the plugin's name, an identifier of C. */
#pragma once

struct kit_template {
	const char *name; /* NULL: the end */
	const char *text;
};

extern const struct kit_template kit_templates[];
