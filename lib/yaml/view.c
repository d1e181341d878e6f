/* SPDX-License-Identifier: Apache-2.0 */
/* YAML documents. Contract in view.h. */
#include "yaml/view.h"

#include <errno.h>

static int failed(const yaml_parser_t *parser, const char *name, struct error *err)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	return error_set(err, -EINVAL, "%s is not YAML: line %zu: %s", name,
			 parser->problem_mark.line + 1,
			 parser->problem ? parser->problem : "damaged");
}

static bool has_anchor(const yaml_event_t *e)
{
	return (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
	       (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
	       (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor);
}

/* Whether there are more than allowed. libyaml compares each anchor and alias with all anchors
 * before it, which takes hours for some megabytes of them. What is no YAML is left to the loader;
 * most texts have too few & to be looked at. */
static bool has_many_anchors(struct str text)
{
	size_t n = 0;
	yaml_parser_t parser;
	yaml_event_t event;
	bool more = true;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '&';
	if (n <= YAML_VIEW_ANCHORS || !yaml_parser_initialize(&parser))
		return false;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.p, text.n);
	for (n = 0; more && n <= YAML_VIEW_ANCHORS && yaml_parser_parse(&parser, &event);) {
		more = event.type != YAML_STREAM_END_EVENT;
		n += has_anchor(&event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return n > YAML_VIEW_ANCHORS;
}

int yaml_view_init(struct yaml_view *ret, struct str text, const char *name, struct error *err)
{
	yaml_parser_t parser;
	int r = 0;

	if (has_many_anchors(text))
		return error_set(err, -E2BIG, "%s has more than %d anchors", name,
				 YAML_VIEW_ANCHORS);
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p ? text.p : ""),
				     text.n);
	if (!yaml_parser_load(&parser, &ret->document))
		r = failed(&parser, name, err);
	yaml_parser_delete(&parser);
	return r;
}

void yaml_view_fini(struct yaml_view *view)
{
	yaml_document_delete(&view->document);
}

yaml_node_t *yaml_view_root(struct yaml_view *view)
{
	return yaml_document_get_root_node(&view->document);
}

struct str yaml_view_text(struct yaml_view *view, yaml_node_t *node)
{
	struct str s;

	(void)view;
	if (!node || node->type != YAML_SCALAR_NODE)
		return STR_NULL;
	s = (struct str){(const char *)node->data.scalar.value, node->data.scalar.length};
	if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	    (str_is(s, "null") || str_is(s, "~")))
		return STR_NULL;
	/* A NUL byte would end what becomes a path or an argument. */
	return memchr(s.p, '\0', s.n) ? STR_NULL : s;
}

bool yaml_view_true(struct yaml_view *view, yaml_node_t *node)
{
	return str_is(yaml_view_text(view, node), "true");
}

yaml_node_t *yaml_view_member(struct yaml_view *view, yaml_node_t *map, const char *name)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++) {
		yaml_node_t *value;

		if (!str_is(yaml_view_text(view, yaml_document_get_node(&view->document, p->key)),
			    name))
			continue;
		value = yaml_document_get_node(&view->document, p->value);
		return value && value->type == YAML_SCALAR_NODE && !yaml_view_text(view, value).p
			       ? NULL
			       : value;
	}
	return NULL;
}

size_t yaml_view_count(const yaml_node_t *list)
{
	if (!list || list->type != YAML_SEQUENCE_NODE)
		return 0;
	return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

yaml_node_t *yaml_view_item(struct yaml_view *view, yaml_node_t *list, size_t i)
{
	if (i >= yaml_view_count(list))
		return NULL;
	return yaml_document_get_node(&view->document, list->data.sequence.items.start[i]);
}

static const yaml_node_pair_t *pair(const yaml_node_t *map, size_t i)
{
	if (!map || map->type != YAML_MAPPING_NODE ||
	    i >= (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start))
		return NULL;
	return &map->data.mapping.pairs.start[i];
}

struct str yaml_view_key(struct yaml_view *view, yaml_node_t *map, size_t i)
{
	const yaml_node_pair_t *p = pair(map, i);

	return p ? yaml_view_text(view, yaml_document_get_node(&view->document, p->key)) : STR_NULL;
}

yaml_node_t *yaml_view_value(struct yaml_view *view, yaml_node_t *map, size_t i)
{
	const yaml_node_pair_t *p = pair(map, i);

	return p ? yaml_document_get_node(&view->document, p->value) : NULL;
}
