/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of whole configurations, word by word. */
#include "host/lang/tests/test-lang.h"

/* The two files that people have. */
TEST(files_for_alloy)
{
	expect_plan("pyroscope.ebpf \"instance\" {\n"
		    "  forward_to     = [pyroscope.write.endpoint.receiver]\n"
		    "  targets_only   = false\n"
		    "  default_target = {\"service_name\" = \"unspecified\"}\n"
		    "  demangle       = \"none\"\n"
		    "  sample_rate    = 97   // Hz - samples per second\n"
		    "}\n"
		    "\n"
		    "pyroscope.write \"endpoint\" {\n"
		    "  endpoint {\n"
		    "    url = \"http://pyroscope:4040\"\n"
		    "  }\n"
		    "}\n",
		    "node pyroscope.ebpf.instance: {forward_to=[<pyroscope.write.endpoint>] "
		    "targets_only=false default_target={service_name=\"unspecified\"} "
		    "demangle=\"none\" sample_rate=97 collect_interval=15000000000*}\n"
		    "node profile.symbolize implicit: {forward_to=[]* lines=false*}\n"
		    "node pyroscope.write.endpoint: {endpoint=[{url=\"http://pyroscope:4040\" "
		    "remote_timeout=10000000000*}]}\n"
		    "edge profile.symbolize.forward_to → pyroscope.write.endpoint.receiver #0\n"
		    "edge pyroscope.ebpf.instance.forward_to → profile.symbolize.receiver #0\n");
	expect_plan(
		"discovery.kubernetes \"pods\" {\n"
		"  role = \"pod\"\n"
		"}\n"
		"discovery.relabel \"pods\" {\n"
		"  targets = discovery.kubernetes.pods.targets\n"
		"  rule {\n"
		"    source_labels = [\"__meta_kubernetes_namespace\"]\n"
		"    target_label  = \"namespace\"\n"
		"  }\n"
		"  rule {\n"
		"    source_labels = [\"__meta_kubernetes_pod_name\"]\n"
		"    target_label  = \"pod\"\n"
		"  }\n"
		"  rule {\n"
		"    source_labels = [\"__meta_kubernetes_pod_container_name\"]\n"
		"    target_label  = \"container\"\n"
		"  }\n"
		"}\n"
		"pyroscope.ebpf \"instance\" {\n"
		"  forward_to       = [pyroscope.write.endpoint.receiver]\n"
		"  targets          = discovery.relabel.pods.output\n"
		"  default_target   = \"false\"\n"
		"  collect_interval = \"15s\"\n"
		"  sample_rate      = 19\n"
		"}\n"
		"pyroscope.write \"endpoint\" {\n"
		"  endpoint {\n"
		"    url = \"http://pyroscope.monitoring.svc.cluster.local:4040\"\n"
		"  }\n"
		"  external_labels = {\n"
		"    \"cluster\" = \"prod-eu-west-1\",\n"
		"  }\n"
		"}\n",
		"f:22:22: warning: default_target is a map of labels; the string is ignored\n"
		"   22 |   default_target   = \"false\"\n"
		"      |                      ^~~~~~~\n"
		"node discovery.kubernetes.pods: {role=\"pod\"}\n"
		"node discovery.relabel.pods: "
		"{rule=[{source_labels=[\"__meta_kubernetes_namespace\"] "
		"target_label=\"namespace\" action=\"replace\"*} "
		"{source_labels=[\"__meta_kubernetes_pod_name\"] target_label=\"pod\" "
		"action=\"replace\"*} {source_labels=[\"__meta_kubernetes_pod_container_name\"] "
		"target_label=\"container\" action=\"replace\"*}]}\n"
		"node pyroscope.ebpf.instance: {forward_to=[<pyroscope.write.endpoint>] "
		"default_target=\"false\" collect_interval=15000000000 sample_rate=19 "
		"targets_only=true* demangle=\"none\"*}\n"
		"node profile.symbolize implicit: {forward_to=[]* lines=false*}\n"
		"node pyroscope.write.endpoint: "
		"{endpoint=[{url=\"http://pyroscope.monitoring.svc.cluster.local:4040\" "
		"remote_timeout=10000000000*}] external_labels={cluster=\"prod-eu-west-1\"}}\n"
		"edge discovery.kubernetes.pods.targets → discovery.relabel.pods.targets #0\n"
		"edge profile.symbolize.forward_to → pyroscope.write.endpoint.receiver #0\n"
		"edge discovery.relabel.pods.output → pyroscope.ebpf.instance.targets #0\n"
		"edge pyroscope.ebpf.instance.forward_to → profile.symbolize.receiver #0\n");
}

TEST(labels)
{
	expect_plan("pyroscope.write {}", "f:1:1: error: pyroscope.write needs a label\n"
					  "    1 | pyroscope.write {}\n"
					  "      | ^~~~~~~~~~~~~~~\n"
					  "  write pyroscope.write \"NAME\" { … }\n");
	expect_plan("pyroscope.write \"\" {}", "f:1:17: error: pyroscope.write needs a label\n"
					       "    1 | pyroscope.write \"\" {}\n"
					       "      |                 ^~\n"
					       "  write pyroscope.write \"NAME\" { … }\n");
	expect_plan("test.single {}", "node test.single: {}\n");
	expect_plan("test.single \"a\" {}", "f:1:13: error: test.single takes no label\n"
					    "    1 | test.single \"a\" {}\n"
					    "      |             ^~~\n");
	expect_plan("test.single {}\n"
		    "test.single {}",
		    "f:2:1: error: test.single is defined twice\n"
		    "    2 | test.single {}\n"
		    "      | ^~~~~~~~~~~\n"
		    "  it stands at f:1:1 already\n");
	expect_plan("raw.write \"a\" {}\n"
		    "test.any \"a\" {}\n"
		    "raw.write \"a\" {}",
		    "f:3:1: error: raw.write.a is defined twice\n"
		    "    3 | raw.write \"a\" {}\n"
		    "      | ^~~~~~~~~\n"
		    "  it stands at f:1:1 already\n");
}

#define SEARCHED                                                                                   \
	"  looked for plugins in\n"                                                                \
	"  /plugins\n"                                                                             \
	"  /elsewhere (does not exist)\n"                                                          \
	"  /plugins/andiron-half.so was refused: the file is cut off\n"

TEST(refuses_what_is_no_component)
{
	expect_plan("x = 1", "f:1:1: error: the argument x cannot stand at the top of a file\n"
			     "    1 | x = 1\n"
			     "      | ^\n"
			     "  arguments stand inside a component's { }\n");
	expect_plan("pyroscope.wirte \"a\" {}",
		    "f:1:1: error: there is no component \"pyroscope.wirte\"\n"
		    "    1 | pyroscope.wirte \"a\" {}\n"
		    "      | ^~~~~~~~~~~~~~~\n"
		    "  did you mean \"pyroscope.write\"?\n" SEARCHED);
	expect_plan("otelcol.exporter.otlp \"a\" {}",
		    "f:1:1: error: otelcol.exporter.otlp is for metrics, logs and traces; andiron "
		    "takes profiles\n"
		    "    1 | otelcol.exporter.otlp \"a\" {}\n"
		    "      | ^~~~~~~~~~~~~~~~~~~~~\n"
		    "  leave it in a file of Alloy's; the blocks for profiles, with all that they "
		    "name, go into a file of andiron's\n");
	expect_plan("discovery.consul \"a\" {}",
		    "f:1:1: error: there is no component \"discovery.consul\"\n"
		    "    1 | discovery.consul \"a\" {}\n"
		    "      | ^~~~~~~~~~~~~~~~\n"
		    "  a program of yours can give discovery.http or discovery.file the targets of "
		    "a source that andiron does not ask\n" SEARCHED);
}

/* How a file of several signals is split is said once, not at each of its blocks. */
TEST(says_once_how_to_split)
{
	expect_plan("loki.write \"a\" {}\n"
		    "loki.write \"b\" {}\n",
		    "f:1:1: error: loki.write is for logs; andiron takes profiles\n"
		    "    1 | loki.write \"a\" {}\n"
		    "      | ^~~~~~~~~~\n"
		    "  leave it in a file of Alloy's; the blocks for profiles, with all that they "
		    "name, go into a file of andiron's\n"
		    "f:2:1: error: loki.write is for logs; andiron takes profiles\n"
		    "    2 | loki.write \"b\" {}\n"
		    "      | ^~~~~~~~~~\n");
}

/* Who refers to a block that was refused is not to blame. */
TEST(is_not_told_twice)
{
	expect_plan("pyroscope.wirte \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [pyroscope.wirte.w.receiver]\n"
		    "}\n",
		    "f:1:1: error: there is no component \"pyroscope.wirte\"\n"
		    "    1 | pyroscope.wirte \"w\" {}\n"
		    "      | ^~~~~~~~~~~~~~~\n"
		    "  did you mean \"pyroscope.write\"?\n" SEARCHED);
}

/* What Alloy has and andiron has not is accepted, and said. */
TEST(accepts_settings_of_alloy)
{
	expect_plan("tracing {}\n"
		    "http { tls {} }\n"
		    "remotecfg { url = \"http://x\" }\n"
		    "livedebugging {}\n"
		    "raw.write \"a\" {}",
		    "f:1:1: warning: the block tracing has no effect here\n"
		    "    1 | tracing {}\n"
		    "      | ^~~~~~~\n"
		    "  andiron does not trace itself\n"
		    "f:2:1: warning: the block http has no effect here: nothing listens\n"
		    "    2 | http { tls {} }\n"
		    "      | ^~~~\n"
		    "  start with --server.http.listen-addr, or write the block status.http\n"
		    "f:3:1: warning: the block remotecfg has no effect here\n"
		    "    3 | remotecfg { url = \"http://x\" }\n"
		    "      | ^~~~~~~~~\n"
		    "  the configuration comes from these files alone; with --watch a change of "
		    "theirs is taken\n"
		    "f:4:1: warning: the block livedebugging has no effect here\n"
		    "    4 | livedebugging {}\n"
		    "      | ^~~~~~~~~~~~~\n"
		    "  what each component does is always to be seen: start with --status PATH and "
		    "ask for /targets and /health\n"
		    "node raw.write.a: {}\n");
}

/* The block logging is part of the plan, and its words are looked at. */
TEST(obeys_the_block_logging)
{
	expect_plan("logging {\n  level = string.to_lower(\"DEBUG\")\n  format = \"json\"\n"
		    "  destination = \"stderr\"\n}\n"
		    "raw.write \"a\" {}",
		    "logging level=debug format=json\nnode raw.write.a: {}\n");
	expect_plan("logging {}\nraw.write \"a\" {}", "node raw.write.a: {}\n");
	expect_plan("logging { format = \"logfmt\" }\nraw.write \"a\" {}",
		    "logging level=- format=logfmt\nnode raw.write.a: {}\n");
	expect_plan("logging {\n  level = \"wran\"\n  format = \"text\"\n  levle = 1\n}\n"
		    "raw.write \"a\" {}",
		    "f:2:11: error: level cannot be \"wran\"\n"
		    "    2 |   level = \"wran\"\n"
		    "      |           ^~~~~~\n"
		    "  did you mean \"warn\"?\n"
		    "f:3:12: error: format cannot be \"text\"\n"
		    "    3 |   format = \"text\"\n"
		    "      |            ^~~~~~\n"
		    "  one of \"logfmt\", \"json\"\n"
		    "f:4:3: error: logging has no argument \"levle\"\n"
		    "    4 |   levle = 1\n"
		    "      |   ^~~~~\n"
		    "  did you mean \"level\"?\n");
	expect_plan("logging { write_to = [] }\nraw.write \"a\" {}",
		    "f:1:11: warning: argument write_to is accepted but ignored\n"
		    "    1 | logging { write_to = [] }\n"
		    "      |           ^~~~~~~~\n"
		    "  andiron writes its log to standard error alone\n"
		    "node raw.write.a: {}\n");
}

/* As in Alloy each stands once, at the top, without a label. */
TEST(settings_stand_once_and_at_the_top)
{
	expect_plan("logging {}\nraw.write \"a\" {}\nlogging {}\n",
		    "f:3:1: error: logging is defined twice\n"
		    "    3 | logging {}\n"
		    "      | ^~~~~~~\n"
		    "  it stands at f:1:1 already\n");
	expect_plan("logging \"x\" {}\nraw.write \"a\" {}",
		    "f:1:9: error: logging takes no label\n"
		    "    1 | logging \"x\" {}\n"
		    "      |         ^~~\n");
	expect_plan("declare \"d\" {\n  http {}\n}\nd \"e\" {}\nraw.write \"a\" {}",
		    "f:2:3: error: the block http stands at the top of a file only\n"
		    "    2 |   http {}\n"
		    "      |   ^~~~\n"
		    "  it is about the whole agent\n");
	expect_plan("logging { level = }\nraw.write \"a\" {}",
		    "f:1:19: error: expected a value, not }\n"
		    "    1 | logging { level = }\n"
		    "      |                   ^\n");
}

/* The block http is about the listener, whichever stands first, and says no more than Alloy's. */
TEST(http_is_about_the_listener)
{
	expect_plan("http {\n  tls {}\n}\nstatus.http {\n  auth {}\n  port = 1\n}\n",
		    "node status.http: {auth={} port=1 tls={}}\n");
	expect_plan("status.http {}\nhttp {}\n",
		    "node status.http: {}\n");
	expect_plan("status.http {\n  tls {}\n}\nhttp {\n  tls {}\n  tsl {}\n  port = 1\n}\n",
		    "f:5:3: error: block tls is given twice\n"
		    "    5 |   tls {}\n"
		    "      |   ^~~\n"
		    "f:6:3: error: http has no block \"tsl\"\n"
		    "    6 |   tsl {}\n"
		    "      |   ^~~\n"
		    "f:7:3: error: http has no argument \"port\"\n"
		    "    7 |   port = 1\n"
		    "      |   ^~~~\n");
}

/* A path that is relative, empty or not written is in the storage, under the component's id. */
TEST(puts_paths_into_the_storage)
{
	static const char components[] =
		"declare \"d\" {\n  test.spool \"in\" { spool {} }\n}\n"
		"test.spool \"a\" { spool {} }\n"
		"test.spool \"b\" { spool { directory = \"x/y\" } }\n"
		"test.spool \"c\" { spool { directory = \"/z\" } }\n"
		"test.spool \"e\" { spool { directory = \"\" } }\n"
		"test.spool \"f\" {}\n"
		"d \"g\" {}\n";
	char text[1000];

	snprintf(text, sizeof(text), "%sstorage { path = \"/var/lib/\" + \"andiron//\" }\n",
		 components);
	expect_plan(text,
		    "node test.spool.a: {spool={directory=\"/var/lib/andiron/test.spool.a\"*}}\n"
		    "node test.spool.b: {spool={directory=\"/var/lib/andiron/x/y\"}}\n"
		    "node test.spool.c: {spool={directory=\"/z\"}}\n"
		    "node test.spool.e: {spool={directory=\"/var/lib/andiron/test.spool.e\"}}\n"
		    "node test.spool.f: {}\n"
		    "node d.g/test.spool.in: {spool={directory="
		    "\"/var/lib/andiron/d.g+test.spool.in\"*}}\n");
	expect_plan("test.spool \"a\" { spool {} }\n",
		    "f:1:18: error: spool in test.spool needs the argument directory\n"
		    "    1 | test.spool \"a\" { spool {} }\n"
		    "      |                  ^~~~~\n");
	expect_plan("test.spool \"a\" { spool { directory = \"x\" } }\n",
		    "node test.spool.a: {spool={directory=\"x\"}}\n");
	expect_plan("storage { path = \"data\" }\ntest.spool \"a\" { spool {} }\n",
		    "f:1:1: error: storage: the path \"data\" is not absolute\n"
		    "    1 | storage { path = \"data\" }\n"
		    "      | ^~~~~~~\n"
		    "f:2:18: error: spool in test.spool needs the argument directory\n"
		    "    2 | test.spool \"a\" { spool {} }\n"
		    "      |                  ^~~~~\n");
	expect_plan("declare \"storage\" {\n  raw.write \"w\" {}\n}\nstorage \"x\" {}\n",
		    "node storage.x/raw.write.w: {}\n");
	expect_plan("storage {}\ntest.spool \"a\" {}\n",
		    "f:1:1: error: storage needs the argument path\n"
		    "    1 | storage {}\n"
		    "      | ^~~~~~~\n"
		    "  The directory in which components keep what outlives the agent, "
		    "absolute.\n");
}

TEST(refuses_circles)
{
	expect_plan(
		"discovery.relabel \"a\" {\n"
		"  targets = discovery.relabel.b.output\n"
		"}\n"
		"discovery.relabel \"b\" {\n"
		"  targets = discovery.relabel.c.output\n"
		"}\n"
		"discovery.relabel \"c\" {\n"
		"  targets = discovery.relabel.a.output\n"
		"}\n"
		"pyroscope.relabel \"x\" { forward_to = [pyroscope.relabel.y.receiver] }\n"
		"pyroscope.relabel \"y\" { forward_to = [pyroscope.relabel.x.receiver, "
		"raw.write.w.receiver] }\n"
		"raw.write \"w\" {}\n",
		"f:2:13: error: these components feed each other in a circle: discovery.relabel.a "
		"→ discovery.relabel.c → discovery.relabel.b → discovery.relabel.a\n"
		"    2 |   targets = discovery.relabel.b.output\n"
		"      |             ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		"  discovery.relabel.a → discovery.relabel.c at f:8:13\n"
		"  discovery.relabel.c → discovery.relabel.b at f:5:13\n"
		"  discovery.relabel.b → discovery.relabel.a at f:2:13\n"
		"f:11:39: error: these components feed each other in a circle: pyroscope.relabel.x "
		"→ pyroscope.relabel.y → pyroscope.relabel.x\n"
		"   11 | pyroscope.relabel \"y\" { forward_to = [pyroscope.relabel.x.receiver, "
		"raw.write.w.receiver] }\n"
		"      |                                       ^~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		"  pyroscope.relabel.x → pyroscope.relabel.y at f:10:39\n"
		"  pyroscope.relabel.y → pyroscope.relabel.x at f:11:39\n");
	expect_plan("discovery.relabel \"a\" {\n"
		    "  targets = discovery.relabel.a.output\n"
		    "}",
		    "f:2:13: error: discovery.relabel.a refers to itself\n"
		    "    2 |   targets = discovery.relabel.a.output\n"
		    "      |             ^~~~~~~~~~~~~~~~~~~~~~~~~~\n");
	expect_plan("test.both \"a\" {\n"
		    "  targets = test.both.b.targets\n"
		    "  forward_to = [test.both.b.receiver]\n"
		    "}\n"
		    "test.both \"b\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "}\n"
		    "raw.write \"w\" {}\n",
		    "f:2:13: error: these components feed each other in a circle: test.both.a → "
		    "test.both.b → test.both.a\n"
		    "    2 |   targets = test.both.b.targets\n"
		    "      |             ^~~~~~~~~~~~~~~~~~~\n"
		    "  test.both.a → test.both.b at f:3:17\n"
		    "  test.both.b → test.both.a at f:2:13\n");
}

TEST(joins_targets)
{
	expect_plan("discovery.relabel \"r\" {\n"
		    "  targets = array.concat(discovery.kubernetes.k.targets, [{a = \"1\"}], "
		    "array.concat(test.single.targets, [{b = 2}, {}]))\n"
		    "}\n"
		    "test.single {}\n"
		    "discovery.kubernetes \"k\" {\n"
		    "  role = \"pod\"\n"
		    "}\n",
		    "node test.single: {}\n"
		    "node discovery.kubernetes.k: {role=\"pod\"}\n"
		    "node discovery.relabel.r: {rule=[]*}\n"
		    "edge discovery.kubernetes.k.targets → discovery.relabel.r.targets #0\n"
		    "edge test.single.targets → discovery.relabel.r.targets #2\n"
		    "literal → discovery.relabel.r.targets #1: [{a=\"1\"}]\n"
		    "literal → discovery.relabel.r.targets #3: [{b=\"2\"} {}]\n");
	expect_plan("discovery.relabel \"r\" {\n"
		    "  targets = concat([{a = \"1\"}], [{b = \"2\"}])\n"
		    "}",
		    "f:2:13: warning: concat is deprecated; write array.concat\n"
		    "    2 |   targets = concat([{a = \"1\"}], [{b = \"2\"}])\n"
		    "      |             ^~~~~~\n"
		    "node discovery.relabel.r: {rule=[]*}\n"
		    "literal → discovery.relabel.r.targets #0: [{a=\"1\"} {b=\"2\"}]\n");
	expect_plan("discovery.relabel \"r\" {\n"
		    "  targets = []\n"
		    "}",
		    "node discovery.relabel.r: {rule=[]*}\n");
	expect_plan("discovery.process \"p\" {\n"
		    "  join = discovery.kubernetes.k.targets\n"
		    "}\n"
		    "discovery.kubernetes \"k\" {\n"
		    "  role = \"pod\"\n"
		    "}",
		    "node discovery.kubernetes.k: {role=\"pod\"}\n"
		    "node discovery.process.p: {refresh_interval=60000000000* "
		    "discover_config={exe=true* cwd=true*}*}\n"
		    "node andiron.events implicit: {}\n"
		    "node andiron.clock implicit: {}\n"
		    "edge discovery.kubernetes.k.targets → discovery.process.p.join #0\n");
}

/* Before those who want names, and only these; also behind what passes raw batches on. */
TEST(puts_a_symbolizer_in)
{
	expect_plan("pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.r.receiver, pyroscope.write.w.receiver, "
		    "pyroscope.relabel.p.receiver]\n"
		    "}\n"
		    "raw.write \"r\" {}\n"
		    "pyroscope.write \"w\" {}\n"
		    "pyroscope.relabel \"p\" {\n"
		    "  forward_to = [pyroscope.write.v.receiver]\n"
		    "}\n"
		    "pyroscope.write \"v\" {}\n",
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.r> <pyroscope.write.w> "
		    "<pyroscope.relabel.p>] targets_only=true* demangle=\"none\"* sample_rate=19* "
		    "collect_interval=15000000000*}\n"
		    "node raw.write.r: {}\n"
		    "node pyroscope.relabel.p: {forward_to=[<pyroscope.write.v>] lines=false*}\n"
		    "node profile.symbolize implicit: {forward_to=[]* lines=false*}\n"
		    "node pyroscope.write.w: {endpoint=[]*}\n"
		    "node profile.symbolize/2 implicit: {forward_to=[]* lines=false*}\n"
		    "node pyroscope.write.v: {endpoint=[]*}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.r.receiver #0\n"
		    "edge profile.symbolize.forward_to → pyroscope.write.w.receiver #1\n"
		    "edge pyroscope.ebpf.e.forward_to → pyroscope.relabel.p.receiver #2\n"
		    "edge profile.symbolize/2.forward_to → pyroscope.write.v.receiver #0\n"
		    "edge pyroscope.ebpf.e.forward_to → profile.symbolize.receiver #1\n"
		    "edge pyroscope.relabel.p.forward_to → profile.symbolize/2.receiver #0\n");
	expect_plan("pyroscope.ebpf \"a\" {\n"
		    "  forward_to = [pyroscope.write.w.receiver]\n"
		    "}\n"
		    "pyroscope.ebpf \"b\" {\n"
		    "  forward_to = [pyroscope.write.w.receiver]\n"
		    "}\n"
		    "pyroscope.write \"w\" {}\n"
		    "profile.symbolize \"s\" {\n"
		    "  lines = true\n"
		    "}\n",
		    "node pyroscope.ebpf.a: {forward_to=[<pyroscope.write.w>] targets_only=true* "
		    "demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		    "node pyroscope.ebpf.b: {forward_to=[<pyroscope.write.w>] targets_only=true* "
		    "demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		    "node profile.symbolize.s implicit: {lines=true forward_to=[]*}\n"
		    "node pyroscope.write.w: {endpoint=[]*}\n"
		    "edge profile.symbolize.s.forward_to → pyroscope.write.w.receiver #0\n"
		    "edge pyroscope.ebpf.a.forward_to → profile.symbolize.s.receiver #0\n"
		    "edge pyroscope.ebpf.b.forward_to → profile.symbolize.s.receiver #0\n");
	expect_plan("pyroscope.ebpf \"a\" {\n"
		    "  forward_to = [pyroscope.write.v.receiver]\n"
		    "}\n"
		    "pyroscope.ebpf \"b\" {\n"
		    "  forward_to = [pyroscope.write.w.receiver]\n"
		    "}\n"
		    "pyroscope.write \"v\" {}\n"
		    "pyroscope.write \"w\" {}\n"
		    "profile.symbolize \"s\" {\n"
		    "  lines = true\n"
		    "}\n",
		    "node pyroscope.ebpf.a: {forward_to=[<pyroscope.write.v>] targets_only=true* "
		    "demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		    "node pyroscope.ebpf.b: {forward_to=[<pyroscope.write.w>] targets_only=true* "
		    "demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		    "node profile.symbolize.s implicit: {lines=true forward_to=[]*}\n"
		    "node pyroscope.write.v: {endpoint=[]*}\n"
		    "node profile.symbolize implicit: {lines=true forward_to=[]*}\n"
		    "node pyroscope.write.w: {endpoint=[]*}\n"
		    "edge profile.symbolize.s.forward_to → pyroscope.write.v.receiver #0\n"
		    "edge profile.symbolize.forward_to → pyroscope.write.w.receiver #0\n"
		    "edge pyroscope.ebpf.a.forward_to → profile.symbolize.s.receiver #0\n"
		    "edge pyroscope.ebpf.b.forward_to → profile.symbolize.receiver #0\n");
}

TEST(a_symbolizer_on_the_path_is_a_node)
{
	expect_plan("pyroscope.ebpf \"a\" {\n"
		    "  forward_to = [profile.symbolize.s.receiver]\n"
		    "}\n"
		    "profile.symbolize \"s\" {\n"
		    "  forward_to = [pyroscope.write.w.receiver]\n"
		    "  lines = true\n"
		    "}\n"
		    "pyroscope.write \"w\" {}\n",
		    "node pyroscope.ebpf.a: {forward_to=[<profile.symbolize.s>] targets_only=true* "
		    "demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		    "node profile.symbolize.s: {forward_to=[<pyroscope.write.w>] lines=true}\n"
		    "node pyroscope.write.w: {endpoint=[]*}\n"
		    "edge pyroscope.ebpf.a.forward_to → profile.symbolize.s.receiver #0\n"
		    "edge profile.symbolize.s.forward_to → pyroscope.write.w.receiver #0\n");
	expect_plan(
		"pyroscope.ebpf \"a\" {\n"
		"  forward_to = [profile.symbolize.s.receiver]\n"
		"}\n"
		"pyroscope.ebpf \"b\" {\n"
		"  forward_to = [pyroscope.write.w.receiver]\n"
		"}\n"
		"profile.symbolize \"s\" {\n"
		"  forward_to = [pyroscope.write.w.receiver]\n"
		"  lines = true\n"
		"}\n"
		"pyroscope.write \"w\" {}\n",
		"node pyroscope.ebpf.a: {forward_to=[<profile.symbolize.s>] targets_only=true* "
		"demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		"node pyroscope.ebpf.b: {forward_to=[<pyroscope.write.w>] targets_only=true* "
		"demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		"node profile.symbolize.s: {forward_to=[<pyroscope.write.w>] lines=true}\n"
		"node profile.symbolize implicit: {forward_to=[<pyroscope.write.w>] lines=true}\n"
		"node pyroscope.write.w: {endpoint=[]*}\n"
		"edge pyroscope.ebpf.a.forward_to → profile.symbolize.s.receiver #0\n"
		"edge profile.symbolize.forward_to → pyroscope.write.w.receiver #0\n"
		"edge profile.symbolize.s.forward_to → pyroscope.write.w.receiver #0\n"
		"edge pyroscope.ebpf.b.forward_to → profile.symbolize.receiver #0\n");
}

TEST(a_symbolizer_that_is_fed_by_name_needs_receivers)
{
	expect_plan("pyroscope.ebpf \"a\" {\n"
		    "  forward_to = [profile.symbolize.s.receiver]\n"
		    "}\n"
		    "profile.symbolize \"s\" {}\n",
		    "f:4:1: error: profile.symbolize.s gets profiles, so it needs the argument "
		    "forward_to\n"
		    "    4 | profile.symbolize \"s\" {}\n"
		    "      | ^~~~~~~~~~~~~~~~~\n");
}

/* What nobody registered offers is left to the host. */
TEST(makes_services)
{
	expect_plan("discovery.process \"a\" {}\n"
		    "discovery.process \"b\" {}\n",
		    "node discovery.process.a: {refresh_interval=60000000000* "
		    "discover_config={exe=true* cwd=true*}*}\n"
		    "node discovery.process.b: {refresh_interval=60000000000* "
		    "discover_config={exe=true* cwd=true*}*}\n"
		    "node andiron.events implicit: {}\n"
		    "node andiron.clock implicit: {}\n");
}

/* All that offer what begins so are made, and nobody is no error. */
TEST(makes_services_that_are_wanted)
{
	expect_plan("test.wanting \"a\" {}\n", "node test.wanting.a: {}\n"
					       "node andiron.events implicit: {}\n"
					       "node andiron.clock implicit: {}\n");
}

TEST(warns_of_profiles_for_nobody)
{
	expect_plan("pyroscope.ebpf \"e\" {\n"
		    "  forward_to = []\n"
		    "}\n"
		    "profile.symbolize \"s\" {}",
		    "f:1:1: warning: pyroscope.ebpf.e sends its profiles to nobody\n"
		    "    1 | pyroscope.ebpf \"e\" {\n"
		    "      | ^~~~~~~~~~~~~~\n"
		    "  name a writer's receiver in forward_to\n"
		    "node pyroscope.ebpf.e: {forward_to=[] targets_only=true* demangle=\"none\"* "
		    "sample_rate=19* collect_interval=15000000000*}\n"
		    "node profile.symbolize.s: {forward_to=[]* lines=false*}\n");
}

TEST(takes_findings_of_components)
{
	expect_plan("profile.file \"f\" {}", "f:1:1: error: no path\n"
					     "    1 | profile.file \"f\" {}\n"
					     "      | ^~~~~~~~~~~~\n");
}

TEST(needs_something)
{
	expect_plan("", "f: error: holds no components\n"
			"  describe at least one, such as pyroscope.ebpf \"NAME\" { … }\n");
	expect_plan("// nothing\n",
		    "f: error: holds no components\n"
		    "  describe at least one, such as pyroscope.ebpf \"NAME\" { … }\n");
	expect_plan("declare \"a\" {}", ""); /* as Alloy has it */
	expect_plan("logging {}",
		    "f: error: holds no components\n"
		    "  describe at least one, such as pyroscope.ebpf \"NAME\" { … }\n");
}
