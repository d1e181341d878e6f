/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that embeds andiron pays: of plugins those that its configuration needs, and of
 * calls three for each batch. */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

/* Whether a file of that name is mapped here. */
static bool is_mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	bool found = false;

	expect(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, name) != NULL;
	fclose(maps);
	return found;
}

/* Of all plugins just the `open` ones. */
static void expect_open(const char *const *open)
{
	static const char *const all[] = {"relabel", "process",     "ebpf",       "symbolize",
					  "file",    "status-http", "kubernetes", "pyroscope"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool wanted = false;
		char name[64];

		for (const char *const *o = open; *o; o++)
			wanted |= strcmp(*o, all[i]) == 0;
		snprintf(name, sizeof(name), "andiron-%s.so", all[i]);
		if (is_mapped(name) != wanted)
			test_fail(__FILE__, __LINE__, "%s is%s open", name, wanted ? " not" : "");
	}
}

#define OPEN(...) expect_open((const char *const[]){__VA_ARGS__, NULL})

TEST(plugins_are_opened_by_those_who_need_them)
{
	struct andiron *a = agent_open();
	char *text;

	expect_open((const char *const[]){NULL});
	lib.text_free(agent_load(a,
				 "discovery.relabel \"r\" {\n targets = [{\"job\" = \"x\"}]\n"
				 " rule {\n action = \"labeldrop\"\n regex = \"y\"\n }\n}\n",
				 0));
	OPEN("relabel");
	lib.text_free(agent_load(a, "discovery.process \"p\" {}", 0));
	OPEN("relabel", "process");
	/* The sampler has the symbolizer put before whoever wants names. */
	lib.text_free(agent_load(a,
				 "pyroscope.ebpf \"e\" {\n targets_only = false\n"
				 " forward_to = [profile.file.f.receiver]\n}\n"
				 "profile.file \"f\" { paths = [\"/tmp/x.pb.gz\"] }\n",
				 0));
	OPEN("relabel", "process", "ebpf", "symbolize", "file");
	expect(!is_mapped("libcurl"));
	/* What nobody has is looked for in all of them. */
	text = agent_load(a, "pyroscope.wride \"w\" {}", -22);
	expect(text && strstr(text, "pyroscope.write"));
	lib.text_free(text);
	expect(is_mapped("andiron-pyroscope.so") && is_mapped("andiron-kubernetes.so"));
	expect_eq(lib.close(a), 0);
}

static int32_t count(void *context, const struct andiron_profile *profile)
{
	atomic_int *n = context;

	++*n;
	return profile->samples == TEST_SAMPLES ? 0 : -1;
}

/* A batch crosses the library's border when it is counted, when it is sent, and when it is handed
 * over. */
TEST(a_batch_is_three_calls)
{
	const int n = 100;
	struct andiron *a = agent_open();
	char *why = NULL, *ledger = NULL;
	atomic_int taken = 0;

	agent_batches = n;
	agent_ok(lib.on_profiles(a, "a", ANDIRON_FORM_BATCH, count, &taken, &why), why);
	lib.text_free(agent_load(a,
				 "test.producer \"p\" {\n"
				 " forward_to = [embed.profiles.a.receiver]\n}\n"
				 "embed.profiles \"a\" {}\n",
				 0));
	agent_ok(lib.start(a, &why), why);
	agent_ok(lib.stop(a, 10000000000, &why), why);
	expect_eq(lib.read(a, ANDIRON_READ_LEDGER, &ledger), 0);
	expect(strstr(ledger, "\"delivered\": 1000"));
	lib.text_free(ledger);
	expect_eq(lib.close(a), 0);
	printf("# %d batches: %d calls into the library, %d out of it\n", n, agent_calls, taken);
	expect_eq(taken, n);
	expect(agent_calls + taken <= 3 * n);
}
