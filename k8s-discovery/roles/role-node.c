/* SPDX-License-Identifier: Apache-2.0 */
/* Role node: one target per node, at its kubelet's port. */
#include "k8s-discovery/roles/role.h"

/* The address to use: the first of the first type that the node has. */
static const char *const preferred[] = {"InternalIP",  "InternalDNS",  "ExternalIP",
					"ExternalDNS", "LegacyHostIP", "Hostname"};

static struct str address_of(struct str status)
{
	struct proto_field f;

	for (size_t i = 0; i < sizeof(preferred) / sizeof(*preferred); i++) {
		proto_each (status, NODE_STATUS_ADDRESSES, &f)
			if (str_is(proto_bytes(f.bytes, ADDRESS_TYPE), preferred[i]))
				return proto_bytes(f.bytes, ADDRESS_TEXT);
	}
	return STR_NULL;
}

/* Of each type of address the first: so they are added from the last on. */
static void add_addresses(struct label_rows *rows, struct str status)
{
	VEC(struct str) addresses = {0};
	struct proto_field f;

	proto_each (status, NODE_STATUS_ADDRESSES, &f)
		if (!vec_push(&addresses, f.bytes))
			rows->failed = true;
	for (size_t i = addresses.n; i-- > 0;)
		label_rows_add_sanitized(rows, META "node_address_",
					 proto_bytes(addresses.p[i], ADDRESS_TYPE),
					 proto_bytes(addresses.p[i], ADDRESS_TEXT));
	vec_free(&addresses);
}

static void build(const struct builder *b, const struct stored *node)
{
	struct str status = status_of(node), address = address_of(status);
	struct str endpoints = proto_bytes(status, NODE_STATUS_ENDPOINTS);
	uint64_t port = 0;
	struct proto_field f;

	if (address.n == 0)
		return;
	label_rows_add(b->rows, META "node_provider_id",
		       proto_bytes(spec_of(node), NODE_SPEC_PROVIDER));
	proto_each (status, NODE_STATUS_CONDITIONS, &f) {
		struct str type = label_rows_lower(b->rows, proto_bytes(f.bytes, CONDITION_TYPE));

		label_rows_add_sanitized(b->rows, META "node_condition_", type,
					 label_rows_lower(b->rows,
							  proto_bytes(f.bytes, CONDITION_STATUS)));
	}
	role_add_meta(b->rows, node, &meta_node);
	label_rows_share(b->rows);
	proto_number(proto_bytes(endpoints, NODE_KUBELET), NODE_KUBELET_PORT, &port);
	label_rows_add(b->rows, "__address__", label_rows_join(b->rows, address, port));
	label_rows_add(b->rows, "instance", stored_name(node));
	add_addresses(b->rows, status);
	label_rows_finish(b->rows);
}

const struct role role_node = {
	.name = "node",
	.primary = KIND_NODE,
	.kinds = 1u << KIND_NODE,
	.build = build,
};
