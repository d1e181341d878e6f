/* SPDX-License-Identifier: Apache-2.0 */
/* Target groups. Contract in groups.h. An alias of YAML's is a reference to what it stands for: a
 * short file may name one group many times. So what is looked at and kept is bounded as if it stood
 * there each time, and rows besides. JSON has no aliases: its text bounds what is kept of it. */
#include "discovery/groups.h"

#include "yaml/view.h"

#include <errno.h>
#include <jansson.h>

/* A node of YAML costs this and its text, kept or not: a file without aliases, of targets with
 * many short labels, stays below the limit. */
#define NODE_BYTES 16
#define MAX_COST   ((size_t)128 << 20)

struct reader {
	struct target_rows rows;
	size_t cost;
	struct target_label label; /* of all */
	struct error *err;
	size_t group; /* from 1, for messages */
};

static int refuse(const struct reader *r, const char *why)
{
	return error_set(r->err, -EINVAL, "target group %zu %s", r->group, why);
}

static int explain(const struct reader *r, int code)
{
	return code == -E2BIG ? error_set(r->err, code,
					  "there are more than %d targets, %zu labels or %zu MiB "
					  "of labels",
					  ROWS_MAX, ROWS_MAX_LABELS, ROWS_MAX_BYTES >> 20)
			      : code;
}

static struct str keep(struct reader *r, struct str text)
{
	return text.n ? arena_str(&r->rows.arena, text) : STR("");
}

/* The labels of the group in the making stand before the rows that have them. */
struct group {
	VEC(struct target_label) labels;
};

static int group_label(struct reader *r, struct group *g, struct str name, struct str value)
{
	struct target_label label = {keep(r, name), keep(r, value)};

	if (!name.n || !str_utf8(name))
		return refuse(r, "has a label whose name is empty or not UTF-8");
	if (!str_utf8(value))
		return refuse(r, "has a label whose value is not UTF-8");
	if (!label.name.p || !label.value.p || !vec_push(&g->labels, label))
		return -ENOMEM;
	return 0;
}

static int add_target(struct reader *r, const struct group *g, struct str address)
{
	struct str kept = keep(r, address);
	int code = kept.p ? 0 : -ENOMEM;

	for (size_t i = 0; i < g->labels.n && code == 0; i++)
		code = target_rows_label(&r->rows, g->labels.p[i].name, g->labels.p[i].value);
	if (code == 0)
		code = target_rows_label(&r->rows, r->label.name, r->label.value);
	if (code == 0)
		code = target_rows_label(&r->rows, STR("__address__"), kept);
	if (code == 0)
		code = target_rows_end(&r->rows);
	return explain(r, code);
}

static int finish(struct reader *r, int code, struct target_rows *ret)
{
	if (code < 0)
		target_rows_free(&r->rows);
	else
		*ret = r->rows;
	return code;
}

static struct str json_text(const json_t *value)
{
	return (struct str){json_string_value(value), json_string_length(value)};
}

static int json_labels(struct reader *r, struct group *g, json_t *labels)
{
	const char *key;
	json_t *value;
	int code = 0;

	if (labels && !json_is_object(labels) && !json_is_null(labels))
		return refuse(r, "has \"labels\" that are no object");
	json_object_foreach(labels, key, value) {
		if (!json_is_string(value))
			return error_set(r->err, -EINVAL,
					 "target group %zu: the value of its label %s is no string",
					 r->group, key);
		code = group_label(r, g, str_of(key), json_text(value));
		if (code < 0)
			break;
	}
	return code;
}

static int json_targets(struct reader *r, const struct group *g, json_t *targets)
{
	json_t *value;
	size_t i;
	int code = 0;

	if (targets && !json_is_array(targets) && !json_is_null(targets))
		return refuse(r, "has \"targets\" that are no list");
	json_array_foreach(targets, i, value) {
		if (!json_is_string(value))
			return refuse(r, "has a target that is no string");
		code = add_target(r, g, json_text(value));
		if (code < 0)
			break;
	}
	return code;
}

static int json_group(struct reader *r, json_t *json)
{
	struct group g = {0};
	const char *key;
	json_t *value;
	int code;

	if (!json_is_object(json))
		return refuse(r, "is no object");
	json_object_foreach(json, key, value)
		if (strcmp(key, "targets") != 0 && strcmp(key, "labels") != 0)
			return error_set(r->err, -EINVAL,
					 "target group %zu has \"%s\"; there are \"targets\" and "
					 "\"labels\"",
					 r->group, key);
	code = json_labels(r, &g, json_object_get(json, "labels"));
	if (code == 0)
		code = json_targets(r, &g, json_object_get(json, "targets"));
	vec_free(&g.labels);
	return code;
}

int groups_from_json(struct str text, struct target_label label, struct target_rows *ret,
		     struct error *err)
{
	struct reader r = {.label = label, .err = err};
	json_error_t fault;
	json_t *json = json_loadb(text.p ? text.p : "", text.n, 0, &fault), *group;
	size_t i;
	int code = 0;

	if (!json)
		return error_set(err, -EINVAL, "it is not JSON: line %d: %s", fault.line,
				 fault.text);
	if (!json_is_array(json))
		code = error_set(err, -EINVAL, "it is JSON, but no list of target groups");
	json_array_foreach(json, i, group) {
		r.group = i + 1;
		code = json_group(&r, group);
		if (code < 0)
			break;
	}
	json_decref(json);
	return finish(&r, code, ret);
}

/* Counts a look at a node. 0 or -E2BIG with a text. */
static int spend(struct reader *r, const yaml_node_t *node)
{
	r->cost += NODE_BYTES;
	if (node && node->type == YAML_SCALAR_NODE)
		r->cost += node->data.scalar.length;
	if (r->cost <= MAX_COST)
		return 0;
	return error_set(r->err, -E2BIG,
			 "it holds more than %zu MiB of groups and labels, with aliases counted as "
			 "what they stand for",
			 MAX_COST >> 20);
}

/* Null counts as absent; nothing at all is null, too. */
static bool yaml_is_null(struct yaml_view *view, yaml_node_t *node)
{
	if (!node)
		return true;
	return node->type == YAML_SCALAR_NODE &&
	       (!yaml_view_text(view, node).p ||
		(node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
		 node->data.scalar.length == 0));
}

static int yaml_labels(struct reader *r, struct group *g, struct yaml_view *view, yaml_node_t *map)
{
	int code = 0;

	if (!yaml_is_null(view, map) && map->type != YAML_MAPPING_NODE)
		return refuse(r, "has labels that are no map");
	for (size_t i = 0; code == 0; i++) {
		struct str name = yaml_view_key(view, map, i);
		yaml_node_t *value = yaml_view_value(view, map, i);

		if (!value)
			break;
		r->cost += NODE_BYTES + name.n;
		code = spend(r, value);
		if (code < 0)
			break;
		if (value->type != YAML_SCALAR_NODE)
			return error_set(r->err, -EINVAL,
					 "target group %zu: the value of its label %.*s is no text",
					 r->group, STR_FMT(name));
		code = group_label(r, g, name, yaml_view_text(view, value));
	}
	return code;
}

static int yaml_targets(struct reader *r, const struct group *g, struct yaml_view *view,
			yaml_node_t *list)
{
	int code = 0;

	if (!yaml_is_null(view, list) && list->type != YAML_SEQUENCE_NODE)
		return refuse(r, "has targets that are no list");
	for (size_t i = 0; i < yaml_view_count(list) && code == 0; i++) {
		yaml_node_t *node = yaml_view_item(view, list, i);
		struct str text = yaml_view_text(view, node);

		code = spend(r, node);
		if (code < 0)
			break;
		code = text.p ? add_target(r, g, text)
			      : refuse(r, "has a target that is no text");
	}
	return code;
}

static int yaml_group(struct reader *r, struct yaml_view *view, yaml_node_t *map)
{
	struct group g = {0};
	yaml_node_t *value;
	int code = spend(r, map);

	if (code < 0)
		return code;
	if (!map || map->type != YAML_MAPPING_NODE)
		return refuse(r, "is no map");
	for (size_t i = 0; (value = yaml_view_value(view, map, i)); i++) {
		struct str key = yaml_view_key(view, map, i);

		code = spend(r, value);
		if (code < 0)
			return code;
		if (!str_is(key, "targets") && !str_is(key, "labels"))
			return error_set(r->err, -EINVAL,
					 "target group %zu has \"%.*s\"; there are targets and "
					 "labels",
					 r->group, STR_FMT(key));
	}
	code = yaml_labels(r, &g, view, yaml_view_member(view, map, "labels"));
	if (code == 0)
		code = yaml_targets(r, &g, view, yaml_view_member(view, map, "targets"));
	vec_free(&g.labels);
	return code;
}

int groups_from_yaml(struct str text, struct target_label label, struct target_rows *ret,
		     struct error *err)
{
	struct reader r = {.label = label, .err = err};
	struct yaml_view view;
	yaml_node_t *root;
	int code = yaml_view_init(&view, text, "it", err);

	if (code < 0)
		return code;
	root = yaml_view_root(&view);
	if (root && root->type != YAML_SEQUENCE_NODE && !yaml_is_null(&view, root))
		code = error_set(err, -EINVAL, "it is YAML, but no list of target groups");
	for (size_t i = 0; i < yaml_view_count(root) && code == 0; i++) {
		r.group = i + 1;
		code = yaml_group(&r, &view, yaml_view_item(&view, root, i));
	}
	yaml_view_fini(&view);
	return finish(&r, code, ret);
}
