/* SPDX-License-Identifier: Apache-2.0 */
/* Role pod: one target per declared container port, one per container without ports, none while the
 * pod has no address. Containers come first, then init containers, then (if asked for) ephemeral
 * ones. */
#include "k8s-discovery/roles/role.h"

static struct str readiness(struct label_rows *rows, struct str status)
{
	struct str condition = proto_bytes(status, POD_STATUS_CONDITIONS);

	return condition.n ? label_rows_lower(rows, proto_bytes(condition, CONDITION_STATUS))
			   : STR("unknown");
}

void role_add_pod(struct label_rows *rows, const struct stored *pod)
{
	struct str metadata = metadata_of(pod), spec = spec_of(pod), status = status_of(pod);
	struct proto_field owner;

	label_rows_add(rows, META "pod_ip", proto_bytes(status, POD_STATUS_IP));
	label_rows_add(rows, META "pod_ready", readiness(rows, status));
	label_rows_add(rows, META "pod_phase", proto_bytes(status, POD_STATUS_PHASE));
	label_rows_add(rows, META "pod_node_name", proto_bytes(spec, POD_SPEC_NODE));
	label_rows_add(rows, META "pod_host_ip", proto_bytes(status, POD_STATUS_HOST_IP));
	label_rows_add(rows, META "pod_uid", proto_bytes(metadata, META_UID));
	role_add_meta(rows, pod, &meta_pod);
	proto_each (metadata, META_OWNERS, &owner) {
		label_rows_add(rows, META "pod_controller_kind",
			       proto_bytes(owner.bytes, OWNER_KIND));
		label_rows_add(rows, META "pod_controller_name",
			       proto_bytes(owner.bytes, OWNER_NAME));
		break;
	}
}

struct group {
	const char *kind; /* "container", "init", "ephemeral" */
	struct str statuses;
	uint32_t status; /* field number within */
	struct str ip;
};

static struct str container_id(const struct group *g, struct str name)
{
	struct proto_field f;

	proto_each (g->statuses, g->status, &f)
		if (str_eq(proto_bytes(f.bytes, STATUS_NAME), name))
			return proto_bytes(f.bytes, STATUS_ID);
	return STR_NULL;
}

/* An init container that restarts always is a sidecar. */
static const char *kind_of(const struct group *g, struct str container)
{
	bool sidecar = strcmp(g->kind, "init") == 0 &&
		       str_is(proto_bytes(container, CONTAINER_RESTART), "Always");

	return sidecar ? "sidecar" : g->kind;
}

static void add_container(const struct builder *b, const struct group *g, struct str container,
			  struct str id)
{
	label_rows_add(b->rows, META "pod_container_name", proto_bytes(container, CONTAINER_NAME));
	label_rows_add(b->rows, META "pod_container_id", id);
	label_rows_add(b->rows, META "pod_container_image",
		       proto_bytes(container, CONTAINER_IMAGE));
	label_rows_add(b->rows, META "pod_container_init",
		       strcmp(g->kind, "init") == 0 ? STR("true") : STR("false"));
	if (b->options.ephemeral || b->options.without_ip)
		label_rows_add(b->rows, META "pod_container_kind", str_of(kind_of(g, container)));
}

static void add_port(const struct builder *b, const struct group *g, struct str port)
{
	uint64_t number = 0;

	proto_number(port, PORT_NUMBER, &number);
	if (g->ip.n)
		label_rows_add(b->rows, "__address__", label_rows_join(b->rows, g->ip, number));
	label_rows_add_number(b->rows, META "pod_container_port_number", number);
	label_rows_add(b->rows, META "pod_container_port_name", proto_bytes(port, PORT_NAME));
	label_rows_add(b->rows, META "pod_container_port_protocol",
		       proto_bytes(port, PORT_PROTOCOL));
}

static void build_container(const struct builder *b, const struct group *g, struct str container)
{
	struct str id = container_id(g, proto_bytes(container, CONTAINER_NAME));
	struct proto_field port;
	bool any = false;

	proto_each (container, CONTAINER_PORTS, &port) {
		any = true;
		add_container(b, g, container, id);
		add_port(b, g, port.bytes);
		label_rows_finish(b->rows);
	}
	if (any)
		return;
	add_container(b, g, container, id);
	label_rows_add(b->rows, "__address__", g->ip);
	label_rows_finish(b->rows);
}

static void build_group(const struct builder *b, struct str spec, uint32_t field, struct group g)
{
	struct proto_field f;

	proto_each (spec, field, &f)
		build_container(b, &g,
				field == POD_SPEC_EPHEMERAL ? proto_bytes(f.bytes, EPHEMERAL_COMMON)
							    : f.bytes);
}

/* A pod on a node that is not known was kept out by a selector for nodes. */
static bool node_known(const struct builder *b, struct str node)
{
	return !b->options.attach_node || store_find(b->store, KIND_NODE, STR_NULL, node);
}

static void build(const struct builder *b, const struct stored *pod)
{
	struct str spec = spec_of(pod), status = status_of(pod);
	struct str ip = proto_bytes(status, POD_STATUS_IP);
	struct str node = proto_bytes(spec, POD_SPEC_NODE);

	if ((ip.n == 0 && !b->options.without_ip) || !node_known(b, node))
		return;
	role_add_pod(b->rows, pod);
	label_rows_add(b->rows, META "namespace", stored_namespace(pod));
	role_attach_node(b, node);
	role_attach_namespace(b, stored_namespace(pod));
	label_rows_share(b->rows);
	build_group(b, spec, POD_SPEC_CONTAINERS,
		    (struct group){"container", status, POD_STATUS_CONTAINERS, ip});
	build_group(b, spec, POD_SPEC_INIT, (struct group){"init", status, POD_STATUS_INIT, ip});
	if (b->options.ephemeral)
		build_group(b, spec, POD_SPEC_EPHEMERAL,
			    (struct group){"ephemeral", status, POD_STATUS_EPHEMERAL, ip});
}

static void references(const struct builder *b, const struct stored *pod, reference_fn fn,
		       void *context)
{
	if (b->options.attach_node)
		fn(context, KIND_NODE, STR_NULL, proto_bytes(spec_of(pod), POD_SPEC_NODE));
}

const struct role role_pod = {
	.name = "pod",
	.primary = KIND_POD,
	.kinds = 1u << KIND_POD,
	.takes_node = true,
	.build = build,
	.references = references,
};
