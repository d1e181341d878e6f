/* SPDX-License-Identifier: Apache-2.0 */
/* libandiron in a process of somebody else's, which exports functions of other versions of the
 * libraries that plugins use. */
#include "agent.h"

#include "abi/batch-view.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#define ROUNDS      1000
#define UNBLOCKABLE (1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 1ull << 31 | 1ull << 32)

#define POISONED(name)                                                                             \
	void name(void);                                                                           \
	__attribute__((visibility("default"), noreturn)) void name(void)                           \
	{                                                                                          \
		test_fail(__FILE__, __LINE__, "%s was called", #name);                             \
	}

POISONED(bpf_object__load_skeleton)
POISONED(curl_easy_setopt)
POISONED(curl_global_init)
POISONED(json_loadb)
POISONED(json_object_get)
POISONED(protobuf_c_message_get_packed_size)
POISONED(protobuf_c_message_pack)
POISONED(protobuf_c_message_unpack)
POISONED(ring_buffer__new)

#define TO(name)  "test.producer \"p\" { forward_to = [embed.profiles." name ".receiver] }\n"
#define END(name) "embed.profiles \"" name "\" {}\n"

static struct andiron *opened;

static void close_it(void)
{
	expect_eq(lib.close(opened), 0);
	opened = NULL;
}

static char *read_it(uint32_t what)
{
	char *text = NULL;

	expect_eq(lib.read(opened, what, &text), 0);
	expect(text);
	return text;
}

/* --- Profiles and targets --- */

struct taken {
	atomic_int n;
	atomic_ullong samples;
	char *bytes;
	size_t n_bytes;
	const struct andiron_profile *kept;
	int32_t answer;
};

static int32_t take(void *context, const struct andiron_profile *profile)
{
	struct taken *t = context;

	t->samples += profile->samples;
	t->n++;
	if (profile->form == ANDIRON_FORM_PPROF) {
		free(t->bytes);
		t->bytes = malloc(profile->n_bytes);
		expect(t->bytes);
		memcpy(t->bytes, profile->bytes, profile->n_bytes);
		t->n_bytes = profile->n_bytes;
	} else {
		expect(profile->batch && profile->batch->samples == profile->samples);
		profile->retain(profile->owner);
		t->kept = profile;
	}
	return t->answer;
}

static void on_profiles(const char *name, uint32_t form, struct taken *t)
{
	char *why = NULL;

	agent_ok(lib.on_profiles(opened, name, form, take, t, &why), why);
}

static void load(const char *text)
{
	lib.text_free(agent_load(opened, text, 0));
}

static void start(void)
{
	char *why = NULL;

	agent_ok(lib.start(opened, &why), why);
}

static void stop(void)
{
	char *why = NULL;

	agent_ok(lib.stop(opened, 10 * NS_PER_SEC, &why), why);
}

/* Whether gzip'd bytes hold a text. */
static bool holds(const char *bytes, size_t n, const char *text)
{
	static char raw[1 << 16];
	z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes,
		      .avail_in = (uInt)n,
		      .next_out = (Bytef *)raw,
		      .avail_out = sizeof(raw)};

	expect_eq(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
	expect_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return memmem(raw, z.total_out, text, strlen(text)) != NULL;
}

/* One path, both forms; the ledger counts for each end. A batch that was kept outlives its call. */
TEST(profiles_come_as_pprof_and_as_batches)
{
	struct taken pprof = {0}, batch = {0};
	char *ledger;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &pprof);
	on_profiles("b", ANDIRON_FORM_BATCH, &batch);
	load("test.producer \"p\" { forward_to = [embed.profiles.a.receiver, "
	     "embed.profiles.b.receiver] }\n" END("a") END("b"));
	start();
	stop();
	expect_eq(pprof.n, 1);
	expect_eq(pprof.samples, TEST_SAMPLES);
	expect(holds(pprof.bytes, pprof.n_bytes, TEST_FUNCTION));
	expect_eq(batch.n, 1);
	expect_eq(batch.kept->batch->end_ns, 2);
	batch.kept->release(batch.kept->owner);
	ledger = read_it(ANDIRON_READ_LEDGER);
	if (!strstr(ledger, "embed.profiles.a") || !strstr(ledger, "\"delivered\": 10"))
		test_fail(__FILE__, __LINE__, "%s", ledger);
	lib.text_free(ledger);
	close_it();
	free(pprof.bytes);
}

/* What somebody else has encoded comes as it is, behind what the sampler took. */
TEST(encoded_profiles_come_as_they_are)
{
	struct taken t = {0};

	agent_encoded = "somebody's pprof";
	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	stop();
	expect_eq(t.n, 2);
	expect_eq(t.samples, TEST_SAMPLES + 1);
	expect_eq(t.n_bytes, strlen(agent_encoded));
	expect(memcmp(t.bytes, agent_encoded, t.n_bytes) == 0);
	close_it();
	free(t.bytes);
}

/* Rules change the labels of both kinds on the way, and nothing else. */
TEST(profiles_are_relabeled_on_the_way)
{
	struct taken t = {0};
	struct batch_view v;
	struct andiron_encoded e;
	struct str label;

	agent_encoded = "somebody's pprof";
	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_BATCH, &t);
	load("test.producer \"p\" { forward_to = [pyroscope.relabel.r.receiver] }\n"
	     "pyroscope.relabel \"r\" {\n  forward_to = [embed.profiles.a.receiver]\n"
	     "  rule {\n    target_label = \"cluster\"\n    replacement = \"c1\"\n  }\n}\n" END(
		     "a"));
	start();
	stop();
	expect_eq(t.n, 1);
	expect_eq(t.samples, TEST_SAMPLES + 1);
	expect_eq(batch_view_init(&v, t.kept->batch), 0);
	expect_eq(batch_count(&v, ANDIRON_COL_GROUP), 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct andiron_group group = batch_group(&v, i);

		expect(batch_group_label(&v, &group, STR("cluster"), &label));
		expect_str(label, "c1");
	}
	e = batch_encoded(&v, 0);
	expect_str(batch_encoded_bytes(&v, &e), agent_encoded);
	expect_str(batch_str(&v, batch_function(&v, 1).name), TEST_FUNCTION);
	t.kept->release(t.kept->owner);
	close_it();
}

/* What a consumer refuses is dropped under that name. */
TEST(what_is_refused_is_counted)
{
	struct taken t = {.answer = -EIO};
	char *ledger;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	stop();
	ledger = read_it(ANDIRON_READ_LEDGER);
	expect(strstr(ledger, "refused"));
	lib.text_free(ledger);
	close_it();
	free(t.bytes);
}

/* A line is whole, whatever is in it. */
TEST(the_log_comes_by_lines)
{
	struct taken t = {0};

	agent_logs = true;
	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	close_it();
	expect_eq(agent_lines, 1);
	free(t.bytes);
}

static void take_targets(void *context, const struct andiron_targets *update)
{
	atomic_int *n = context;

	for (uint64_t i = 0; i < update->n_labels; i++)
		*n += str_is((struct str){update->strings[update->labels[i].value].ptr,
					  update->strings[update->labels[i].value].len},
			     "web");
}

TEST(targets_come_through_plugins_of_files)
{
	atomic_int n = 0;
	char *why = NULL, *metrics;

	opened = agent_open();
	agent_ok(lib.on_targets(opened, "t", take_targets, &n, &why), why);
	load("discovery.relabel \"r\" {\n targets = [{\"job\" = \"x\"}]\n rule {\n"
	     " replacement = \"web\"\n target_label = \"job\"\n }\n}\n"
	     "embed.targets \"t\" { targets = discovery.relabel.r.output }\n");
	start();
	while (n == 0) {
		/* The loop has passed them on once it has answered this after they came. */
		metrics = read_it(ANDIRON_READ_METRICS);
		expect(strstr(metrics, "# TYPE"));
		lib.text_free(metrics);
	}
	expect_eq(n, 1);
	close_it();
}

/* --- Configurations --- */

static void expect_text(char *text, const char *part)
{
	if (!text || !strstr(text, part))
		test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", text ? text : "", part);
	lib.text_free(text);
}

TEST(errors_are_texts_that_say_what_to_do)
{
	struct taken t = {0};
	char *why = NULL;

	opened = agent_open();
	expect_eq(lib.start(opened, &why), -EINVAL);
	expect_text(why, "no configuration");
	expect_text(agent_load(opened, "test.produzer \"p\" {}", -EINVAL), "test.producer");
	expect_text(agent_load(opened, "test.producer \"p\" {", -EINVAL), "test:1:");
	expect_text(agent_load(opened,
			       "foreach \"f\" {\n  collection = encoding.from_yaml(\"[]\")\n"
			       "  var = \"x\"\n  template {\n  }\n}\n",
			       -EINVAL),
		    "libandiron has no YAML");
	expect_eq(lib.load_file(opened, "/does/not/exist.alloy", &why), -ENOENT);
	expect_text(why, "/does/not/exist.alloy");
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	expect_eq(lib.on_profiles(opened, "a", ANDIRON_FORM_PPROF, take, &t, &why), -EEXIST);
	expect_text(why, "\"a\"");
	expect_eq(lib.on_profiles(opened, "c", 77, take, &t, &why), -EINVAL);
	expect_text(why, "form");
	expect_eq(lib.provide(opened, &agent_plugin, &why), -EBUSY);
	expect_text(why, "before");
	load(TO("b") END("b"));
	expect(lib.start(opened, &why) < 0);
	expect_text(why, "andiron_on_profiles");
	/* Nothing ran, so it can begin with another. */
	load(TO("a") END("a"));
	start();
	expect_eq(lib.start(opened, &why), -EALREADY);
	expect_text(why, "started before");
	expect_eq(lib.read(opened, 99, &why), -EINVAL);
	close_it();
	free(t.bytes);
}

/* A component that cannot answer now is the reason that is given, and no piece of an answer. */
TEST(a_failed_read_says_why)
{
	struct taken t = {0};
	char *text = NULL;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	expect_eq(lib.read(opened, ANDIRON_READ_TARGETS, &text), -EBUSY);
	expect_str(str_of(text), "a component cannot answer now: ask again");
	lib.text_free(text);
	stop();
	close_it();
	free(t.bytes);
}

TEST(a_running_instance_changes_as_a_whole_or_not_at_all)
{
	struct taken t = {0};
	char *health;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	expect_text(agent_load(opened, "test.producer \"q\" { rate = 1 }", -EINVAL), "rate");
	health = read_it(ANDIRON_READ_HEALTH);
	expect(strstr(health, "test.producer.p") && !strstr(health, "test.producer.q"));
	load("test.producer \"q\" { forward_to = [embed.profiles.a.receiver] }\n" END("a"));
	do { /* the old one is drained beside the new one */
		lib.text_free(health);
		health = read_it(ANDIRON_READ_HEALTH);
		expect(strstr(health, "test.producer.q"));
	} while (strstr(health, "test.producer.p"));
	lib.text_free(health);
	stop();
	expect_eq(t.samples, 2 * TEST_SAMPLES);
	expect_text(agent_load(opened, TO("a") END("a"), -EINVAL), "stopped");
	close_it();
	free(t.bytes);
}

/* An instance ends when its time is over, and says what was left. */
TEST(stopping_keeps_its_deadline)
{
	struct taken t = {0};
	char *why = NULL;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	agent_never_drains = true;
	expect_eq(lib.stop(opened, 20 * NS_PER_MSEC, &why), -ETIMEDOUT);
	expect_text(why, "deadline");
	close_it();
	free(t.bytes);
}

/* No deadline is too far away: it is a time that can be told. */
TEST(stopping_may_take_forever)
{
	struct taken t = {0};
	char *why = NULL;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	agent_ok(lib.stop(opened, INT64_MAX, &why), why);
	close_it();
	expect_eq(t.samples, TEST_SAMPLES);
	free(t.bytes);
}

TEST(instances_know_nothing_of_each_other)
{
	struct taken one = {0}, two = {0};
	struct andiron *first = agent_open(), *second = agent_open();

	opened = first;
	on_profiles("a", ANDIRON_FORM_PPROF, &one);
	load(TO("a") END("a"));
	start();
	opened = second;
	on_profiles("a", ANDIRON_FORM_PPROF, &two);
	load(TO("a") END("a"));
	start();
	stop();
	close_it();
	expect_eq(two.n, 1);
	opened = first;
	lib.text_free(read_it(ANDIRON_READ_HEALTH));
	stop();
	close_it();
	expect_eq(one.n, 1);
	free(one.bytes);
	free(two.bytes);
}

/* --- What it does to the process --- */

static void round_of(struct taken *t, bool running)
{
	opened = agent_open();
	if (running) {
		on_profiles("a", ANDIRON_FORM_PPROF, t);
		load(TO("a") END("a"));
		start();
		stop();
	}
	close_it();
}

static void expect_nothing_left(bool running, int rounds)
{
	struct process before, after;
	struct taken t = {0};
	int64_t begun;

	for (int i = 0; i < 20; i++)
		round_of(&t, running); /* code, and what libc keeps for threads */
	process_look(&before);
	begun = clock_mono();
	for (int i = 0; i < rounds; i++)
		round_of(&t, running);
	printf("# %s: %.3f ms a round\n",
	       running ? "opened, started, stopped, closed" : "opened, closed",
	       (double)(clock_mono() - begun) / rounds / NS_PER_MSEC);
	process_look(&after);
	process_expect_same(&before, &after);
	printf("# %d mappings, %d before\n", after.mappings, before.mappings);
	/* Allocators keep some. What a round loses would be there as many times. */
	expect(after.mappings < before.mappings + rounds / 4);
	free(t.bytes);
}

TEST(closing_puts_all_back)
{
	expect_nothing_left(false, ROUNDS);
}

TEST(closing_what_has_run_puts_all_back)
{
	expect_nothing_left(true, ROUNDS / 5); /* each starts threads, slow under sanitizers */
}

/* A signal for the process never meets one of our threads. */
TEST(threads_block_all_signals)
{
	struct taken t = {0};
	DIR *tasks;
	struct dirent *entry;
	int n = 0;

	opened = agent_open();
	on_profiles("a", ANDIRON_FORM_PPROF, &t);
	load(TO("a") END("a"));
	start();
	tasks = opendir("/proc/self/task");
	expect(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], line[200];
		FILE *status;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		status = entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == getpid()
				 ? NULL
				 : fopen(path, "re");
		if (!status)
			continue;
		while (fgets(line, sizeof(line), status))
			if (strncmp(line, "SigBlk:", 7) == 0) {
				/* Apart from SIGKILL, SIGSTOP and libc's own two. */
				expect_eq(~strtoull(line + 7, NULL, 16) & ~UNBLOCKABLE, 0);
				n++;
			}
		fclose(status);
	}
	closedir(tasks);
	expect(n >= 2);
	close_it();
	free(t.bytes);
}

static int32_t take_and_call(void *context, const struct andiron_profile *profile)
{
	atomic_int *n = context;
	char *text = NULL;

	expect_eq(lib.stop(opened, 0, &text), -EDEADLK);
	expect_text(text, "callback");
	expect_eq(lib.close(opened), -EDEADLK);
	expect_eq(lib.load(opened, "x", "", 0, NULL), -EDEADLK);
	lib.text_free(read_it(ANDIRON_READ_METRICS));
	++*n;
	return 0;
}

/* A callback may ask, and is refused what would wait for it. */
TEST(callbacks_cannot_hang_it)
{
	atomic_int n = 0;
	char *why = NULL;

	opened = agent_open();
	agent_ok(lib.on_profiles(opened, "a", ANDIRON_FORM_BATCH, take_and_call, &n, &why), why);
	load(TO("a") END("a"));
	start();
	stop();
	expect_eq(n, 1);
	close_it();
}

/* A child of fork is refused by name, and can open an instance of its own. */
TEST(a_forked_child_begins_anew)
{
	struct taken t = {0};
	int status = -1;
	pid_t child;

#ifdef __SANITIZE_THREAD__
	test_skip("the thread sanitizer ends a child that starts threads");
#endif
	opened = agent_open();
	child = fork();
	if (child == 0) {
		char *text = NULL;

		expect_eq(lib.read(opened, ANDIRON_READ_HEALTH, &text), -ECHILD);
		expect_text(text, "forked");
		expect_eq(lib.close(opened), -ECHILD);
		round_of(&t, true);
		_exit(0);
	}
	expect(child > 0);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	close_it();
}

/* A plugin whose calls this program would answer is refused by name, and only that. */
TEST(poisoned_libraries_are_not_called)
{
	char *findings;

	opened = agent_open();
	findings = agent_load(opened, "discovery.process \"all\" {}", -EINVAL);
	if (!findings || (!strstr(findings, "bpf_object__load_skeleton") &&
			  !strstr(findings, "ring_buffer__new")))
		test_fail(__FILE__, __LINE__, "%s", findings ? findings : "no findings");
	lib.text_free(findings);
	close_it();
}

TEST(what_only_a_newer_library_knows_is_refused)
{
	struct {
		struct andiron_embed known;
		uint64_t unknown;
	} how = {.known = {.size = sizeof(how)}, .unknown = 1};
	struct andiron *a = NULL;
	char *why = NULL;

	library_load();
	expect_eq(lib.open(&how.known, &a, &why), -E2BIG);
	expect_text(why, "newer");
	how.known.size = 0;
	expect_eq(lib.open(&how.known, &a, &why), -EINVAL);
	expect_text(why, "size");
	expect(!a && *lib.version());
}
