/* SPDX-License-Identifier: Apache-2.0 */
/* Objects to targets, role by role; labels as Prometheus's discovery has them. */
#include "base/hash.h"
#include "testing/test.h"
#include "k8s-discovery/roles/role.h"
#include "k8s-discovery/tests/test-wire.h"

#include <errno.h>
#include <stdlib.h>

/* A store that is filled with JSON objects, and the targets of one of them. */
struct world {
	struct store store;
	struct label_rows rows;
	struct role_options options;
};

static void put(struct world *w, enum kind kind, const char *text)
{
	json_t *json = json_loads(text, 0, NULL);
	struct object o = {0};

	expect(json);
	expect_eq(object_read_json(kind, json, &o), 0);
	expect_eq(store_set(&w->store, 0, kind, &o), 0);
	object_fini(&o);
	json_decref(json);
}

static size_t build(struct world *w, const struct role *role, const char *space, const char *name)
{
	struct builder b = {&w->store, w->options, &w->rows};
	const struct stored *o = store_find(&w->store, role->primary, str_of(space), str_of(name));

	expect(o);
	label_rows_begin(&w->rows);
	role->build(&b, o);
	expect(!w->rows.failed);
	return w->rows.rows.n;
}

static void end(struct world *w)
{
	label_rows_fini(&w->rows);
	store_free(&w->store);
}

/* The value of a label of target i; STR_NULL where it has none. Labels must be sorted, unique and
 * not empty. */
static struct str label(const struct world *w, size_t i, const char *name)
{
	const struct row *row = &w->rows.rows.p[i];
	const struct target_label *labels = w->rows.labels.p + row->first;
	struct str value = STR_NULL;

	for (uint32_t k = 0; k < row->n; k++) {
		expect(labels[k].value.n);
		expect(k == 0 || str_cmp(labels[k - 1].name, labels[k].name) < 0);
		if (str_is(labels[k].name, name))
			value = labels[k].value;
	}
	return value;
}

#define POD                                                                                        \
	"{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u1\","                 \
	"\"labels\":{\"app.kubernetes.io/name\":\"web\",\"a_b\":\"2\",\"a/b\":\"1\","              \
	"\"\xc3\xa9x\":\"3\"},"                                                                    \
	"\"annotations\":{\"note\":\"\"},"                                                         \
	"\"ownerReferences\":[{\"kind\":\"Node\",\"name\":\"n\"},"                                 \
	"{\"kind\":\"ReplicaSet\",\"name\":\"web\",\"controller\":true}]},"                        \
	"\"spec\":{\"nodeName\":\"n1\",\"containers\":["                                           \
	"{\"name\":\"app\",\"image\":\"app:1\",\"ports\":[{\"name\":\"http\","                     \
	"\"containerPort\":80,"                                                                    \
	"\"protocol\":\"TCP\"},{\"containerPort\":53,\"protocol\":\"UDP\"}]},"                     \
	"{\"name\":\"side\",\"image\":\"side:1\"}],"                                               \
	"\"initContainers\":[{\"name\":\"setup\"},{\"name\":\"proxy\","                            \
	"\"restartPolicy\":\"Always\"}],"                                                          \
	"\"ephemeralContainers\":[{\"name\":\"debug\",\"image\":\"sh\"}]},"                        \
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.7\",\"hostIP\":\"10.1.0.1\","        \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"                               \
	"\"containerStatuses\":[{\"name\":\"app\",\"containerID\":\"containerd://abc\"}],"         \
	"\"ephemeralContainerStatuses\":[{\"name\":\"debug\",\"containerID\":\"containerd://e\"}]}}"
#define NODE                                                                                       \
	"{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"z\"}},"                             \
	"\"spec\":{\"providerID\":\"p\"},"                                                         \
	"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"                   \
	"\"addresses\":[{\"type\":\"Hostname\",\"address\":\"h\"},"                                \
	"{\"type\":\"InternalIP\",\"address\":\"fd00::1\"},"                                       \
	"{\"type\":\"InternalIP\",\"address\":\"10.1.0.1\"}],"                                     \
	"\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":10250}}}}"
#define SPACE "{\"metadata\":{\"name\":\"shop\",\"labels\":{\"team\":\"t\"}}}"
#define SERVICE                                                                                    \
	"{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","                                  \
	"\"labels\":{\"tier\":\"front\"}},"                                                        \
	"\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"10.9.0.1\","                          \
	"\"loadBalancerIP\":\"1.1.1.1\","                                                          \
	"\"ipFamilyPolicy\":\"PreferDualStack\",\"ipFamilies\":[\"IPv4\",\"IPv6\"],"               \
	"\"ports\":[{\"name\":\"http\",\"port\":80,\"protocol\":\"TCP\"}]},"                       \
	"\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"2.2.2.2\"},{\"hostname\":\"h\"},"    \
	"{\"ip\":\"3.3.3.3\"}]}}}"

TEST(a_pod_has_a_target_per_port_or_container)
{
	struct world w = {0};

	put(&w, KIND_POD, POD);
	expect_eq(build(&w, &role_pod, "shop", "web-1"), 5);
	expect_str(label(&w, 0, "__address__"), "10.0.0.7:80");
	expect_str(label(&w, 0, META "namespace"), "shop");
	expect_str(label(&w, 0, META "pod_name"), "web-1");
	expect_str(label(&w, 0, META "pod_ready"), "true");
	expect_str(label(&w, 0, META "pod_phase"), "Running");
	expect_str(label(&w, 0, META "pod_controller_kind"), "ReplicaSet");
	expect_str(label(&w, 0, META "pod_controller_name"), "web");
	expect_str(label(&w, 0, META "pod_label_app_kubernetes_io_name"), "web");
	expect_str(label(&w, 0, META "pod_labelpresent_app_kubernetes_io_name"), "true");
	expect_str(label(&w, 0, META "pod_label__x"), "3");
	expect_str(label(&w, 0, META "pod_annotationpresent_note"), "true");
	expect(!label(&w, 0, META "pod_annotation_note").p);
	expect_str(label(&w, 0, META "pod_container_id"), "containerd://abc");
	expect_str(label(&w, 0, META "pod_container_port_name"), "http");
	/* "a/b" and "a_b" are one label; the one that sorts last wins. */
	expect_str(label(&w, 0, META "pod_label_a_b"), "2");
	expect(!label(&w, 0, META "pod_container_kind").p);
	expect_str(label(&w, 1, "__address__"), "10.0.0.7:53");
	expect_str(label(&w, 1, META "pod_container_port_protocol"), "UDP");
	expect(!label(&w, 1, META "pod_container_port_name").p);
	expect_str(label(&w, 2, "__address__"), "10.0.0.7");
	expect_str(label(&w, 2, META "pod_container_name"), "side");
	expect_str(label(&w, 2, META "pod_container_init"), "false");
	expect_str(label(&w, 3, META "pod_container_name"), "setup");
	expect_str(label(&w, 3, META "pod_container_init"), "true");
	expect(!label(&w, 3, META "pod_container_id").p);
	end(&w);
}

TEST(ephemeral_containers_are_targets_where_asked_for)
{
	static const char *const kinds_[] = {"container", "container", "container",
					     "init",      "sidecar",   "ephemeral"};
	struct world w = {.options.ephemeral = true};

	put(&w, KIND_POD, POD);
	expect_eq(build(&w, &role_pod, "shop", "web-1"), 6);
	for (size_t i = 0; i < 6; i++)
		expect_str(label(&w, i, META "pod_container_kind"), kinds_[i]);
	expect_str(label(&w, 5, META "pod_container_name"), "debug");
	expect_str(label(&w, 5, META "pod_container_id"), "containerd://e");
	expect_str(label(&w, 5, META "pod_container_init"), "false");
	end(&w);
}

TEST(pods_without_an_address_are_targets_where_asked_for)
{
	struct world w = {0};

	put(&w, KIND_POD,
	    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"s\"},\"spec\":{\"containers\":["
	    "{\"name\":\"c\",\"ports\":[{\"containerPort\":1}]}]}}");
	expect_eq(build(&w, &role_pod, "s", "p"), 0);
	w.options.without_ip = true;
	expect_eq(build(&w, &role_pod, "s", "p"), 1);
	expect(!label(&w, 0, "__address__").p);
	expect_str(label(&w, 0, META "pod_ready"), "unknown");
	end(&w);
}

TEST(ipv6_addresses_have_brackets_where_a_port_follows)
{
	struct world w = {0};

	put(&w, KIND_POD,
	    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"s\"},\"status\":{\"podIP\":\"fd00::1\"},"
	    "\"spec\":{\"containers\":[{\"ports\":[{\"containerPort\":1}]},{}]}}");
	expect_eq(build(&w, &role_pod, "s", "p"), 2);
	expect_str(label(&w, 0, "__address__"), "[fd00::1]:1");
	expect_str(label(&w, 1, "__address__"), "fd00::1");
	end(&w);
}

/* With node metadata, a pod whose node no selector let in is no target. */
TEST(nodes_and_namespaces_lend_their_labels)
{
	struct world w = {.options = {.attach_node = true, .attach_namespace = true}};

	put(&w, KIND_POD, POD);
	expect_eq(build(&w, &role_pod, "shop", "web-1"), 0);
	put(&w, KIND_NODE, NODE);
	put(&w, KIND_NAMESPACE, SPACE);
	expect_eq(build(&w, &role_pod, "shop", "web-1"), 5);
	expect_str(label(&w, 4, META "node_name"), "n1");
	expect_str(label(&w, 4, META "node_label_zone"), "z");
	expect_str(label(&w, 4, META "namespace_label_team"), "t");
	expect_str(label(&w, 4, META "namespace_labelpresent_team"), "true");
	expect(!label(&w, 4, META "namespace_name").p);
	end(&w);
}

TEST(a_node_is_a_target_at_its_kubelet)
{
	struct world w = {0};

	put(&w, KIND_NODE, NODE);
	expect_eq(build(&w, &role_node, "", "n1"), 1);
	expect_str(label(&w, 0, "__address__"), "[fd00::1]:10250");
	expect_str(label(&w, 0, "instance"), "n1");
	expect_str(label(&w, 0, META "node_provider_id"), "p");
	expect_str(label(&w, 0, META "node_condition_ready"), "true");
	expect_str(label(&w, 0, META "node_address_InternalIP"), "fd00::1");
	expect_str(label(&w, 0, META "node_address_Hostname"), "h");
	put(&w, KIND_NODE, "{\"metadata\":{\"name\":\"n2\"}}");
	expect_eq(build(&w, &role_node, "", "n2"), 0);
	end(&w);
}

TEST(a_service_has_a_target_per_port)
{
	struct world w = {0};

	put(&w, KIND_SERVICE, SERVICE);
	expect_eq(build(&w, &role_service, "shop", "web"), 1);
	expect_str(label(&w, 0, "__address__"), "web.shop.svc:80");
	expect_str(label(&w, 0, META "service_cluster_ip"), "10.9.0.1");
	expect_str(label(&w, 0, META "service_loadbalancer_ip"), "2.2.2.2,3.3.3.3");
	expect_str(label(&w, 0, META "service_label_tier"), "front");
	put(&w, KIND_SERVICE,
	    "{\"metadata\":{\"name\":\"out\",\"namespace\":\"shop\"},\"spec\":{\"type\":"
	    "\"ExternalName\",\"externalName\":\"example.org\",\"ports\":[{\"port\":443}]}}");
	expect_eq(build(&w, &role_service, "shop", "out"), 1);
	expect_str(label(&w, 0, META "service_external_name"), "example.org");
	expect(!label(&w, 0, META "service_cluster_ip").p);
	end(&w);
}

/* Endpoints: the service's labels, the pod's, its container's, and a target for each of the pod's
 * other ports. */
TEST(endpoints_are_targets_with_their_pods)
{
	struct world w = {0};

	put(&w, KIND_POD, POD);
	put(&w, KIND_SERVICE, SERVICE);
	put(&w, KIND_ENDPOINTS,
	    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"subsets\":[{"
	    "\"addresses\":[{\"ip\":\"10.0.0.7\",\"nodeName\":\"n1\",\"hostname\":\"h\","
	    "\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-1\"}}],"
	    "\"notReadyAddresses\":[{\"ip\":\"10.0.0.9\"}],"
	    "\"ports\":[{\"name\":\"http\",\"port\":80,\"protocol\":\"TCP\"}]}]}");
	expect_eq(build(&w, &role_endpoints, "shop", "web"), 3);
	expect_str(label(&w, 0, "__address__"), "10.0.0.7:80");
	expect_str(label(&w, 0, META "endpoints_name"), "web");
	expect_str(label(&w, 0, META "service_label_tier"), "front");
	expect_str(label(&w, 0, META "endpoint_ready"), "true");
	expect_str(label(&w, 0, META "endpoint_address_target_kind"), "Pod");
	expect_str(label(&w, 0, META "endpoint_node_name"), "n1");
	expect_str(label(&w, 0, META "endpoint_hostname"), "h");
	expect_str(label(&w, 0, META "pod_name"), "web-1");
	expect_str(label(&w, 0, META "pod_container_name"), "app");
	expect_str(label(&w, 0, META "pod_container_port_number"), "80");
	expect_str(label(&w, 1, META "endpoint_ready"), "false");
	expect(!label(&w, 1, META "pod_name").p);
	expect_str(label(&w, 2, "__address__"), "10.0.0.7:53");
	expect(!label(&w, 2, META "endpoint_ready").p);
	expect_str(label(&w, 2, META "pod_container_port_protocol"), "UDP");
	end(&w);
}

#define SLICE(family)                                                                              \
	"{\"metadata\":{\"name\":\"web-x\",\"namespace\":\"shop\",\"labels\":{"                    \
	"\"kubernetes.io/service-name\":\"web\"}},\"addressType\":\"" family "\",\"endpoints\":["  \
	"{\"addresses\":[\"10.0.0.7\",\"10.0.0.8\"],\"conditions\":{\"ready\":false,"              \
	"\"serving\":true},"                                                                       \
	"\"zone\":\"z\",\"nodeName\":\"n1\",\"deprecatedTopology\":{\"a.b\":\"c\"},"               \
	"\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"web-1\"}}],"            \
	"\"ports\":[{\"name\":\"http\",\"port\":80,\"protocol\":\"TCP\",\"appProtocol\":\"h2c\"}," \
	"{}]}"

TEST(endpoint_slices_are_targets_with_their_pods)
{
	struct world w = {0};

	put(&w, KIND_POD, POD);
	put(&w, KIND_SERVICE, SERVICE);
	put(&w, KIND_SLICE, SLICE("IPv4"));
	expect_eq(build(&w, &role_slice, "shop", "web-x"), 5);
	expect_str(label(&w, 0, "__address__"), "10.0.0.7:80");
	expect_str(label(&w, 0, META "endpointslice_address_type"), "IPv4");
	expect_str(label(&w, 0, META "endpointslice_port"), "80");
	expect_str(label(&w, 0, META "endpointslice_port_app_protocol"), "h2c");
	expect_str(label(&w, 0, META "endpointslice_endpoint_conditions_ready"), "false");
	expect_str(label(&w, 0, META "endpointslice_endpoint_conditions_serving"), "true");
	expect(!label(&w, 0, META "endpointslice_endpoint_conditions_terminating").p);
	expect_str(label(&w, 0, META "endpointslice_endpoint_topology_a_b"), "c");
	expect_str(label(&w, 0, META "endpointslice_endpoint_topology_present_a_b"), "true");
	expect_str(label(&w, 0, META "service_name"), "web");
	expect_str(label(&w, 0, META "pod_container_name"), "app");
	expect_str(label(&w, 1, "__address__"), "10.0.0.8:80");
	expect_str(label(&w, 2, "__address__"), "10.0.0.7");
	expect(!label(&w, 2, META "pod_container_name").p);
	expect_str(label(&w, 4, "__address__"), "10.0.0.7:53");
	/* The second family of a dual-stack service says the same again. */
	put(&w, KIND_SLICE, SLICE("IPv6"));
	expect_eq(build(&w, &role_slice, "shop", "web-x"), 0);
	end(&w);
}

TEST(an_ingress_has_a_target_per_path)
{
	static const char *const schemes[] = {"http", "https", "https", "http"};
	struct world w = {0};

	put(&w, KIND_INGRESS,
	    "{\"metadata\":{\"name\":\"i\",\"namespace\":\"s\"},"
	    "\"spec\":{\"ingressClassName\":\"c\","
	    "\"tls\":[{\"hosts\":[\"*.b.org\",\"c.org\"]}],\"rules\":[{\"host\":\"a.org\"},"
	    "{\"host\":\"x.b.org\",\"http\":{\"paths\":[{\"path\":\"/p\"}]}},"
	    "{\"host\":\"c.org\",\"http\":{\"paths\":[{}]}},"
	    "{\"host\":\"x.y.b.org\"},{\"host\":\"d\",\"http\":{\"paths\":[]}}]}}");
	expect_eq(build(&w, &role_ingress, "s", "i"), 4);
	for (size_t i = 0; i < 4; i++)
		expect_str(label(&w, i, META "ingress_scheme"), schemes[i]);
	expect_str(label(&w, 0, "__address__"), "a.org");
	expect_str(label(&w, 0, META "ingress_class_name"), "c");
	expect_str(label(&w, 0, META "ingress_path"), "/");
	expect_str(label(&w, 1, META "ingress_path"), "/p");
	expect_str(label(&w, 2, META "ingress_path"), "/");
	end(&w);
}

/* A server of profiles would refuse the whole push for one such value. */
TEST(values_that_are_not_utf8_are_left_out)
{
	struct world w = {0};
	struct object o = {.name = STR("p"), .namespace_ = STR("s")};

	label_rows_begin(&w.rows);
	label_rows_add(&w.rows, "good", STR("\xc3\xa9"));
	label_rows_add(&w.rows, "bad", STR("12345678\xff"));
	label_rows_finish(&w.rows);
	expect_str(label(&w, 0, "good"), "\xc3\xa9");
	expect(!label(&w, 0, "bad").p);
	expect_eq(w.rows.not_utf8, 1);
	object_fini(&o);
	end(&w);
}

/* What one object can cost is bounded: labels of an object times its targets. */
TEST(an_object_of_too_many_targets_is_cut)
{
	struct world w = {0};
	struct buf pod = BUF_NULL;

	buf_printf(&pod, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"s\",\"annotations\":{");
	for (int i = 0; i < 20000; i++)
		buf_printf(&pod, "%s\"k%d\":\"v\"", i ? "," : "", i);
	buf_printf(
		&pod,
		"}},\"status\":{\"podIP\":\"1.1.1.1\"},\"spec\":{\"containers\":[{\"ports\":[{}");
	for (int i = 0; i < 100; i++)
		buf_printf(&pod, ",{\"containerPort\":%d}", i);
	buf_printf(&pod, "]}]}}");
	buf_putc(&pod, '\0');
	put(&w, KIND_POD, pod.p);
	expect_eq(build(&w, &role_pod, "s", "p"), 26);
	expect_eq(w.rows.cut, 75);
	expect_str(label(&w, 25, META "pod_annotation_k19999"), "v");
	buf_free(&pod);
	end(&w);
}

static int build_all(void *context)
{
	struct world *w = context;
	struct builder b = {&w->store, {true, true, true, true}, &w->rows};
	int r = 0;

	for (uint32_t i = 0; i < w->store.slots.n && r == 0; i++) {
		const struct slot *s = &w->store.slots.p[i];
		const struct role *role = role_find(str_of(kinds[s->kind].role));

		if (!role)
			continue;
		label_rows_begin(&w->rows);
		role->build(&b, s->object);
		r = w->rows.failed ? -ENOMEM : 0;
	}
	label_rows_fini(&w->rows);
	return r;
}

TEST(targets_survive_failing_allocations)
{
	struct world w = {0};

	put(&w, KIND_POD, POD);
	put(&w, KIND_NODE, NODE);
	put(&w, KIND_NAMESPACE, SPACE);
	put(&w, KIND_SERVICE, SERVICE);
	put(&w, KIND_SLICE, SLICE("IPv4"));
	test_each_failing_allocation(build_all, &w);
	end(&w);
}

/* Whatever is kept of a damaged object, its targets are well formed. The same bytes are taken for
 * objects of every kind. */
TEST(damaged_objects_have_targets_or_none)
{
	struct buf good = wire_pod("p", "1");
	char *text = malloc(good.n);
	uint64_t state = 5;
	size_t kept = 0, targets = 0;

	for (int round = 0; round < 4000; round++) {
		enum kind kind = round % 2 ? KIND_POD : (enum kind)(round / 2 % N_KINDS);
		const struct role *role = role_find(str_of(kinds[kind].role));
		struct world w = {.options = {.ephemeral = true, .without_ip = true}};
		struct object o = {0};

		memcpy(text, good.p, good.n);
		for (int i = 0; i < 1 + round % 4; i++) {
			state = hash_u64(state);
			text[state % good.n] = (char)(state >> 32);
		}
		if (object_read(kind, (struct str){text, good.n}, &o) == 0 && o.name.n && role &&
		    store_set(&w.store, 0, kind, &o) == 0) {
			struct builder b = {&w.store, w.options, &w.rows};

			kept++;
			label_rows_begin(&w.rows);
			role->build(&b, w.store.slots.p[0].object);
			for (size_t i = 0; i < w.rows.rows.n; i++, targets++)
				label(&w, i, "");
		}
		object_fini(&o);
		end(&w);
	}
	expect(kept > 1000 && targets > 3000);
	free(text);
	buf_free(&good);
}
