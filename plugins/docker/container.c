/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to containers and networks. Contract in container.h. */
#include "docker/container.h"

#include "abi/target-row.h"
#include "docker/lists.h"

#include <errno.h>
#include <stdlib.h>

/* Labels in the making; failed: memory was short. */
struct maker {
	struct arena *arena;
	VEC(struct target_label) labels;
	bool failed;
};

static struct str keep(struct maker *m, struct str text)
{
	struct str kept = text.n ? arena_str(m->arena, text) : STR("");

	m->failed |= !kept.p;
	return kept;
}

static void put(struct maker *m, struct str name, struct str value)
{
	struct target_label label = {name, keep(m, value)};

	m->failed |= !name.p || !vec_push(&m->labels, label);
}

/* A map of labels; of names that become the same the last one stays. */
static void put_map(struct maker *m, const char *prefix, const json_t *map)
{
	const char *key;
	json_t *value;

	/* jansson's iteration takes a non-const object and does not change it. */
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
		put(m, target_text_name(m->arena, prefix, str_of(key)), list_text(value));
}

/* Moves the labels into the arena. */
static size_t settle(struct maker *m, const struct target_label **ret)
{
	struct target_label *kept = arena_array(m->arena, struct target_label, m->labels.n + 1);
	size_t n = m->labels.n;

	m->failed |= !kept;
	if (kept && n)
		memcpy(kept, m->labels.p, n * sizeof(*kept));
	vec_free(&m->labels);
	*ret = kept;
	return n;
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct endpoint *)a)->name, ((const struct endpoint *)b)->name);
}

static void read_endpoints(struct maker *m, struct container *c, const json_t *networks)
{
	size_t n = json_object_size(networks), i = 0;
	struct endpoint *made = arena_array(m->arena, struct endpoint, n + 1);
	const char *key;
	json_t *value;

	m->failed |= !made;
	if (!made)
		return;
	json_object_foreach((json_t *)(uintptr_t)networks, key, value) {
		if (!json_is_object(value))
			continue;
		made[i++] = (struct endpoint){keep(m, str_of(key)),
					      keep(m, list_member(value, "NetworkID")),
					      keep(m, list_member(value, "IPAddress"))};
	}
	if (i > 1)
		qsort(made, i, sizeof(*made), by_name);
	c->endpoints = made;
	c->n_endpoints = i;
}

static void read_ports(struct maker *m, struct container *c, const json_t *ports)
{
	struct port *made = arena_array(m->arena, struct port, json_array_size(ports) + 1);
	size_t i, n = 0;
	json_t *value;

	m->failed |= !made;
	if (!made)
		return;
	json_array_foreach(ports, i, value)
		if (str_is(list_member(value, "Type"), "tcp"))
			made[n++] = (struct port){
				list_port(value, "PrivatePort"),
				list_port(value, "PublicPort"),
				keep(m, list_member(value, "IP")),
			};
	c->ports = made;
	c->n_ports = n;
}

void container_free(struct container *c)
{
	struct arena arena;

	if (!c)
		return;
	arena = c->arena;
	free(c);
	arena_free(&arena);
}

/* NULL when memory is short. */
static struct container *container_make(const json_t *json, struct str id, struct str name)
{
	const json_t *settings = json_object_get(json, "NetworkSettings");
	struct container *c = calloc(1, sizeof(*c));
	struct maker m = {0};

	if (!c)
		return NULL;
	m.arena = &c->arena;
	c->id = keep(&m, id);
	c->mode = keep(&m, list_member(json_object_get(json, "HostConfig"), "NetworkMode"));
	put_map(&m, DOCKER_META "container_label_", json_object_get(json, "Labels"));
	put(&m, STR(DOCKER_META "container_id"), c->id);
	put(&m, STR(DOCKER_META "container_name"), name);
	put(&m, STR(DOCKER_META "container_network_mode"), c->mode);
	read_endpoints(&m, c, json_object_get(settings, "Networks"));
	read_ports(&m, c, json_object_get(json, "Ports"));
	c->n_labels = settle(&m, &c->labels);
	if (!m.failed)
		return c;
	container_free(c);
	return NULL;
}

int container_list_parse(struct str text, struct container_list *ret, struct error *err)
{
	struct container_list made = {0};
	json_t *list = NULL, *json;
	int r = list_parse(text, "containers", &list, err);
	size_t i;

	if (r < 0)
		return r;
	json_array_foreach(list, i, json) {
		struct str id = list_member(json, "Id");
		struct str name = list_text(json_array_get(json_object_get(json, "Names"), 0));
		struct container *c;

		if (!id.n || !name.p)
			continue;
		c = container_make(json, id, name);
		if (c && vec_push(&made.all, c))
			continue;
		container_free(c);
		r = -ENOMEM;
		break;
	}
	json_decref(list);
	if (r < 0)
		container_list_free(&made);
	else
		*ret = made;
	return r;
}

void container_list_free(struct container_list *list)
{
	vec_each (&list->all, c)
		container_free(*c);
	vec_free(&list->all);
}

bool container_list_has(const struct container_list *list, struct str id)
{
	vec_each (&list->all, c)
		if (str_eq((*c)->id, id))
			return true;
	return false;
}

static void network_free(struct network *n)
{
	struct arena arena;

	if (!n)
		return;
	arena = n->arena;
	free(n);
	arena_free(&arena);
}

static struct network *network_make(const json_t *json, struct str id)
{
	struct network *n = calloc(1, sizeof(*n));
	struct maker m = {0};

	if (!n)
		return NULL;
	m.arena = &n->arena;
	n->id = keep(&m, id);
	put_map(&m, DOCKER_META "network_label_", json_object_get(json, "Labels"));
	put(&m, STR(DOCKER_META "network_id"), id);
	put(&m, STR(DOCKER_META "network_name"), list_member(json, "Name"));
	put(&m, STR(DOCKER_META "network_scope"), list_member(json, "Scope"));
	put(&m, STR(DOCKER_META "network_internal"), list_truth(json, "Internal"));
	put(&m, STR(DOCKER_META "network_ingress"), list_truth(json, "Ingress"));
	n->n_labels = settle(&m, &n->labels);
	if (!m.failed)
		return n;
	network_free(n);
	return NULL;
}

int network_list_parse(struct str text, struct network_list *ret, struct error *err)
{
	struct network_list made = {0};
	json_t *list = NULL, *json;
	int r = list_parse(text, "networks", &list, err);
	size_t i;

	if (r < 0)
		return r;
	json_array_foreach(list, i, json) {
		struct str id = list_member(json, "Id");
		struct network *n = id.n ? network_make(json, id) : NULL;

		if (!id.n || (n && vec_push(&made.all, n)))
			continue;
		network_free(n);
		r = -ENOMEM;
		break;
	}
	json_decref(list);
	if (r < 0)
		network_list_free(&made);
	else
		*ret = made;
	return r;
}

void network_list_free(struct network_list *list)
{
	vec_each (&list->all, n)
		network_free(*n);
	vec_free(&list->all);
}
