/* SPDX-License-Identifier: Apache-2.0 */
/* Role endpoints: one target per address and port, with the labels of the service of the same name
 * and of the pod behind the address. */
#include "k8s-discovery/roles/role.h"

static const struct meta_names names = META_NAMES("endpoints");

/* The node that an address names, or that it refers to. */
static struct str node_of(struct str address)
{
	struct str node = proto_bytes(address, EP_ADDRESS_NODE);
	struct str reference = proto_bytes(address, EP_ADDRESS_REF);

	if (node.p || !str_is(proto_bytes(reference, REF_KIND), "Node"))
		return node;
	return proto_bytes(reference, REF_NAME);
}

static void add_address(const struct builder *b, struct endpoint_pods *backends, struct str address,
			struct str port, const char *ready)
{
	struct str reference = proto_bytes(address, EP_ADDRESS_REF);
	struct str protocol = proto_bytes(port, EP_PORT_PROTOCOL);
	const struct stored *pod = endpoint_pod_find(b, reference);
	struct label_rows *rows = b->rows;
	uint64_t number = 0;

	proto_number(port, EP_PORT_NUMBER, &number);
	label_rows_add(rows, "__address__",
		       label_rows_join(rows, proto_bytes(address, EP_ADDRESS_IP), number));
	label_rows_add(rows, META "endpoint_port_name", proto_bytes(port, EP_PORT_NAME));
	label_rows_add(rows, META "endpoint_port_protocol", protocol);
	label_rows_add(rows, META "endpoint_ready", str_of(ready));
	label_rows_add(rows, META "endpoint_address_target_kind", proto_bytes(reference, REF_KIND));
	label_rows_add(rows, META "endpoint_address_target_name", proto_bytes(reference, REF_NAME));
	label_rows_add(rows, META "endpoint_node_name", proto_bytes(address, EP_ADDRESS_NODE));
	label_rows_add(rows, META "endpoint_hostname", proto_bytes(address, EP_ADDRESS_HOST));
	role_attach_node(b, node_of(address));
	if (pod)
		endpoint_pods_add(b, backends, pod, &number, protocol);
	label_rows_finish(rows);
}

static void build_subset(const struct builder *b, struct endpoint_pods *backends, struct str subset)
{
	struct proto_field port, address;

	proto_each (subset, SUBSET_PORTS, &port) {
		struct proto ready = proto_of(subset), not_ready = proto_of(subset);

		while (proto_find(&ready, SUBSET_READY, &address))
			add_address(b, backends, address.bytes, port.bytes, "true");
		while (proto_find(&not_ready, SUBSET_NOT_READY, &address))
			add_address(b, backends, address.bytes, port.bytes, "false");
	}
}

static void build(const struct builder *b, const struct stored *endpoints)
{
	const struct stored *service = store_find(b->store, KIND_SERVICE,
						  stored_namespace(endpoints),
						  stored_name(endpoints));
	struct endpoint_pods backends = {0};
	struct proto_field f;

	label_rows_add(b->rows, META "namespace", stored_namespace(endpoints));
	if (service)
		service_add(b->rows, service);
	role_add_meta(b->rows, endpoints, &names);
	role_attach_namespace(b, stored_namespace(endpoints));
	label_rows_share(b->rows);
	proto_each (stored_kept(endpoints), ENDPOINTS_SUBSETS, &f)
		build_subset(b, &backends, f.bytes);
	endpoint_pods_finish(b, &backends);
}

static void references(const struct builder *b, const struct stored *endpoints, reference_fn fn,
		       void *context)
{
	static const uint32_t lists[] = {SUBSET_READY, SUBSET_NOT_READY};
	struct proto_field subset, address;

	fn(context, KIND_SERVICE, stored_namespace(endpoints), stored_name(endpoints));
	proto_each (stored_kept(endpoints), ENDPOINTS_SUBSETS, &subset) {
		for (size_t i = 0; i < 2; i++) {
			struct proto in = proto_of(subset.bytes);

			while (proto_find(&in, lists[i], &address)) {
				endpoint_pod_reference(proto_bytes(address.bytes, EP_ADDRESS_REF),
						       fn, context);
				if (b->options.attach_node)
					fn(context, KIND_NODE, STR_NULL, node_of(address.bytes));
			}
		}
	}
}

const struct role role_endpoints = {
	.name = "endpoints",
	.primary = KIND_ENDPOINTS,
	.kinds = 1u << KIND_ENDPOINTS | 1u << KIND_SERVICE | 1u << KIND_POD,
	.takes_node = true,
	.build = build,
	.references = references,
};
