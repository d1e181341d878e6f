/* SPDX-License-Identifier: Apache-2.0 */
/* Role endpointslice: one target per endpoint, port and address, with the labels of the service
 * that owns the slice and of the pod behind it. The slice of a dual-stack service's second family
 * would say all twice, and has no targets. */
#include "k8s-discovery/roles/role.h"

#define SERVICE_NAME "kubernetes.io/service-name"

static const struct meta_names names = META_NAMES("endpointslice");

static const struct stored *service_of(const struct builder *b, const struct stored *slice)
{
	struct str name = role_own_label(slice, SERVICE_NAME);

	return name.p ? store_find(b->store, KIND_SERVICE, stored_namespace(slice), name) : NULL;
}

static bool second_family(const struct stored *service, const struct stored *slice)
{
	struct str spec, policy;
	struct proto_field family;

	if (!service)
		return false;
	spec = spec_of(service);
	policy = proto_bytes(spec, SERVICE_SPEC_POLICY);
	if (!str_is(policy, "PreferDualStack") && !str_is(policy, "RequireDualStack"))
		return false;
	proto_each (spec, SERVICE_SPEC_FAMILIES, &family)
		return !str_eq(proto_bytes(stored_kept(slice), SLICE_TYPE), family.bytes);
	return false;
}

static void add_condition(struct label_rows *rows, struct str endpoint, uint32_t field,
			  const char *name)
{
	uint64_t value;

	if (proto_number(proto_bytes(endpoint, ENDPOINT_CONDITIONS), field, &value))
		label_rows_add(rows, name, value ? STR("true") : STR("false"));
}

static struct str node_of(struct str endpoint)
{
	struct str reference = proto_bytes(endpoint, ENDPOINT_REF);

	return str_is(proto_bytes(reference, REF_KIND), "Node")
		       ? proto_bytes(reference, REF_NAME)
		       : proto_bytes(endpoint, ENDPOINT_NODE);
}

static void add_endpoint(const struct builder *b, struct str endpoint)
{
	struct str reference = proto_bytes(endpoint, ENDPOINT_REF);
	struct label_rows *rows = b->rows;

	add_condition(rows, endpoint, CONDITION_READY,
		      META "endpointslice_endpoint_conditions_ready");
	add_condition(rows, endpoint, CONDITION_SERVING,
		      META "endpointslice_endpoint_conditions_serving");
	add_condition(rows, endpoint, CONDITION_TERMINATING,
		      META "endpointslice_endpoint_conditions_terminating");
	label_rows_add(rows, META "endpointslice_endpoint_hostname",
		       proto_bytes(endpoint, ENDPOINT_HOST));
	label_rows_add(rows, META "endpointslice_address_target_kind",
		       proto_bytes(reference, REF_KIND));
	label_rows_add(rows, META "endpointslice_address_target_name",
		       proto_bytes(reference, REF_NAME));
	label_rows_add(rows, META "endpointslice_endpoint_node_name",
		       proto_bytes(endpoint, ENDPOINT_NODE));
	label_rows_add(rows, META "endpointslice_endpoint_zone",
		       proto_bytes(endpoint, ENDPOINT_ZONE));
	label_rows_add_map(rows, endpoint, ENDPOINT_TOPOLOGY,
			   META "endpointslice_endpoint_topology_",
			   META "endpointslice_endpoint_topology_present_");
	role_attach_node(b, node_of(endpoint));
}

static void add_port(struct label_rows *rows, struct str port, const uint64_t *number)
{
	label_rows_add(rows, META "endpointslice_port_name", proto_bytes(port, SLICE_PORT_NAME));
	label_rows_add(rows, META "endpointslice_port_protocol",
		       proto_bytes(port, SLICE_PORT_PROTOCOL));
	if (number)
		label_rows_add_number(rows, META "endpointslice_port", *number);
	label_rows_add(rows, META "endpointslice_port_app_protocol",
		       proto_bytes(port, SLICE_PORT_APP));
}

static void build_endpoint(const struct builder *b, struct endpoint_pods *backends,
			   struct str endpoint, struct str port)
{
	const struct stored *pod = endpoint_pod_find(b, proto_bytes(endpoint, ENDPOINT_REF));
	uint64_t number = 0;
	bool numbered = proto_number(port, SLICE_PORT_NUMBER, &number);
	struct proto_field address;

	proto_each (endpoint, ENDPOINT_ADDRESSES, &address) {
		label_rows_add(b->rows, "__address__",
			       numbered ? label_rows_join(b->rows, address.bytes, number)
					: address.bytes);
		add_port(b->rows, port, numbered ? &number : NULL);
		add_endpoint(b, endpoint);
		if (pod)
			endpoint_pods_add(b, backends, pod, numbered ? &number : NULL, STR_NULL);
		label_rows_finish(b->rows);
	}
}

static void build(const struct builder *b, const struct stored *slice)
{
	const struct stored *service = service_of(b, slice);
	struct endpoint_pods backends = {0};
	struct proto_field endpoint, port;

	if (second_family(service, slice))
		return;
	label_rows_add(b->rows, META "namespace", stored_namespace(slice));
	label_rows_add(b->rows, META "endpointslice_address_type",
		       proto_bytes(stored_kept(slice), SLICE_TYPE));
	role_add_meta(b->rows, slice, &names);
	if (service)
		service_add(b->rows, service);
	role_attach_namespace(b, stored_namespace(slice));
	label_rows_share(b->rows);
	proto_each (stored_kept(slice), SLICE_ENDPOINTS, &endpoint) {
		struct proto in = proto_of(stored_kept(slice));

		while (proto_find(&in, SLICE_PORTS, &port))
			build_endpoint(b, &backends, endpoint.bytes, port.bytes);
	}
	endpoint_pods_finish(b, &backends);
}

static void references(const struct builder *b, const struct stored *slice, reference_fn fn,
		       void *context)
{
	struct str service = role_own_label(slice, SERVICE_NAME);
	struct proto_field f;

	if (service.p)
		fn(context, KIND_SERVICE, stored_namespace(slice), service);
	proto_each (stored_kept(slice), SLICE_ENDPOINTS, &f) {
		endpoint_pod_reference(proto_bytes(f.bytes, ENDPOINT_REF), fn, context);
		if (b->options.attach_node)
			fn(context, KIND_NODE, STR_NULL, node_of(f.bytes));
	}
}

const struct role role_slice = {
	.name = "endpointslice",
	.primary = KIND_SLICE,
	.kinds = 1u << KIND_SLICE | 1u << KIND_SERVICE | 1u << KIND_POD,
	.takes_node = true,
	.build = build,
	.references = references,
};
