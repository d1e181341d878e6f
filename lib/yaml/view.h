/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into a YAML document by libyaml: members of maps, items of lists, texts of scalars. What
 * is of another kind than asked for counts as absent, so lookups can be chained; all accept NULL.
 */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <yaml.h>

#define YAML_VIEW_ANCHORS 1000 /* in a document */

struct yaml_view {
	yaml_document_t document;
};

/* 0; -EINVAL with the line for what is no YAML, -E2BIG with a text for more anchors than above,
 * -ENOMEM. `text` is not needed afterwards. */
int yaml_view_init(struct yaml_view *ret, struct str text, const char *name, struct error *err);
void yaml_view_fini(struct yaml_view *view);

yaml_node_t *yaml_view_root(struct yaml_view *view);
/* Of equal keys the first. O(members). */
yaml_node_t *yaml_view_member(struct yaml_view *view, yaml_node_t *map, const char *name);
yaml_node_t *yaml_view_item(struct yaml_view *view, yaml_node_t *list, size_t i);
/* The key's text and the value of a map's i-th member; STR_NULL and NULL beyond the last. */
struct str yaml_view_key(struct yaml_view *view, yaml_node_t *map, size_t i);
yaml_node_t *yaml_view_value(struct yaml_view *view, yaml_node_t *map, size_t i);
size_t yaml_view_count(const yaml_node_t *list);
/* STR_NULL for what is no scalar, and for null. Borrowed from the view. */
struct str yaml_view_text(struct yaml_view *view, yaml_node_t *node);
bool yaml_view_true(struct yaml_view *view, yaml_node_t *node);
