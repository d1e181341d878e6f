/* SPDX-License-Identifier: Apache-2.0 */
/* Pods behind endpoints. A target of a pod carries the pod's labels; ports of its containers that
 * no endpoint has are targets as well, so that a sidecar's port can be had through the service of
 * its neighbour. */
#include "k8s-discovery/roles/role.h"

static bool is_pod(struct str reference)
{
	return str_is(proto_bytes(reference, REF_KIND), "Pod");
}

const struct stored *endpoint_pod_find(const struct builder *b, struct str reference)
{
	return is_pod(reference)
		       ? store_find(b->store, KIND_POD, proto_bytes(reference, REF_NAMESPACE),
				    proto_bytes(reference, REF_NAME))
		       : NULL;
}

void endpoint_pod_reference(struct str reference, reference_fn fn, void *context)
{
	if (is_pod(reference))
		fn(context, KIND_POD, proto_bytes(reference, REF_NAMESPACE),
		   proto_bytes(reference, REF_NAME));
}

static void add_container(struct label_rows *rows, struct str container, struct str port, bool init)
{
	uint64_t number = 0;

	proto_number(port, PORT_NUMBER, &number);
	label_rows_add(rows, META "pod_container_name", proto_bytes(container, CONTAINER_NAME));
	label_rows_add(rows, META "pod_container_image", proto_bytes(container, CONTAINER_IMAGE));
	label_rows_add(rows, META "pod_container_init", init ? STR("true") : STR("false"));
	label_rows_add(rows, META "pod_container_port_name", proto_bytes(port, PORT_NAME));
	label_rows_add_number(rows, META "pod_container_port_number", number);
	label_rows_add(rows, META "pod_container_port_protocol", proto_bytes(port, PORT_PROTOCOL));
}

typedef void (*port_fn)(void *context, struct str container, struct str port, bool init);

static void each_port(const struct stored *pod, port_fn fn, void *context)
{
	static const uint32_t lists[] = {POD_SPEC_CONTAINERS, POD_SPEC_INIT};
	struct proto_field container, port;

	for (size_t i = 0; i < 2; i++) {
		struct proto in = proto_of(spec_of(pod));

		while (proto_find(&in, lists[i], &container))
			proto_each (container.bytes, CONTAINER_PORTS, &port)
				fn(context, container.bytes, port.bytes, lists[i] == POD_SPEC_INIT);
	}
}

struct match {
	uint64_t port;
	struct str container, found; /* the last container with this port, and the port there */
	bool init;
};

/* Of a container the first such port, of containers the last. */
static void match_port(void *context, struct str container, struct str port, bool init)
{
	struct match *m = context;
	uint64_t number = 0;

	proto_number(port, PORT_NUMBER, &number);
	if (number == m->port && m->container.p != container.p)
		*m = (struct match){m->port, container, port, init};
}

static struct endpoint_pod *backend_of(struct label_rows *rows, struct endpoint_pods *backends,
				       const struct stored *pod)
{
	vec_each (&backends->list, e)
		if (e->pod == pod)
			return e;
	if (!vec_push(&backends->list, ((struct endpoint_pod){.pod = pod}))) {
		rows->failed = true;
		return NULL;
	}
	return &backends->list.p[backends->list.n - 1];
}

static void note_port(struct label_rows *rows, struct endpoint_pod *backend, uint64_t port)
{
	vec_each (&backend->ports, known)
		if (*known == port)
			return;
	if (!vec_push(&backend->ports, port))
		rows->failed = true;
}

void endpoint_pods_add(const struct builder *b, struct endpoint_pods *backends,
		       const struct stored *pod, const uint64_t *port, struct str protocol)
{
	struct endpoint_pod *backend = backend_of(b->rows, backends, pod);
	struct match match = {.port = port ? *port : 0};

	role_add_pod(b->rows, pod);
	if (!backend || !port)
		return;
	note_port(b->rows, backend, *port);
	each_port(pod, match_port, &match);
	if (!match.container.p)
		return;
	add_container(b->rows, match.container, match.found, match.init);
	if (protocol.p)
		label_rows_add(b->rows, META "pod_container_port_protocol", protocol);
}

struct rest {
	const struct builder *b;
	const struct endpoint_pod *backend;
	struct str ip;
};

static void rest_port(void *context, struct str container, struct str port, bool init)
{
	struct rest *r = context;
	uint64_t number = 0;

	proto_number(port, PORT_NUMBER, &number);
	vec_each (&r->backend->ports, known)
		if (*known == number)
			return;
	label_rows_add(r->b->rows, "__address__", label_rows_join(r->b->rows, r->ip, number));
	add_container(r->b->rows, container, port, init);
	role_add_pod(r->b->rows, r->backend->pod);
	label_rows_finish(r->b->rows);
}

void endpoint_pods_finish(const struct builder *b, struct endpoint_pods *backends)
{
	vec_each (&backends->list, e) {
		struct rest rest = {b, e, proto_bytes(status_of(e->pod), POD_STATUS_IP)};

		if (rest.ip.n)
			each_port(e->pod, rest_port, &rest);
		vec_free(&e->ports);
	}
	vec_free(&backends->list);
}
