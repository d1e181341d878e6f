/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin offers, as text for people: made from its option tables. */
#pragma once

#include <andiron/plugin.h>

#include <stdio.h>

/* Name, version, components; of each component summary, exports, needs, capabilities and options
 * with type, default and doc. */
void describe_plugin(const struct andiron_plugin *plugin, const char *path, FILE *out);
void describe_component(const struct andiron_component *component, FILE *out);
