/* SPDX-License-Identifier: Apache-2.0 */
/* See agent.h. */
#include "agent.h"

#include "abi/batch-build.h"

#include <andiron/target-processes.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct library lib;
const char *agent_encoded;
atomic_bool agent_never_drains;
bool agent_logs;
atomic_int agent_lines;
int agent_batches = 1;
atomic_int agent_calls;

/* --- The library --- */

static void resolve(void *library, const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		test_fail(__FILE__, __LINE__, "libandiron has no %s", name);
	memcpy(ret_function, &symbol, sizeof(symbol));
}

void library_load(void)
{
	const char *path = getenv("TEST_LIBRARY");
	void *library;

	if (!path)
		test_skip("TEST_LIBRARY is not set: run it by `meson test`");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	resolve(library, "andiron_version", &lib.version);
	resolve(library, "andiron_open", &lib.open);
	resolve(library, "andiron_close", &lib.close);
	resolve(library, "andiron_provide", &lib.provide);
	resolve(library, "andiron_on_profiles", &lib.on_profiles);
	resolve(library, "andiron_on_targets", &lib.on_targets);
	resolve(library, "andiron_load", &lib.load);
	resolve(library, "andiron_load_file", &lib.load_file);
	resolve(library, "andiron_start", &lib.start);
	resolve(library, "andiron_stop", &lib.stop);
	resolve(library, "andiron_read", &lib.read);
	resolve(library, "andiron_text_free", &lib.text_free);
}

/* --- The program's own components --- */

struct producer {
	const struct andiron_host *host;
	uint64_t instance;
};

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct producer *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct producer){host, instance};
	*ret_self = p;
	return 0;
}

static const struct andiron_batch *make_batch(uint64_t instance)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_function function = {0};
	struct andiron_location location = {.kind = ANDIRON_FRAME_NATIVE, .address = 0x1000};
	struct andiron_line line = {0};
	struct andiron_profile_type type = {.period = 10000000};
	struct andiron_row row = {.value = 100000000, .samples = TEST_SAMPLES};
	struct batch_head head = {.start_ns = 1, .end_ns = 2, .producer = instance};
	const struct andiron_batch *batch = NULL;
	uint32_t at;

	expect(b);
	function.name = batch_add_string(b, STR(TEST_FUNCTION));
	line.function = batch_add_function(b, &function);
	at = batch_add_named(b, &location, &line, 1);
	type.name = batch_add_string(b, STR("process_cpu"));
	type.type = type.period_type = batch_add_string(b, STR("cpu"));
	type.unit = type.period_unit = batch_add_string(b, STR("nanoseconds"));
	row.type = batch_add_type(b, &type);
	row.stack = batch_add_stack(b, &at, 1);
	batch_group_begin(b, NULL, 0);
	expect(batch_add_row(b, &row));
	if (agent_encoded) {
		struct andiron_encoded e = {.format = ANDIRON_ENCODED_PPROF};

		batch_group_begin(b, NULL, 0);
		expect(batch_add_encoded(b, &e, str_of(agent_encoded)));
	}
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

/* A producer tells the ledger what it has taken, and sends it. */
static void send(const struct producer *p)
{
	const struct andiron_batch *batch = make_batch(p->instance);

	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, batch->samples);
	p->host->send_batch(p->instance, batch);
	agent_calls += 2;
	batch_release(batch);
}

static int32_t start(void *self, struct andiron_error *err)
{
	const struct producer *p = self;
	const struct andiron_str message = {"sent a\nbatch", 12};
	const struct andiron_kv kv = {{"samples", 7}, {"10", 2}};

	p->host->log(p->instance, ANDIRON_LOG_INFO, &message, &kv, 1);
	for (int i = 0; i < agent_batches; i++)
		send(p);
	return 0;
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	const struct producer *p = self;

	if (!agent_never_drains)
		p->host->drained(p->instance);
	return 0;
}

static void stop(void *self)
{
}

static int32_t busy(void *self, const struct andiron_target_processes_sink *sink)
{
	return -EBUSY;
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_target_processes table = {.size = sizeof(table), .each = busy};

	return &table;
}

static const char *const offers[] = {ANDIRON_TARGET_PROCESSES_ID, NULL};
static const struct andiron_option options[] = {
	{.name = "forward_to",
	 .type = ANDIRON_TYPE_RECEIVERS,
	 .doc = "Where the batch goes.",
	 .since = "1"},
};
static const struct andiron_options producer_options = ANDIRON_OPTIONS(options);

static const struct andiron_component producer = {
	.size = sizeof(producer),
	.name = "test.producer",
	.summary = "Sends one batch.",
	.options = &producer_options,
	.offers = offers,
	.extension = extension,
	.create = create,
	.start = start,
	.drain = drain,
	.stop = stop,
	.destroy = free,
};
static const struct andiron_component *const components[] = {&producer};

const struct andiron_plugin agent_plugin = {
	.size = sizeof(agent_plugin),
	.name = "agent",
	.version = "1",
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};

/* --- What all tests do --- */

void agent_ok(int result, char *text)
{
	if (result != 0)
		test_fail(__FILE__, __LINE__, "%s (%d)", text ? text : strerror(-result), result);
	lib.text_free(text);
}

static void take_line(void *context, uint32_t level, const char *component, const char *line)
{
	printf("# %s: %s\n", component, line);
	agent_lines += level == ANDIRON_LOG_INFO && strcmp(component, "test.producer.p") == 0 &&
		       strcmp(line, "sent a\\x0abatch samples=10") == 0;
}

struct andiron *agent_open(void)
{
	const struct andiron_embed how = {
		.size = sizeof(how),
		.plugin_dirs = getenv("TEST_PLUGINS"),
		.worker = "",
		.log_level = ANDIRON_LOG_INFO,
		.log = agent_logs ? take_line : NULL,
	};
	struct andiron *a = NULL;
	char *why = NULL;

	if (!lib.open)
		library_load();
	agent_ok(lib.open(&how, &a, &why), why);
	agent_ok(lib.provide(a, &agent_plugin, &why), why);
	return a;
}

char *agent_load(struct andiron *a, const char *text, int expected)
{
	char *findings = NULL;
	int r = lib.load(a, "test", text, strlen(text), &findings);

	if (r != expected)
		test_fail(__FILE__, __LINE__, "loading gives %d: %s", r,
			  findings ? findings : "no text");
	return findings;
}

/* --- What a process is --- */

static int count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	expect(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int n = 0, c;

	expect(maps);
	while ((c = getc(maps)) != EOF)
		n += c == '\n';
	fclose(maps);
	return n;
}

void process_look(struct process *p)
{
	memset(p, 0, sizeof(*p));
	p->fds = count_entries("/proc/self/fd");
	p->threads = count_entries("/proc/self/task");
	p->mappings = count_mappings();
	pthread_sigmask(SIG_BLOCK, NULL, &p->mask);
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &p->actions[i]);
	expect(getcwd(p->directory, sizeof(p->directory)));
	snprintf(p->locale, sizeof(p->locale), "%s", setlocale(LC_ALL, NULL));
	for (char **e = environ; *e; e++)
		p->environment = p->environment * 31 + strlen(*e) + (uintptr_t)*e;
}

void process_expect_same(const struct process *a, const struct process *b)
{
	expect_eq(a->fds, b->fds);
	expect_eq(a->threads, b->threads);
	expect_eq(memcmp(&a->mask, &b->mask, sizeof(a->mask)), 0);
	for (int i = 1; i < 65; i++)
		expect(a->actions[i].sa_handler == b->actions[i].sa_handler &&
		       a->actions[i].sa_flags == b->actions[i].sa_flags);
	expect_str(str_of(a->directory), b->directory);
	expect_str(str_of(a->locale), b->locale);
	expect_eq(a->environment, b->environment);
}
