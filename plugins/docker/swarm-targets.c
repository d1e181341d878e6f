/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a swarm to rows. Contract in swarm-targets.h.
 *
 * Objects that others name by their id are found through an object of jansson's, whose hash is
 * seeded. A few bytes of an answer may mean many rows (addresses × ports × labels), so both rows
 * and steps are counted. */
#include "docker/swarm-targets.h"

#include "abi/target-row.h"
#include "base/hash.h"
#include "docker/lists.h"

#include <errno.h>

#define MAX_STEPS (4u << 20) /* over ports and labels, also those that become nothing */

const char *const swarm_role_names[] = {"services", "tasks", "nodes", NULL};

static const struct swarm_role roles[] = {
	{"services",
	 {SWARM_SERVICES, SWARM_NETWORKS},
	 2,
	 "{\"type\":[\"service\"],\"event\":[\"create\",\"update\",\"remove\"]}",
	 false},
	/* No event tells of a task. Its service's comes before it runs, and those of containers are
	 * the manager's own only. */
	{"tasks",
	 {SWARM_TASKS, SWARM_SERVICES, SWARM_NODES, SWARM_NETWORKS},
	 4,
	 "{\"type\":[\"service\",\"node\",\"container\"],\"event\":[\"create\",\"update\","
	 "\"remove\",\"start\",\"die\"]}",
	 true},
	{"nodes",
	 {SWARM_NODES},
	 1,
	 "{\"type\":[\"node\"],\"event\":[\"create\",\"update\",\"remove\"]}",
	 false},
};

const struct swarm_role *swarm_role(struct str name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (str_is(name, roles[i].name))
			return &roles[i];
	return NULL;
}

const char *swarm_list_name(enum swarm_list list)
{
	static const char *const names[] = {"services", "tasks", "nodes", "networks"};

	return names[list];
}

/* Rows in the making. */
struct maker {
	const struct swarm_options *options;
	struct swarm_targets *t;
	json_t *by_id[SWARM_LISTS]; /* of the lists that others point into */
	struct str id;              /* of the object whose rows are made, */
	uint32_t position;          /* and which of them this is */
	uint32_t steps;
	int failure;
};

/* Whether the next one of a list is to be looked at. */
static bool steps_on(struct maker *m)
{
	if (m->failure == 0 && ++m->steps > MAX_STEPS)
		m->failure = -E2BIG;
	return m->failure == 0;
}

static void put(struct maker *m, const char *name, struct str value)
{
	if (value.n && m->failure == 0)
		m->failure = target_rows_label(&m->t->rows, str_of(name), value);
}

static void put_map(struct maker *m, const char *prefix, const json_t *map)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)map, key, value) {
		struct str name;

		if (!steps_on(m))
			return;
		if (!list_text(value).n)
			continue;
		name = target_text_name(&m->t->rows.arena, prefix, str_of(key));
		if (!name.p)
			m->failure = -ENOMEM;
		else
			put(m, name.p, list_text(value));
	}
}

static void put_address(struct maker *m, struct str host, uint16_t port)
{
	struct str address = target_text_address(&m->t->rows.arena, host, port);

	if (!address.p)
		m->failure = -ENOMEM;
	put(m, "__address__", address);
}

/* Ids are random, so rows by the beginning of theirs keep their places when others come and go. */
static uint64_t place(struct str id, uint32_t position)
{
	uint64_t place = 0;

	for (size_t i = 0; i < 6; i++)
		place = place << 8 | (i < id.n ? (unsigned char)id.p[i] : 0);
	return place << 16 | (position & 0xffff);
}

static void end_row(struct maker *m)
{
	struct swarm_key key = {hash_mix(hash_str(m->id), m->position), place(m->id, m->position)};

	if (m->failure == 0)
		m->failure = target_rows_end(&m->t->rows);
	if (m->failure == 0 && !vec_push(&m->t->keys, key))
		m->failure = -ENOMEM;
	m->position++;
}

/* The object of a list with this id, NULL for none. */
static const json_t *find(const struct maker *m, enum swarm_list list, const json_t *object,
			  const char *member)
{
	const json_t *id = json_object_get(object, member);

	return json_is_string(id) ? json_object_get(m->by_id[list], json_string_value(id)) : NULL;
}

static const json_t *spec_of(const json_t *object)
{
	return json_object_get(object, "Spec");
}

/* "10.0.1.3/24" without the length of its prefix. */
static struct str address_of(struct str cidr)
{
	return str_first(cidr, str_find(cidr, '/'));
}

static void put_network(struct maker *m, const json_t *network)
{
	if (!network)
		return;
	put(m, SWARM_META "network_id", list_member(network, "Id"));
	put(m, SWARM_META "network_name", list_member(network, "Name"));
	put(m, SWARM_META "network_scope", list_member(network, "Scope"));
	put(m, SWARM_META "network_internal", list_truth(network, "Internal"));
	put(m, SWARM_META "network_ingress", list_truth(network, "Ingress"));
	put_map(m, SWARM_META "network_label_", json_object_get(network, "Labels"));
}

/* What a task has of its service, too. */
static void put_service(struct maker *m, const json_t *service)
{
	const json_t *spec = spec_of(service), *mode = json_object_get(spec, "Mode");

	if (!service)
		return;
	put(m, SWARM_META "service_id", list_member(service, "ID"));
	put(m, SWARM_META "service_name", list_member(spec, "Name"));
	if (json_is_object(json_object_get(mode, "Global")))
		put(m, SWARM_META "service_mode", STR("global"));
	else if (json_is_object(json_object_get(mode, "Replicated")))
		put(m, SWARM_META "service_mode", STR("replicated"));
	put_map(m, SWARM_META "service_label_", json_object_get(spec, "Labels"));
}

static bool is_tcp(const json_t *port)
{
	return str_is(list_member(port, "Protocol"), "tcp");
}

static void begin_service(struct maker *m, const json_t *service, const json_t *network)
{
	const json_t *task = json_object_get(spec_of(service), "TaskTemplate");
	const json_t *container = json_object_get(task, "ContainerSpec");

	put_service(m, service);
	put(m, SWARM_META "service_task_container_hostname", list_member(container, "Hostname"));
	put(m, SWARM_META "service_task_container_image", list_member(container, "Image"));
	put(m, SWARM_META "service_updating_status",
	    list_member(json_object_get(service, "UpdateStatus"), "State"));
	put_network(m, network);
}

/* A row for each TCP port at one of a service's addresses, or one where there is no such port. */
static void make_address(struct maker *m, const json_t *service, const json_t *address)
{
	const json_t *ports = json_object_get(json_object_get(service, "Endpoint"), "Ports");
	const json_t *network = find(m, SWARM_NETWORKS, address, "NetworkID"), *port;
	struct str ip = address_of(list_member(address, "Addr"));
	bool added = false;
	size_t i;

	if (!ip.n)
		return;
	json_array_foreach(ports, i, port) {
		if (!steps_on(m))
			return;
		if (!is_tcp(port))
			continue;
		begin_service(m, service, network);
		put(m, SWARM_META "service_endpoint_port_name", list_member(port, "Name"));
		put(m, SWARM_META "service_endpoint_port_publish_mode",
		    list_member(port, "PublishMode"));
		put_address(m, ip, list_port(port, "PublishedPort"));
		end_row(m);
		added = true;
	}
	if (added)
		return;
	begin_service(m, service, network);
	put_address(m, ip, m->options->port);
	end_row(m);
}

static void make_service(struct maker *m, const json_t *service)
{
	const json_t *addresses =
		json_object_get(json_object_get(service, "Endpoint"), "VirtualIPs");
	const json_t *address;
	size_t i;

	json_array_foreach(addresses, i, address) {
		if (!steps_on(m))
			return;
		make_address(m, service, address);
	}
}

/* What a task has of its node, too. */
static void put_node(struct maker *m, const json_t *node)
{
	const json_t *spec = spec_of(node), *description = json_object_get(node, "Description");
	const json_t *status = json_object_get(node, "Status");
	const json_t *platform = json_object_get(description, "Platform");

	if (!node)
		return;
	put(m, SWARM_META "node_id", list_member(node, "ID"));
	put(m, SWARM_META "node_role", list_member(spec, "Role"));
	put(m, SWARM_META "node_availability", list_member(spec, "Availability"));
	put(m, SWARM_META "node_hostname", list_member(description, "Hostname"));
	put(m, SWARM_META "node_platform_architecture", list_member(platform, "Architecture"));
	put(m, SWARM_META "node_platform_os", list_member(platform, "OS"));
	put(m, SWARM_META "node_status", list_member(status, "State"));
	put(m, SWARM_META "node_address", list_member(status, "Addr"));
	put_map(m, SWARM_META "node_label_", json_object_get(spec, "Labels"));
}

static struct str node_address(const json_t *node)
{
	return list_member(json_object_get(node, "Status"), "Addr");
}

static void make_node(struct maker *m, const json_t *node)
{
	const json_t *manager = json_object_get(node, "ManagerStatus");
	const json_t *engine = json_object_get(json_object_get(node, "Description"), "Engine");

	put_node(m, node);
	put(m, SWARM_META "node_engine_version", list_member(engine, "EngineVersion"));
	if (json_is_object(manager)) {
		put(m, SWARM_META "node_manager_leader", list_truth(manager, "Leader"));
		put(m, SWARM_META "node_manager_reachability",
		    list_member(manager, "Reachability"));
		put(m, SWARM_META "node_manager_address", list_member(manager, "Addr"));
	}
	put_address(m, node_address(node), m->options->port);
	end_row(m);
}

static void begin_task(struct maker *m, const json_t *task)
{
	const json_t *status = json_object_get(task, "Status");
	const json_t *slot = json_object_get(task, "Slot");
	const char *number =
		arena_printf(&m->t->rows.arena, "%lld", (long long)json_integer_value(slot));

	if (!number)
		m->failure = -ENOMEM;
	put(m, SWARM_META "task_id", list_member(task, "ID"));
	put(m, SWARM_META "task_desired_state", list_member(task, "DesiredState"));
	put(m, SWARM_META "task_state", list_member(status, "State"));
	put(m, SWARM_META "task_slot", str_of(number));
	put(m, SWARM_META "task_container_id",
	    list_member(json_object_get(status, "ContainerStatus"), "ContainerID"));
	put_map(m, SWARM_META "container_label_",
		json_object_get(json_object_get(spec_of(task), "ContainerSpec"), "Labels"));
	put_service(m, find(m, SWARM_SERVICES, task, "ServiceID"));
	put_node(m, find(m, SWARM_NODES, task, "NodeID"));
}

/* Ports that the task has published at its node. */
static void make_published(struct maker *m, const json_t *task)
{
	const json_t *status = json_object_get(json_object_get(task, "Status"), "PortStatus");
	const json_t *node = find(m, SWARM_NODES, task, "NodeID"), *port;
	size_t i;

	json_array_foreach(json_object_get(status, "Ports"), i, port) {
		if (!steps_on(m))
			return;
		if (!is_tcp(port))
			continue;
		begin_task(m, task);
		put(m, SWARM_META "task_port_publish_mode", list_member(port, "PublishMode"));
		put_address(m, node_address(node), list_port(port, "PublishedPort"));
		end_row(m);
	}
}

/* A row for each TCP port of the service at one of the task's addresses, or one without a port. */
static void make_attached(struct maker *m, const json_t *task, const json_t *network, struct str ip)
{
	const json_t *service = find(m, SWARM_SERVICES, task, "ServiceID"), *port;
	const json_t *endpoint = json_object_get(service, "Endpoint");
	bool added = false;
	size_t i;

	json_array_foreach(json_object_get(endpoint, "Ports"), i, port) {
		if (!steps_on(m))
			return;
		if (!is_tcp(port))
			continue;
		begin_task(m, task);
		put_network(m, network);
		put(m, SWARM_META "task_port_publish_mode", list_member(port, "PublishMode"));
		put_address(m, ip, list_port(port, "PublishedPort"));
		end_row(m);
		added = true;
	}
	if (added)
		return;
	begin_task(m, task);
	put_network(m, network);
	put_address(m, ip, m->options->port);
	end_row(m);
}

static void make_task(struct maker *m, const json_t *task)
{
	const json_t *attachment, *address;
	size_t i, k;

	make_published(m, task);
	json_array_foreach(json_object_get(task, "NetworksAttachments"), i, attachment) {
		const json_t *network =
			find(m, SWARM_NETWORKS, json_object_get(attachment, "Network"), "ID");

		json_array_foreach(json_object_get(attachment, "Addresses"), k, address) {
			struct str ip = address_of(list_text(address));

			if (!steps_on(m))
				return;
			if (ip.n)
				make_attached(m, task, network, ip);
		}
	}
	if (m->position == 0 && m->options->without_network) {
		begin_task(m, task);
		end_row(m);
	}
}

/* A network has an "Id", all others have an "ID". */
static const char *id_name(enum swarm_list list)
{
	return list == SWARM_NETWORKS ? "Id" : "ID";
}

static int read_lists(struct maker *m, const struct str *answers, struct error *err)
{
	const struct swarm_role *role = m->options->role;

	for (size_t i = 0; i < role->n_lists; i++) {
		enum swarm_list list = role->lists[i];
		json_t *all = NULL, *one;
		size_t k;
		int r = list_parse(answers[i], swarm_list_name(list), &all, err);

		if (r < 0)
			return r;
		m->t->lists[list] = all;
		if (i == 0)
			continue;
		m->by_id[list] = json_object();
		if (!m->by_id[list])
			return -ENOMEM;
		json_array_foreach(all, k, one) {
			const json_t *id = json_object_get(one, id_name(list));

			if (json_is_string(id) &&
			    json_object_set(m->by_id[list], json_string_value(id), one) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static void make_rows(struct maker *m)
{
	enum swarm_list of = m->options->role->lists[0];
	const json_t *one;
	size_t i;

	json_array_foreach((const json_t *)m->t->lists[of], i, one) {
		m->id = list_member(one, id_name(of));
		m->position = 0;
		if (!steps_on(m))
			return;
		if (!m->id.n)
			continue;
		m->t->n_objects++;
		if (of == SWARM_SERVICES)
			make_service(m, one);
		else if (of == SWARM_TASKS)
			make_task(m, one);
		else
			make_node(m, one);
	}
}

int swarm_targets_read(const struct swarm_options *o, const struct str *answers,
		       struct swarm_targets *ret, struct error *err)
{
	struct swarm_targets made = {0};
	struct maker m = {.options = o, .t = &made};

	m.failure = read_lists(&m, answers, err);
	if (m.failure == 0)
		make_rows(&m);
	for (size_t i = 0; i < SWARM_LISTS; i++)
		json_decref(m.by_id[i]);
	if (m.failure == -E2BIG)
		error_set(err, -E2BIG,
			  "the swarm's %s are more targets, or longer ones, than one component "
			  "takes: filter them",
			  o->role->name);
	if (m.failure < 0)
		swarm_targets_free(&made);
	else
		*ret = made;
	return m.failure;
}

void swarm_targets_free(struct swarm_targets *t)
{
	target_rows_free(&t->rows);
	vec_free(&t->keys);
	for (size_t i = 0; i < SWARM_LISTS; i++)
		json_decref(t->lists[i]);
	*t = (struct swarm_targets){0};
}
