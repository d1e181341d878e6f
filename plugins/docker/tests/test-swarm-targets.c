/* SPDX-License-Identifier: Apache-2.0 */
/* A manager's lists, and the targets that they become. The labels are those of Prometheus's
 * dockerswarm_sd_configs. */
#include "base/buf.h"
#include "docker/swarm-targets.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

#define NETWORKS                                                                                   \
	"[{\"Id\":\"n1\",\"Name\":\"ingress\",\"Scope\":\"swarm\",\"Ingress\":true,"               \
	"\"Labels\":{\"a-b\":\"c\"}},{\"Id\":\"n2\",\"Name\":\"back\",\"Scope\":\"swarm\","        \
	"\"Internal\":true}]"
#define SERVICE                                                                                    \
	"{\"ID\":\"sv\",\"Spec\":{\"Name\":\"web\",\"Labels\":{\"com.x/y\":\"1\",\"empty\":\"\"}," \
	"\"Mode\":{\"Replicated\":{\"Replicas\":2}},\"TaskTemplate\":{\"ContainerSpec\":"          \
	"{\"Image\":\"web:1\",\"Hostname\":\"w\"}}},\"UpdateStatus\":{\"State\":\"completed\"},"   \
	"\"Endpoint\":{\"Ports\":[{\"Name\":\"http\",\"Protocol\":\"tcp\",\"PublishedPort\":8080," \
	"\"TargetPort\":80,\"PublishMode\":\"ingress\"},{\"Protocol\":\"udp\",\"PublishedPort\":"  \
	"53}],\"VirtualIPs\":[{\"NetworkID\":\"n1\",\"Addr\":\"10.0.0.5/24\"},{\"NetworkID\":"     \
	"\"n2\"}]}}"
#define GLOBAL                                                                                     \
	"{\"ID\":\"gl\",\"Spec\":{\"Name\":\"agent\",\"Mode\":{\"Global\":{}}},\"Endpoint\":"      \
	"{\"VirtualIPs\":[{\"NetworkID\":\"n2\",\"Addr\":\"fd00::5/64\"},"                         \
	"{\"NetworkID\":\"unknown\",\"Addr\":\"10.9.0.1/24\"}]}}"
#define SERVICES "[" SERVICE "," GLOBAL "]"
#define NODES                                                                                      \
	"[{\"ID\":\"nd\",\"Spec\":{\"Role\":\"manager\",\"Availability\":\"active\",\"Labels\":"   \
	"{\"rack\":\"r1\"}},\"Description\":{\"Hostname\":\"h1\",\"Platform\":{\"Architecture\":"  \
	"\"x86_64\",\"OS\":\"linux\"},\"Engine\":{\"EngineVersion\":\"24\"}},\"Status\":"          \
	"{\"State\":\"ready\",\"Addr\":\"192.0.2.1\"},\"ManagerStatus\":{\"Leader\":true,"         \
	"\"Reachability\":\"reachable\",\"Addr\":\"192.0.2.1:2377\"}},{\"ID\":\"wk\",\"Spec\":"    \
	"{\"Role\":\"worker\"},\"Status\":{\"Addr\":\"fd00::9\"}}]"
#define TASKS                                                                                      \
	"[{\"ID\":\"t1\",\"ServiceID\":\"sv\",\"NodeID\":\"nd\",\"Slot\":1,\"DesiredState\":"      \
	"\"running\",\"Status\":{\"State\":\"running\",\"ContainerStatus\":{\"ContainerID\":"      \
	"\"cc\"},\"PortStatus\":{\"Ports\":[{\"Protocol\":\"tcp\",\"PublishedPort\":9000,"         \
	"\"PublishMode\":\"host\"},{\"Protocol\":\"sctp\",\"PublishedPort\":1}]}},\"Spec\":"       \
	"{\"ContainerSpec\":{\"Labels\":{\"team\":\"x\"}}},\"NetworksAttachments\":[{\"Network\":" \
	"{\"ID\":\"n1\"},\"Addresses\":[\"10.0.0.6/24\"]}]},"                                      \
	"{\"ID\":\"t2\",\"ServiceID\":\"gl\",\"NodeID\":\"gone\",\"Status\":{\"State\":"           \
	"\"failed\"},\"NetworksAttachments\":[{\"Network\":{\"ID\":\"n2\"},\"Addresses\":"         \
	"[\"10.1.0.2/16\"]},{\"Network\":{\"ID\":\"n2\"}}]},"                                      \
	"{\"ID\":\"t3\",\"NodeID\":\"wk\",\"Status\":{\"ContainerStatus\":{\"ContainerID\":"       \
	"\"dd\"}}}]"

static struct swarm_options options_of(const char *role)
{
	return (struct swarm_options){.role = swarm_role(str_of(role)), .port = 80};
}

/* The rows, a line each: NAME=VALUE,… in the order of a target list. */
static struct str rows_of(const struct swarm_options *o, const struct str *answers, struct buf *out)
{
	struct swarm_targets t = {0};
	struct error err = ERROR_NULL;

	buf_clear(out);
	if (swarm_targets_read(o, answers, &t, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect_eq(t.keys.n, t.rows.rows.n);
	for (size_t i = 0; i < t.rows.rows.n; i++) {
		struct target_label *labels = t.rows.labels.p + t.rows.rows.p[i].first;
		size_t n = t.rows.rows.p[i].n;

		qsort(labels, n, sizeof(*labels), target_label_compare);
		for (size_t k = 0; k < n; k++) {
			struct str name = labels[k].name;

			if (str_starts(name, STR(SWARM_META)))
				name = str_skip(name, strlen(SWARM_META));
			buf_printf(out, "%s%.*s=%.*s", k ? "," : "", STR_FMT(name),
				   STR_FMT(labels[k].value));
		}
		buf_putc(out, '\n');
	}
	swarm_targets_free(&t);
	return buf_str(out);
}

/* One for each address and TCP port of a service; one for an address without a port. An address
 * that is absent costs nothing else. */
TEST(services_have_their_addresses)
{
	const struct str answers[] = {STR(SERVICES), STR(NETWORKS)};
	struct swarm_options o = options_of("services");
	struct buf out = BUF_NULL;

	expect_str(rows_of(&o, answers, &out),
		   "__address__=10.0.0.5:8080,network_id=n1,network_ingress=true,"
		   "network_internal=false,network_label_a_b=c,network_name=ingress,"
		   "network_scope=swarm,service_endpoint_port_name=http,"
		   "service_endpoint_port_publish_mode=ingress,service_id=sv,"
		   "service_label_com_x_y=1,service_mode=replicated,service_name=web,"
		   "service_task_container_hostname=w,service_task_container_image=web:1,"
		   "service_updating_status=completed\n"
		   "__address__=[fd00::5]:80,network_id=n2,network_ingress=false,"
		   "network_internal=true,network_name=back,network_scope=swarm,service_id=gl,"
		   "service_mode=global,service_name=agent\n"
		   "__address__=10.9.0.1:80,service_id=gl,service_mode=global,"
		   "service_name=agent\n");
	buf_free(&out);
}

/* A task has the labels of its service and its node: at the node for ports that it publishes
 * itself, in each network for those of its service. One without an address is a target on demand
 * only. */
TEST(tasks_have_their_services_and_nodes)
{
	const struct str answers[] = {STR(TASKS), STR(SERVICES), STR(NODES), STR(NETWORKS)};
	static const char first[] =
		"__address__=192.0.2.1:9000,container_label_team=x,node_address=192.0.2.1,"
		"node_availability=active,node_hostname=h1,node_id=nd,node_label_rack=r1,"
		"node_platform_architecture=x86_64,node_platform_os=linux,node_role=manager,"
		"node_status=ready,service_id=sv,service_label_com_x_y=1,"
		"service_mode=replicated,service_name=web,task_container_id=cc,"
		"task_desired_state=running,task_id=t1,task_port_publish_mode=host,task_slot=1,"
		"task_state=running\n"
		"__address__=10.0.0.6:8080,container_label_team=x,network_id=n1,"
		"network_ingress=true,network_internal=false,network_label_a_b=c,"
		"network_name=ingress,network_scope=swarm,node_address=192.0.2.1,"
		"node_availability=active,node_hostname=h1,node_id=nd,node_label_rack=r1,"
		"node_platform_architecture=x86_64,node_platform_os=linux,node_role=manager,"
		"node_status=ready,service_id=sv,service_label_com_x_y=1,"
		"service_mode=replicated,service_name=web,task_container_id=cc,"
		"task_desired_state=running,task_id=t1,task_port_publish_mode=ingress,"
		"task_slot=1,task_state=running\n"
		"__address__=10.1.0.2:80,network_id=n2,network_ingress=false,"
		"network_internal=true,network_name=back,network_scope=swarm,service_id=gl,"
		"service_mode=global,service_name=agent,task_id=t2,task_slot=0,"
		"task_state=failed\n";
	struct swarm_options o = options_of("tasks");
	struct buf out = BUF_NULL;

	expect_str(rows_of(&o, answers, &out), first);
	o.without_network = true;
	expect(str_starts(rows_of(&o, answers, &out), str_of(first)));
	expect_str(str_skip(buf_str(&out), strlen(first)),
		   "node_address=fd00::9,node_id=wk,node_role=worker,task_container_id=dd,"
		   "task_id=t3,task_slot=0\n");
	buf_free(&out);
}

/* A node has one target; what only managers are is absent from others. */
TEST(nodes_have_one_target)
{
	const struct str answers[] = {STR(NODES)};
	struct swarm_options o = options_of("nodes");
	struct buf out = BUF_NULL;

	o.port = 9100;
	expect_str(rows_of(&o, answers, &out),
		   "__address__=192.0.2.1:9100,node_address=192.0.2.1,node_availability=active,"
		   "node_engine_version=24,node_hostname=h1,node_id=nd,node_label_rack=r1,"
		   "node_manager_address=192.0.2.1:2377,node_manager_leader=true,"
		   "node_manager_reachability=reachable,node_platform_architecture=x86_64,"
		   "node_platform_os=linux,node_role=manager,node_status=ready\n"
		   "__address__=[fd00::9]:9100,node_address=fd00::9,node_id=wk,"
		   "node_role=worker\n");
	buf_free(&out);
}

/* A row keeps its key when others come before it. */
TEST(keys_stay)
{
	const struct str alone[] = {STR("[" GLOBAL "]"), STR("[]")};
	const struct str both[] = {STR(SERVICES), STR(NETWORKS)};
	struct swarm_options o = options_of("services");
	struct swarm_targets a = {0}, b = {0};

	expect_eq(swarm_targets_read(&o, alone, &a, NULL), 0);
	expect_eq(swarm_targets_read(&o, both, &b, NULL), 0);
	expect_eq(a.keys.n, 2);
	expect_eq(b.keys.n, 3);
	for (size_t i = 0; i < 2; i++) {
		expect(a.keys.p[i].row == b.keys.p[i + 1].row);
		expect(a.keys.p[i].order == b.keys.p[i + 1].order);
	}
	expect(b.keys.p[0].row != b.keys.p[1].row && b.keys.p[1].row != b.keys.p[2].row);
	swarm_targets_free(&a);
	swarm_targets_free(&b);
}

/* What is no list is refused, whichever it is of; what has other types than it should is left out.
 */
TEST(damaged_lists_are_refused)
{
	static const char *const bad[] = {"", "<html>", "{}", "[", "[{\"ID\":}]", "null"};
	static const char odd[] =
		"[1,null,{},{\"ID\":7},{\"ID\":\"a\",\"Spec\":[],\"Status\":3,\"Endpoint\":"
		"{\"VirtualIPs\":[1,{\"Addr\":\"/\"},{\"Addr\":\"x\"}],\"Ports\":{}},"
		"\"NetworksAttachments\":[4,{\"Addresses\":[{},\"\"]}],\"Slot\":\"1\"}]";
	struct str answers[] = {STR(TASKS), STR(SERVICES), STR(NODES), STR(NETWORKS)};
	struct swarm_options o = options_of("tasks");
	struct swarm_targets t = {0};
	struct error err = ERROR_NULL;

	for (size_t list = 0; list < 4; list++) {
		struct str good = answers[list];

		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			answers[list] = str_of(bad[i]);
			expect_eq(swarm_targets_read(&o, answers, &t, &err), -EINVAL);
			expect(strstr(err.text, swarm_list_name(o.role->lists[list])));
		}
		answers[list] = good;
	}
	for (size_t role = 0; swarm_role_names[role]; role++) {
		struct str text = str_of(odd), same[] = {text, text, text, text};

		o = options_of(swarm_role_names[role]);
		expect_eq(swarm_targets_read(&o, same, &t, &err), 0);
		expect_eq(t.n_objects, 1);
		expect_eq(t.rows.rows.n, role == 1 ? 0 : 1);
		swarm_targets_free(&t);
	}
}

/* Some kilobytes that mean millions of rows, or of labels that come to nothing, are refused. */
TEST(products_are_bounded)
{
	static const char *const ports[] = {"tcp", "udp"};
	struct swarm_options o = options_of("services");
	struct swarm_targets t = {0};
	struct error err = ERROR_NULL;

	for (size_t kind = 0; kind < 2; kind++) {
		struct buf text = BUF_NULL;
		struct str answers[] = {STR_NULL, STR("[]")};

		buf_printf(&text, "[{\"ID\":\"a\",\"Endpoint\":{\"VirtualIPs\":[");
		for (int i = 0; i < 3000; i++)
			buf_printf(&text, "%s{\"Addr\":\"10.0.0.1/8\"}", i ? "," : "");
		buf_printf(&text, "],\"Ports\":[");
		for (int i = 0; i < 3000; i++)
			buf_printf(&text, "%s{\"Protocol\":\"%s\"}", i ? "," : "", ports[kind]);
		buf_printf(&text, "]}}]");
		expect(!text.failed);
		answers[0] = buf_str(&text);
		expect_eq(swarm_targets_read(&o, answers, &t, &err), -E2BIG);
		expect(strstr(err.text, "filter them"));
		buf_free(&text);
	}
}

static int read_starved(void *context)
{
	const struct str answers[] = {STR(TASKS), STR(SERVICES), STR(NODES), STR(NETWORKS)};
	struct swarm_options o = options_of("tasks");
	struct swarm_targets t = {0};
	int r = swarm_targets_read(&o, answers, &t, NULL);

	if (r == 0)
		swarm_targets_free(&t);
	return r == -EINVAL ? -ENOMEM : r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(read_starved, NULL);
}
