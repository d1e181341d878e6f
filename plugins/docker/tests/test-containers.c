/* SPDX-License-Identifier: Apache-2.0 */
/* Containers as the engine lists them, and the targets that they become; events; arguments. The
 * labels are those of Prometheus's docker_sd_configs. */
#include "base/buf.h"
#include "docker/events.h"
#include "docker/settings.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

struct world {
	struct containers containers;
	struct target_table *table;
	struct buf text; /* the targets, a line each: NAME=VALUE,… */
	int changes[4];
};

static void on_change(void *context, int change, struct target_row *row)
{
	((struct world *)context)->changes[change]++;
}

static void write_row(void *context, int change, struct target_row *row)
{
	struct world *w = context;

	for (uint32_t i = 0; i < row->n_labels; i++) {
		struct str name = row->labels[i].name;

		if (str_starts(name, STR(DOCKER_META)))
			name = str_skip(name, strlen(DOCKER_META));
		buf_printf(&w->text, "%s%.*s=%.*s", i ? "," : "", STR_FMT(name),
			   STR_FMT(row->labels[i].value));
	}
	buf_putc(&w->text, '\n');
}

static void begin(struct world *w)
{
	struct target_options options = {.port = 80,
					 .host_networking_host = STR("localhost"),
					 .first_network = true};

	*w = (struct world){.table = target_table_new()};
	expect_eq(containers_init(&w->containers, 7, &options), 0);
}

static void end(struct world *w)
{
	containers_fini(&w->containers);
	target_table_free(w->table);
	buf_free(&w->text);
}

static struct str targets(struct world *w)
{
	const struct andiron_targets *update = NULL;

	memset(w->changes, 0, sizeof(w->changes));
	expect_eq(containers_flush(&w->containers, &update), 0);
	if (update) {
		expect_eq(target_table_apply(w->table, update, on_change, w), 0);
		update->release(update->owner);
	}
	buf_clear(&w->text);
	target_table_each(w->table, write_row, w);
	return buf_str(&w->text);
}

static void all_are(struct world *w, const char *json)
{
	struct container_list list = {0};
	struct error err = ERROR_NULL;

	if (container_list_parse(str_of(json), &list, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
	expect_eq(containers_replace(&w->containers, &list), 0);
}

static void networks_are(struct world *w, const char *json)
{
	struct network_list list = {0};
	struct error err = ERROR_NULL;

	expect_eq(network_list_parse(str_of(json), &list, &err), 0);
	containers_use_networks(&w->containers, &list);
}

#define PORTS                                                                                      \
	"[{\"IP\":\"0.0.0.0\",\"PrivatePort\":80,\"PublicPort\":8080,\"Type\":\"tcp\"},"           \
	"{\"PrivatePort\":443,\"Type\":\"tcp\"},{\"PrivatePort\":53,\"Type\":\"udp\"}]"
#define WEB                                                                                        \
	"{\"Id\":\"aa\",\"Names\":[\"/web\",\"/other\"],\"Labels\":{\"com.x/y\":\"1\"},"           \
	"\"Ports\":" PORTS ",\"HostConfig\":{\"NetworkMode\":\"shop\"},\"NetworkSettings\":"       \
	"{\"Networks\":{\"shop\":{\"NetworkID\":\"n1\",\"IPAddress\":\"10.0.0.2\"}}}}"
#define SIDE                                                                                       \
	"{\"Id\":\"bb\",\"Names\":[\"/side\"],\"HostConfig\":{\"NetworkMode\":\"container:aa\"},"  \
	"\"NetworkSettings\":{\"Networks\":{}}}"
#define NETWORKS                                                                                   \
	"[{\"Id\":\"n1\",\"Name\":\"shop_net\",\"Scope\":\"local\",\"Internal\":false,"            \
	"\"Ingress\":false,\"Labels\":{\"a-b\":\"c\"}}]"

/* A target for each TCP port, with the labels of the container, of its network, and of the port. */
TEST(ports_and_networks_are_labels)
{
	struct world w;

	begin(&w);
	networks_are(&w, NETWORKS);
	all_are(&w, "[" WEB "]");
	expect(!containers_lack_network(&w.containers));
	expect_str(targets(&w),
		   "__address__=10.0.0.2:80,container_id=aa,container_label_com_x_y=1,"
		   "container_name=/web,container_network_mode=shop,network_id=n1,"
		   "network_ingress=false,network_internal=false,network_ip=10.0.0.2,"
		   "network_label_a_b=c,network_name=shop_net,network_scope=local,"
		   "port_private=80,port_public=8080,port_public_ip=0.0.0.0\n"
		   "__address__=10.0.0.2:443,container_id=aa,container_label_com_x_y=1,"
		   "container_name=/web,container_network_mode=shop,network_id=n1,"
		   "network_ingress=false,network_internal=false,network_ip=10.0.0.2,"
		   "network_label_a_b=c,network_name=shop_net,network_scope=local,"
		   "port_private=443\n");
	end(&w);
}

/* Without a port the argument's is taken, on the host's network the argument's address; of several
 * networks the first by name. */
TEST(containers_without_ports_have_an_address)
{
	struct world w;

	begin(&w);
	all_are(&w,
		"[{\"Id\":\"a\",\"Names\":[\"/a\"],\"HostConfig\":{\"NetworkMode\":\"host\"},"
		"\"NetworkSettings\":{\"Networks\":{\"host\":{\"NetworkID\":\"h\"}}}},"
		"{\"Id\":\"b\",\"Names\":[\"/b\"],\"HostConfig\":{\"NetworkMode\":\"z\"},"
		"\"NetworkSettings\":{\"Networks\":{\"z\":{\"IPAddress\":\"1.1.1.1\"},"
		"\"gone\":null,\"y\":{\"IPAddress\":\"fd00::2\"}}}}]");
	expect(containers_lack_network(&w.containers));
	expect_str(targets(&w),
		   "__address__=localhost,container_id=a,container_name=/a,"
		   "container_network_mode=host\n"
		   "__address__=[fd00::2]:80,container_id=b,container_name=/b,"
		   "container_network_mode=z,network_ip=fd00::2\n");
	end(&w);
	begin(&w);
	w.containers.options.first_network = false;
	w.containers.options.without_network = true;
	all_are(&w, "[{\"Id\":\"b\",\"Names\":[\"/b\"],\"NetworkSettings\":{\"Networks\":"
		    "{\"z\":{\"IPAddress\":\"1.1.1.1\"},\"y\":{\"IPAddress\":\"2.2.2.2\"}}}},"
		    "{\"Id\":\"c\",\"Names\":[\"/c\"]}]");
	expect_str(targets(&w),
		   "__address__=2.2.2.2:80,container_id=b,container_name=/b,network_ip=2.2.2.2\n"
		   "__address__=1.1.1.1:80,container_id=b,container_name=/b,network_ip=1.1.1.1\n"
		   "container_id=c,container_name=/c\n");
	end(&w);
}

/* One in the network of another has its addresses, as long as that one is there. */
TEST(a_shared_network_is_the_owners)
{
	struct world w;

	begin(&w);
	all_are(&w, "[" SIDE "]");
	expect_str(targets(&w), "");
	all_are(&w, "[" SIDE "," WEB "]");
	expect(str_search(targets(&w),
			  STR("__address__=10.0.0.2:80,container_id=bb,container_name=/side")) <
	       w.text.n);
	containers_remove(&w.containers, STR("aa"));
	expect_str(targets(&w), "");
	expect_eq(w.changes[TARGET_REMOVED], 3);
	/* In a circle there is no network. */
	all_are(&w, "[{\"Id\":\"a\",\"Names\":[\"/a\"],\"HostConfig\":{\"NetworkMode\":"
		    "\"container:a\"}}]");
	expect_str(targets(&w), "");
	end(&w);
}

/* Only what changed is sent; a slot is used again. */
TEST(only_changes_are_sent)
{
	struct world w;

	begin(&w);
	all_are(&w, "[" WEB "," SIDE "]");
	targets(&w);
	expect_eq(w.changes[TARGET_ADDED], 3);
	all_are(&w, "[" SIDE "," WEB "]");
	targets(&w);
	expect_eq(w.changes[TARGET_ADDED] + w.changes[TARGET_CHANGED] + w.changes[TARGET_REMOVED],
		  0);
	all_are(&w, "[]");
	targets(&w);
	expect_eq(w.changes[TARGET_REMOVED], 3);
	expect_eq(w.containers.n, 0);
	for (int i = 0; i < 10; i++) {
		all_are(&w, i % 2 ? "[]" : "[" WEB "]");
		targets(&w);
	}
	expect(w.containers.slots.n <= 2);
	end(&w);
}

/* What is no list is refused with a text; what has other types than it should is left out. */
TEST(damaged_lists_are_refused)
{
	static const char *const bad[] = {"", "<html>", "{}", "[", "[{\"Id\":}]", "null"};
	struct container_list list = {0};
	struct network_list networks = {0};
	struct error err = ERROR_NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		expect_eq(container_list_parse(str_of(bad[i]), &list, &err), -EINVAL);
		expect_eq(network_list_parse(str_of(bad[i]), &networks, &err), -EINVAL);
		expect(strstr(err.text, "networks"));
	}
	expect_eq(container_list_parse(
			  STR("[1,null,{},{\"Id\":7,\"Names\":[\"/a\"]},{\"Id\":\"x\"},"
			      "{\"Id\":\"a\",\"Names\":[\"/a\"],\"Labels\":[],\"Ports\":{},"
			      "\"HostConfig\":3,\"NetworkSettings\":{\"Networks\":[1]}},"
			      "{\"Id\":\"b\",\"Names\":[\"/b\"],\"Labels\":{\"x\":{}},\"Ports\":"
			      "[1,{\"Type\":\"tcp\",\"PrivatePort\":99999999}]}]"),
			  &list, &err),
		  0);
	expect_eq(list.all.n, 2);
	expect_eq(list.all.p[1]->n_ports, 1);
	expect_eq(list.all.p[1]->ports[0].inside, 0);
	container_list_free(&list);
}

static int parse_starved(void *context)
{
	struct container_list list = {0};
	struct target_options options = {.port = 80, .host_networking_host = STR("localhost")};
	const struct andiron_targets *update = NULL;
	struct containers c = {0};
	int r = containers_init(&c, 1, &options);

	if (r == 0)
		r = container_list_parse(STR("[" WEB "," SIDE "]"), &list, NULL);
	if (r == 0)
		r = containers_replace(&c, &list);
	if (r == 0)
		r = containers_flush(&c, &update);
	if (update)
		update->release(update->owner);
	containers_fini(&c);
	return r == -EINVAL ? -ENOMEM : r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(parse_starved, NULL);
}

static void tell(void *context, const struct event *e)
{
	buf_printf(context, "%.*s %.*s %.*s %.*s\n", STR_FMT(e->type), STR_FMT(e->action),
		   STR_FMT(e->id), STR_FMT(e->container));
}

/* Events are whole lines, however they were cut. */
TEST(events_are_lines)
{
	static const char text[] =
		"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"aa\"}}\n\n"
		"{\"Type\":\"network\",\"Action\":\"connect\",\"Actor\":{\"ID\":\"n\","
		"\"Attributes\":{\"container\":\"bb\"}}}\r\n{\"Type\":1}\n{\"half\"";

	for (size_t cut = 1; cut < sizeof(text); cut++) {
		struct events e = {0};
		struct buf out = BUF_NULL;
		struct str rest = {text, sizeof(text) - 1};

		events_begin(&e);
		for (; rest.n; rest = str_skip(rest, cut))
			expect(events_feed(&e, str_first(rest, cut), tell, &out));
		expect_str(buf_str(&out), "container start aa \nnetwork connect n bb\n   \n");
		buf_free(&out);
		events_fini(&e);
	}
}

/* What is no event ends the stream, as does a line without an end. */
TEST(damaged_events_end_the_stream)
{
	static const char *const bad[] = {"x\n", "[]\n", "{\n", "1\n"};
	struct events e = {0};
	struct buf out = BUF_NULL;
	char *piece = calloc(1, 4096);
	int n = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		events_begin(&e);
		expect(!events_feed(&e, str_of(bad[i]), tell, &out));
	}
	expect(piece);
	memset(piece, '{', 4096);
	events_begin(&e);
	while (events_feed(&e, (struct str){piece, 4096}, tell, &out))
		expect(++n < 1000);
	expect_eq(out.n, 0);
	free(piece);
	buf_free(&out);
	events_fini(&e);
}

static const struct andiron_value no_args = {.kind = ANDIRON_VALUE_MAP};

static int init(struct settings *s, const char *host, struct error *err)
{
	struct andiron_str key = {"host", 4};
	struct andiron_value value = {.kind = ANDIRON_VALUE_STRING,
				      .string = {host, strlen(host)}};
	struct andiron_value args = no_args;

	args.keys = &key;
	args.items = &value;
	args.n_items = 1;
	return settings_init(s, &args, err);
}

/* How an engine is reached by what people write. */
TEST(hosts_are_urls_and_sockets)
{
	static const struct {
		const char *host, *base, *socket;
	} rows[] = {
		{"unix:///var/run/docker.sock", "http://localhost", "/var/run/docker.sock"},
		{"tcp://10.0.0.1:2375", "http://10.0.0.1:2375", ""},
		{"https://docker.example:2376/", "https://docker.example:2376", ""},
	};
	static const char *const bad[] = {"", "unix://", "unix://run/docker.sock", "tcp://",
					  "/var/run/docker.sock", "npipe:////./pipe/docker_engine",
					  "http://", "ssh://host"};
	struct error err = ERROR_NULL;
	struct settings s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		expect_eq(init(&s, rows[i].host, &err), 0);
		expect_str(s.base, rows[i].base);
		expect_str(s.http.unix_socket.p ? s.http.unix_socket : STR(""), rows[i].socket);
		expect(s.running && !s.by_id);
		settings_fini(&s);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		expect_eq(init(&s, bad[i], &err), -EINVAL);
		expect(strstr(err.text, "host "));
	}
}

/* One list of values for each filter, the ids among them. */
TEST(filters_are_json)
{
	const struct str ids[] = {STR("aa"), STR("bb")};
	struct settings s = {.base = STR("http://localhost"),
			     .filters = STR("\"label\":[\"a=b\"]")};
	struct buf url = BUF_NULL;

	settings_list_url(&s, &url, "/containers/json", ids, 2);
	expect_str(buf_str(&url), "http://localhost/containers/json?filters="
				  "%7B%22label%22%3A%5B%22a%3Db%22%5D%2C%22id%22%3A%5B%22aa%22%2C"
				  "%22bb%22%5D%7D");
	buf_clear(&url);
	s.filters = STR("");
	settings_list_url(&s, &url, "/containers/json", NULL, 0);
	expect_str(buf_str(&url), "http://localhost/containers/json?filters=%7B%7D");
	buf_free(&url);
}
