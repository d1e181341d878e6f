/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: option tables against bodies, as plan and findings. */
#include "host/lang/tests/test-lang.h"

#include <stdio.h>

/* A block that was left out is absent, unless its default is {}; a repeatable one is an empty list.
 */
TEST(fills_in_defaults)
{
	expect_plan("discovery.process \"p\" {}",
		    "node discovery.process.p: {refresh_interval=60000000000* "
		    "discover_config={exe=true* cwd=true*}*}\n"
		    "node andiron.events implicit: {}\n"
		    "node andiron.clock implicit: {}\n");
	expect_plan("discovery.process \"p\" { discover_config { cwd = false } }",
		    "node discovery.process.p: {discover_config={cwd=false exe=true*} "
		    "refresh_interval=60000000000*}\n"
		    "node andiron.events implicit: {}\n"
		    "node andiron.clock implicit: {}\n");
	expect_plan("pyroscope.write \"w\" {}", "node pyroscope.write.w: {endpoint=[]*}\n");
}

/* Numbers and strings become each other, durations nanoseconds; what is secret says so. */
TEST(converts)
{
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  sample_rate = \"97\"\n"
		    "  collect_interval = \"1m30s\"\n"
		    "}\n",
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w>] sample_rate=97 "
		    "collect_interval=90000000000 targets_only=true* demangle=\"none\"*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  sample_rate = 97.9\n"
		    "}\n",
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w>] sample_rate=97 "
		    "targets_only=true* demangle=\"none\"* collect_interval=15000000000*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  external_labels = {a = 1, b = \"2\", c = 1.25}\n"
		    "}\n",
		    "node pyroscope.write.w: {external_labels={a=\"1\" b=\"2\" c=\"1.25\"} "
		    "endpoint=[]*}\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpoint {\n"
		    "    url = 5\n"
		    "    headers = {a = \"1\", b = [\"2\", 3]}\n"
		    "  }\n"
		    "}\n",
		    "node pyroscope.write.w: {endpoint=[{url=\"5\" headers={a=\"1\"? b=[\"2\"? "
		    "\"3\"?]?}? remote_timeout=10000000000*}]}\n");
	expect_plan("discovery.kubernetes \"k\" {\n"
		    "  role = \"pod\"\n"
		    "  bearer_token = \"x\" + \"y\"\n"
		    "}\n",
		    "node discovery.kubernetes.k: {role=\"pod\" bearer_token=\"xy\"?}\n");
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  default_target = null\n"
		    "  collect_interval = \"1s\"\n"
		    "}\n",
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w>] default_target={} "
		    "collect_interval=1000000000 targets_only=true* demangle=\"none\"* "
		    "sample_rate=19*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
}

/* Alloy's unsigned numbers: exact up to 2^64-1, which a FLOAT is not. Texts of them are, too. */
TEST(unsigned_numbers_are_exact)
{
	static const struct {
		const char *written, *n;
	} cases[] = {
		{"0", "0"},
		{"9223372036854775807", "9223372036854775807"},
		{"9223372036854775808", "-9223372036854775808"},
		{"18446744073709551615", "-1"},
		{"\"18446744073709551615\"", "-1"},
		{"2.0", "2"},
		{"9223372036854775808 + 0", "-9223372036854775808"},
	};
	char source[128], plan[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(source, sizeof(source), "test.count \"c\" {\n  n = %s\n}\n",
			 cases[i].written);
		snprintf(plan, sizeof(plan), "node test.count.c: {n=%s}\n", cases[i].n);
		expect_plan(source, plan);
	}
	expect_plan("test.count \"c\" {\n  text = 18446744073709551615\n}\n",
		    "node test.count.c: {text=\"18446744073709551615\"}\n");
	expect_plan("test.count \"c\" {\n  n = -1\n}\n",
		    "f:2:7: error: n must be a whole number from 0 to 18446744073709551615, not a "
		    "number\n"
		    "    2 |   n = -1\n"
		    "      |       ^~\n");
	expect_plan("test.count \"c\" {\n  n = 18446744073709551616\n}\n",
		    "f:2:7: error: n must be a whole number from 0 to 18446744073709551615, not a "
		    "number\n"
		    "    2 |   n = 18446744073709551616\n"
		    "      |       ^~~~~~~~~~~~~~~~~~~~\n");
}

/* A block's label stands before its members, under a key that no member has; one that wants a label
 * says so where it has none. */
TEST(a_block_has_its_label)
{
	expect_plan("test.count \"c\" {\n"
		    "  named \"one\" { n = 1 }\n"
		    "}\n",
		    "node test.count.c: {named={=\"one\" n=1}}\n");
	expect_plan("test.count \"c\" {\n  named { n = 1 }\n}\n",
		    "f:2:3: error: the block named needs a label\n"
		    "    2 |   named { n = 1 }\n"
		    "      |   ^~~~~\n"
		    "  write named \"NAME\" { … }\n");
}

TEST(refuses_other_types)
{
	expect_plan(
		"raw.write \"w\" {}\n"
		"pyroscope.ebpf \"e\" {\n"
		"  forward_to = [raw.write.w.receiver]\n"
		"  sample_rate = \"many\"\n"
		"  targets_only = \"true\"\n"
		"  collect_interval = 15\n"
		"  demangle = [\"none\"]\n"
		"}\n",
		"f:4:17: error: sample_rate must be a whole number, not a string\n"
		"    4 |   sample_rate = \"many\"\n"
		"      |                 ^~~~~~\n"
		"f:5:18: error: targets_only must be true or false, not a string\n"
		"    5 |   targets_only = \"true\"\n"
		"      |                  ^~~~~~\n"
		"f:6:22: error: collect_interval must be a duration such as \"15s\" or \"1m30s\", "
		"not a number\n"
		"    6 |   collect_interval = 15\n"
		"      |                      ^~\n"
		"f:7:14: error: demangle must be a string, not a list\n"
		"    7 |   demangle = [\"none\"]\n"
		"      |              ^~~~~~~~\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  external_labels = {a = true}\n"
		    "}\n",
		    "f:2:26: error: external_labels must be an object of strings, {\"name\" = "
		    "\"value\"}, but its a is true\n"
		    "    2 |   external_labels = {a = true}\n"
		    "      |                          ^~~~\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  external_labels = [\"a\"]\n"
		    "}\n",
		    "f:2:21: error: external_labels must be an object of strings, {\"name\" = "
		    "\"value\"}, not a list\n"
		    "    2 |   external_labels = [\"a\"]\n"
		    "      |                     ^~~~~\n");
	expect_plan(
		"pyroscope.write \"w\" {\n"
		"  endpoint {\n"
		"    url = \"x\"\n"
		"    headers = {a = {}}\n"
		"  }\n"
		"}\n",
		"f:4:15: error: headers must be an object of strings, or of lists of strings, not "
		"an object\n"
		"    4 |     headers = {a = {}}\n"
		"      |               ^~~~~~~~\n");
	expect_plan(
		"discovery.relabel \"r\" {\n"
		"  targets = [{a = []}]\n"
		"  rule { source_labels = \"a\" }\n"
		"}",
		"f:2:19: error: targets must be a list of targets, each an object of strings, but "
		"its a is a list\n"
		"    2 |   targets = [{a = []}]\n"
		"      |                   ^\n"
		"f:3:26: error: source_labels must be a list of strings, not a string\n"
		"    3 |   rule { source_labels = \"a\" }\n"
		"      |                          ^~~\n");
}

TEST(checks_choices_and_bounds)
{
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  demangle = \"simple\"\n"
		    "  sample_rate = 0\n"
		    "  collect_interval = \"1h\"\n"
		    "}\n",
		    "f:4:14: error: demangle cannot be \"simple\"\n"
		    "    4 |   demangle = \"simple\"\n"
		    "      |              ^~~~~~~~\n"
		    "  one of \"none\", \"simplified\", \"templates\", \"full\"\n"
		    "f:5:17: error: sample_rate must be at least 1\n"
		    "    5 |   sample_rate = 0\n"
		    "      |                 ^\n"
		    "f:6:22: error: collect_interval must be at most 10m\n"
		    "    6 |   collect_interval = \"1h\"\n"
		    "      |                      ^~~~\n");
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  demangle = \"simplifeid\"\n"
		    "  sample_rate = 1001\n"
		    "  collect_interval = \"1us\"\n"
		    "}\n",
		    "f:4:14: error: demangle cannot be \"simplifeid\"\n"
		    "    4 |   demangle = \"simplifeid\"\n"
		    "      |              ^~~~~~~~~~~~\n"
		    "  did you mean \"simplified\"?\n"
		    "f:5:17: error: sample_rate must be at most 1000\n"
		    "    5 |   sample_rate = 1001\n"
		    "      |                 ^~~~\n"
		    "f:6:22: error: collect_interval must be at least 1ms\n"
		    "    6 |   collect_interval = \"1us\"\n"
		    "      |                      ^~~~~\n");
}

/* An export that is a capsule is known by name, and fits where neither targets nor receivers do. */
TEST(capsules_fit_nowhere_else)
{
	expect_plan(
		"discovery.relabel \"r\" { targets = [] }\n"
		"pyroscope.ebpf \"e\" {\n"
		"  forward_to = [discovery.relabel.r.rules]\n"
		"  targets = discovery.relabel.r.rules\n"
		"}\n",
		"f:3:16: error: forward_to must be a list of receivers, "
		"[pyroscope.write.NAME.receiver], but holds rules\n"
		"    3 |   forward_to = [discovery.relabel.r.rules]\n"
		"      |                ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		"f:4:13: error: targets must be a list of targets, each an object of strings, not "
		"rules\n"
		"    4 |   targets = discovery.relabel.r.rules\n"
		"      |             ^~~~~~~~~~~~~~~~~~~~~~~~~\n");
}

TEST(refuses_what_does_not_belong)
{
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpont {}\n"
		    "  external_label = {}\n"
		    "}\n",
		    "f:2:3: error: pyroscope.write has no block \"endpont\"\n"
		    "    2 |   endpont {}\n"
		    "      |   ^~~~~~~\n"
		    "  did you mean \"endpoint\"?\n"
		    "f:3:3: error: pyroscope.write has no argument \"external_label\"\n"
		    "    3 |   external_label = {}\n"
		    "      |   ^~~~~~~~~~~~~~\n"
		    "  did you mean \"external_labels\"?\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  url = \"http://x\"\n"
		    "}\n",
		    "f:2:3: error: pyroscope.write has no argument \"url\"\n"
		    "    2 |   url = \"http://x\"\n"
		    "      |   ^~~\n"
		    "  it stands in the block endpoint\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpoint = \"http://x\"\n"
		    "  external_labels {}\n"
		    "}\n",
		    "f:2:3: error: endpoint is a block of pyroscope.write, not an argument\n"
		    "    2 |   endpoint = \"http://x\"\n"
		    "      |   ^~~~~~~~\n"
		    "  write endpoint { … }\n"
		    "f:3:3: error: external_labels is an argument of pyroscope.write, not a block\n"
		    "    3 |   external_labels {}\n"
		    "      |   ^~~~~~~~~~~~~~~\n"
		    "  write external_labels = …\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  external_labels = {}\n"
		    "  external_labels = {}\n"
		    "}\n",
		    "f:3:3: error: argument external_labels is given twice\n"
		    "    3 |   external_labels = {}\n"
		    "      |   ^~~~~~~~~~~~~~~\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpoint \"x\" {\n"
		    "    url = \"a\"\n"
		    "  }\n"
		    "}\n",
		    "f:2:12: error: the block endpoint takes no label\n"
		    "    2 |   endpoint \"x\" {\n"
		    "      |            ^~~\n");
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpoint {\n"
		    "    remote_timeout = \"1s\"\n"
		    "  }\n"
		    "}\n",
		    "f:2:3: error: endpoint in pyroscope.write needs the argument url\n"
		    "    2 |   endpoint {\n"
		    "      |   ^~~~~~~~\n");
	expect_plan("discovery.process \"p\" {\n"
		    "  discover_config {}\n"
		    "  discover_config {}\n"
		    "}",
		    "f:3:3: error: block discover_config is given twice\n"
		    "    3 |   discover_config {}\n"
		    "      |   ^~~~~~~~~~~~~~~\n");
	expect_plan("pyroscope.ebpf \"e\" {}",
		    "f:1:1: error: pyroscope.ebpf needs the argument forward_to\n"
		    "    1 | pyroscope.ebpf \"e\" {}\n"
		    "      | ^~~~~~~~~~~~~~\n"
		    "  who gets the profiles\n");
}

/* What other agents call otherwise is told ours, where there is that. */
TEST(knows_foreign_names)
{
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpoint {\n"
		    "    url       = \"a\"\n"
		    "    tenant_id = \"b\"\n"
		    "  }\n"
		    "  tenant_id = \"b\"\n"
		    "}\n",
		    "f:4:5: error: endpoint in pyroscope.write has no argument \"tenant_id\"\n"
		    "    4 |     tenant_id = \"b\"\n"
		    "      |     ^~~~~~~~~\n"
		    "  write headers = {\"X-Scope-OrgID\" = \"…\"}\n"
		    "f:6:3: error: pyroscope.write has no argument \"tenant_id\"\n"
		    "    6 |   tenant_id = \"b\"\n"
		    "      |   ^~~~~~~~~\n");
}

TEST(keeps_the_order_of_repeated_blocks)
{
	expect_plan("pyroscope.write \"w\" {\n"
		    "  endpoint {\n"
		    "    url = \"a\"\n"
		    "  }\n"
		    "  external_labels = {}\n"
		    "  endpoint {\n"
		    "    url = \"b\"\n"
		    "  }\n"
		    "}\n",
		    "node pyroscope.write.w: {endpoint=[{url=\"a\" remote_timeout=10000000000*} "
		    "{url=\"b\" remote_timeout=10000000000*}] external_labels={}}\n");
}

TEST(lenient_keeps_what_was_written)
{
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  default_target = \"false\"\n"
		    "}\n",
		    "f:4:20: warning: default_target is a map of labels; the string is ignored\n"
		    "    4 |   default_target = \"false\"\n"
		    "      |                    ^~~~~~~\n"
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w>] default_target=\"false\" "
		    "targets_only=true* demangle=\"none\"* sample_rate=19* "
		    "collect_interval=15000000000*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  default_target = [1, {}]\n"
		    "}\n",
		    "f:4:20: warning: default_target is a map of labels; the string is ignored\n"
		    "    4 |   default_target = [1, {}]\n"
		    "      |                    ^\n"
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w>] default_target=[1 {}] "
		    "targets_only=true* demangle=\"none\"* sample_rate=19* "
		    "collect_interval=15000000000*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
}

/* Where ignoring changes the result, or the option is gone; else not a word. */
TEST(warns_of_what_is_ignored)
{
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver]\n"
		    "  ignored_threshold = 0.1\n"
		    "  verbose_mode = true\n"
		    "  cache_rounds = 3\n"
		    "  debug_info {\n"
		    "    upload = true\n"
		    "  }\n"
		    "}\n",
		    "f:4:3: warning: argument ignored_threshold is accepted but ignored\n"
		    "    4 |   ignored_threshold = 0.1\n"
		    "      |   ^~~~~~~~~~~~~~~~~\n"
		    "  no off-CPU profiles are made\n"
		    "f:6:3: warning: argument cache_rounds was dropped in Alloy 1.11\n"
		    "    6 |   cache_rounds = 3\n"
		    "      |   ^~~~~~~~~~~~\n"
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w>] ignored_threshold=0.1f "
		    "verbose_mode=true cache_rounds=3 debug_info={} targets_only=true* "
		    "demangle=\"none\"* sample_rate=19* collect_interval=15000000000*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
}

/* Nobody is warned who asks for what is done, in whatever words; who asks for more is. */
TEST(what_is_so_anyway_is_no_warning)
{
	static const char *const same[] = {"\"2m\"", "\"120s\"", "`2m`"};
	char text[100];

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		snprintf(text, sizeof(text), "test.patient \"p\" {\n  grace = %s\n}\n", same[i]);
		expect_plan(text, "node test.patient.p: {grace=120000000000}\n");
	}
	expect_plan("test.patient \"p\" {\n  grace = \"3m\"\n}\n",
		    "f:2:3: warning: argument grace is accepted but ignored\n"
		    "    2 |   grace = \"3m\"\n"
		    "      |   ^~~~~\n"
		    "  the agent's own deadline holds\n"
		    "node test.patient.p: {grace=180000000000}\n");
}

TEST(takes_targets_and_receivers_for_what_they_are)
{
	expect_plan(
		"raw.write \"w\" {}\n"
		"pyroscope.ebpf \"e\" {\n"
		"  forward_to = raw.write.w.receiver\n"
		"  targets = raw.write.w.receiver\n"
		"}",
		"f:3:16: error: forward_to must be a list of receivers, "
		"[pyroscope.write.NAME.receiver], not a receiver of profiles\n"
		"    3 |   forward_to = raw.write.w.receiver\n"
		"      |                ^~~~~~~~~~~~~~~~~~~~\n"
		"  put it between [ ]\n"
		"f:4:13: error: targets must be a list of targets, each an object of strings, not "
		"a receiver of profiles\n"
		"    4 |   targets = raw.write.w.receiver\n"
		"      |             ^~~~~~~~~~~~~~~~~~~~\n");
	expect_plan(
		"raw.write \"w\" {}\n"
		"pyroscope.ebpf \"e\" {\n"
		"  forward_to = [discovery.process.p.targets]\n"
		"  targets = [discovery.process.p.targets]\n"
		"}\n"
		"discovery.process \"p\" {}",
		"f:3:16: error: forward_to must be a list of receivers, "
		"[pyroscope.write.NAME.receiver], but holds a list of targets\n"
		"    3 |   forward_to = [discovery.process.p.targets]\n"
		"      |                ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		"f:4:13: error: targets must be a list of targets, each an object of strings, not "
		"a list\n"
		"    4 |   targets = [discovery.process.p.targets]\n"
		"      |             ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		"  targets are a list already: leave out the [ ], or join several with "
		"array.concat(a, b)\n");
	expect_plan(
		"raw.write \"w\" {}\n"
		"pyroscope.ebpf \"e\" {\n"
		"  forward_to = [1]\n"
		"  targets = 1\n"
		"}",
		"f:3:16: error: forward_to must be a list of receivers, "
		"[pyroscope.write.NAME.receiver], but holds a number\n"
		"    3 |   forward_to = [1]\n"
		"      |                ^~~\n"
		"f:4:13: error: targets must be a list of targets, each an object of strings, not "
		"a number\n"
		"    4 |   targets = 1\n"
		"      |             ^\n");
	expect_plan("raw.write \"w\" {}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [raw.write.w.receiver, raw.write.w.receiver]\n"
		    "}",
		    "f:3:16: warning: raw.write.w is given twice; it gets every profile once\n"
		    "    3 |   forward_to = [raw.write.w.receiver, raw.write.w.receiver]\n"
		    "      |                ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		    "node pyroscope.ebpf.e: {forward_to=[<raw.write.w> <raw.write.w>] "
		    "targets_only=true* demangle=\"none\"* sample_rate=19* "
		    "collect_interval=15000000000*}\n"
		    "node raw.write.w: {}\n"
		    "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n");
	expect_plan(
		"raw.write \"w\" {}\n"
		"pyroscope.ebpf \"e\" {\n"
		"  forward_to = discovery.process.p.targets\n"
		"  sample_rate = raw.write.w.receiver\n"
		"}\n"
		"discovery.process \"p\" {}",
		"f:3:16: error: forward_to must be a list of receivers, "
		"[pyroscope.write.NAME.receiver], not a list of targets\n"
		"    3 |   forward_to = discovery.process.p.targets\n"
		"      |                ^~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		"f:4:17: error: sample_rate must be a whole number, not a receiver of profiles\n"
		"    4 |   sample_rate = raw.write.w.receiver\n"
		"      |                 ^~~~~~~~~~~~~~~~~~~~\n");
}

TEST(names_a_broken_option_table)
{
	expect_plan("test.newer \"n\" {\n"
		    "  value = 1\n"
		    "}",
		    "f:2:11: error: value has a type that this version does not know\n"
		    "    2 |   value = 1\n"
		    "      |           ^\n"
		    "  the plugin is newer than this version, or broken\n");
}

/* Alloy's receiver of OTLP is for other signals; who wants profiles of it is told what takes them,
 * and how to split the file at the next block of that kind. */
TEST(names_what_receives_profiles_by_otlp)
{
	expect_plan("otelcol.receiver.otlp \"in\" {\n"
		    "  output {\n"
		    "    profiles = []\n"
		    "  }\n"
		    "}\n"
		    "otelcol.receiver.otlp \"b\" { }\n",
		    "f:1:1: error: otelcol.receiver.otlp is for metrics, logs and traces; andiron "
		    "takes profiles\n"
		    "    1 | otelcol.receiver.otlp \"in\" {\n"
		    "      | ^~~~~~~~~~~~~~~~~~~~~\n"
		    "  profiles that come by OTLP are received by otlp.receive, in andiron's file\n"
		    "f:6:1: error: otelcol.receiver.otlp is for metrics, logs and traces; andiron "
		    "takes profiles\n"
		    "    6 | otelcol.receiver.otlp \"b\" { }\n"
		    "      | ^~~~~~~~~~~~~~~~~~~~~\n"
		    "  leave it in a file of Alloy's; the blocks for profiles, with all that they "
		    "name, go into a file of andiron's\n");
}
