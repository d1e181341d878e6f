/* SPDX-License-Identifier: Apache-2.0 */
/* Role service: one target per port, at the service's name. */
#include "k8s-discovery/roles/role.h"

static const struct meta_names names = META_NAMES("service");

void service_add(struct label_rows *rows, const struct stored *service)
{
	label_rows_add(rows, META "namespace", stored_namespace(service));
	role_add_meta(rows, service, &names);
}

/* The addresses of a load balancer, joined by commas; what was once asked for where it has none
 * yet. */
static struct str balancer_ips(struct label_rows *rows, const struct stored *service)
{
	struct str balancer = proto_bytes(status_of(service), SERVICE_STATUS_BALANCER);
	struct str joined = STR_NULL;
	struct proto_field f;

	proto_each (balancer, BALANCER_INGRESS, &f) {
		struct str ip = proto_bytes(f.bytes, BALANCER_INGRESS_IP);

		if (ip.n == 0)
			continue;
		joined = joined.n ? str_of(arena_printf(&rows->arena, "%.*s,%.*s", STR_FMT(joined),
							STR_FMT(ip)))
				  : ip;
		if (!joined.p)
			rows->failed = true;
	}
	return joined.n ? joined : proto_bytes(spec_of(service), SERVICE_SPEC_BALANCER);
}

static void add_port(const struct builder *b, const struct stored *service, struct str port)
{
	struct str spec = spec_of(service), type = proto_bytes(spec, SERVICE_SPEC_TYPE), host;
	struct label_rows *rows = b->rows;
	uint64_t number = 0;

	proto_number(port, SERVICE_PORT_NUMBER, &number);
	host = str_of(arena_printf(&rows->arena, "%.*s.%.*s.svc", STR_FMT(stored_name(service)),
				   STR_FMT(stored_namespace(service))));
	if (!host.p) {
		rows->failed = true;
		return;
	}
	label_rows_add(rows, "__address__", label_rows_join(rows, host, number));
	label_rows_add(rows, META "service_port_name", proto_bytes(port, SERVICE_PORT_NAME));
	label_rows_add_number(rows, META "service_port_number", number);
	label_rows_add(rows, META "service_port_protocol",
		       proto_bytes(port, SERVICE_PORT_PROTOCOL));
	label_rows_add(rows, META "service_type", type);
	if (str_is(type, "ExternalName"))
		label_rows_add(rows, META "service_external_name",
			       proto_bytes(spec, SERVICE_SPEC_EXTERNAL));
	else
		label_rows_add(rows, META "service_cluster_ip", proto_bytes(spec, SERVICE_SPEC_IP));
	if (str_is(type, "LoadBalancer"))
		label_rows_add(rows, META "service_loadbalancer_ip", balancer_ips(rows, service));
	label_rows_finish(rows);
}

static void build(const struct builder *b, const struct stored *service)
{
	struct proto_field f;

	service_add(b->rows, service);
	role_attach_namespace(b, stored_namespace(service));
	label_rows_share(b->rows);
	proto_each (spec_of(service), SERVICE_SPEC_PORTS, &f)
		add_port(b, service, f.bytes);
}

const struct role role_service = {
	.name = "service",
	.primary = KIND_SERVICE,
	.kinds = 1u << KIND_SERVICE,
	.build = build,
};
