/* SPDX-License-Identifier: Apache-2.0 */
/* What the block `<Plugin andiron>` of collectd's configuration says. docs/agents.md lists the
 * options. */
#pragma once

#include "base/error.h"
#include "base/vec.h"

#include <stdint.h>

struct oconfig_item_s;

typedef VEC(char *) settings_texts;

struct settings {
	char *config;                 /* a file or directory in Alloy's syntax; NULL: default */
	char *worker;                 /* NULL: the one installed */
	settings_texts plugin_dirs;   /* none: where plugins are installed */
	settings_texts target_labels; /* none: all that are shown, with their names */
	settings_texts metrics; /* besides the usual ones; "*" at the end: any that begins so */
	uint32_t log_level;     /* ANDIRON_LOG_* */
	uint32_t max_series;
	uint32_t queue_megabytes; /* 0: the library's default, as for `workers` */
	uint32_t stop_seconds;
	uint32_t workers;
};

/* Sets the defaults, and changes them to what the block says. A block may come in parts: options
 * that are lists grow, others are replaced. 0, -EINVAL and a text, -ENOMEM. Whatever comes of it
 * needs settings_free. */
void settings_init(struct settings *s);
int settings_read(struct settings *s, const struct oconfig_item_s *block, struct error *err);
void settings_free(struct settings *s);
