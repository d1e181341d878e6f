/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that keeps the rules, a writer and a source of targets, and by FAULT_… the same with one
 * thing wrong each. tests/abi/meson.build has the list, and which check finds it. */
#include <andiron/bpf/walk.h>
#include <andiron/plugin.h>
#include <andiron/runtime.h>

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

#ifdef FAULT_BUSY
#define PERIOD_NS 1000000 /* no fault: it is never quiet */
#else
#define PERIOD_NS 1000000000
#endif

struct self {
	const struct andiron_host *host;
	uint64_t instance, timer;
	char *text;
	int was_started;
	struct kept {
		struct kept *next;
		char text[92];
	} *kept;
};

#ifdef FAULT_EXPORTS
ANDIRON_EXPORT int second_symbol;
#endif

#ifdef FAULT_CONSTRUCTOR
static volatile int constructed;

__attribute__((constructor)) static void construct(void)
{
	constructed = 1;
}
#endif

#ifdef FAULT_STATIC_TLS
static __thread int per_thread __attribute__((tls_model("initial-exec")));
#endif

#ifdef FAULT_TEXT_RELOCATION
__asm__(".text\n.p2align 3\n.quad andiron_plugin_v1\n");
#endif

static void nothing(void *self)
{
}

#if defined(FAULT_LEAK_PER_BATCH) || defined(FAULT_LEAK_PER_UPDATE)
/* Until the instance is destroyed. */
static void keep(struct self *s)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		return;
	k->next = s->kept;
	s->kept = k;
}
#endif

#if defined(FAULT_STACK) || defined(FAULT_STACK_OF_BATCH)
static void go_deep(void)
{
	volatile char deep[16384];

	for (size_t i = 0; i < sizeof(deep); i++)
		deep[i] = 1;
}
#endif

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct self *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->host = host;
	s->instance = instance;
	s->text = malloc(100);
#ifndef FAULT_UNCHECKED
	if (!s->text) {
		free(s);
		return -ENOMEM;
	}
#endif
	*(volatile char *)s->text = 0;
#ifdef FAULT_STACK
	go_deep();
#endif
#ifdef FAULT_LOCALE
	setlocale(LC_ALL, "C.UTF-8");
#endif
#ifdef FAULT_STREAM
	close(STDIN_FILENO);
#endif
#ifdef FAULT_LIMIT
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){512, 512});
#endif
#ifdef FAULT_SILENT
	free(s->text);
	free(s);
	return -EINVAL;
#endif
#ifdef FAULT_ABSENT
	if (host->size > offsetof(struct andiron_host, full))
		host->full(instance, 0);
#endif
#ifdef FAULT_STATIC_TLS
	per_thread++;
#endif
	*ret_self = s;
	return 0;
}

#ifdef FAULT_LINGERS
/* No fault: what it waits for cannot be cut short. It has memory of its own until it ends. */
static void *look_up(void *arg)
{
	free(malloc(1000));
	poll(NULL, 0, 2500);
	return arg;
}

static void look_up_elsewhere(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_create(&thread, NULL, look_up, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
#endif

static int32_t start(void *self, struct andiron_error *err)
{
	struct self *s = self;

#ifdef FAULT_LINGERS
	look_up_elsewhere();
#endif
#ifdef FAULT_MAPS
	mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#endif
#ifdef FAULT_ZOMBIE
	if (fork() == 0)
		_exit(0);
	siginfo_t ended; /* it has, and is not reaped */
	waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
#endif
#ifdef FAULT_INHERITED
	open("/dev/null", O_RDONLY);
#endif
	s->was_started = 1;
	s->host->timer_set(s->instance, PERIOD_NS, PERIOD_NS, nothing, s, &s->timer);
	return 0;
}

static void stop(void *self)
{
	struct self *s = self;

#ifndef FAULT_TIMER
	s->host->timer_cancel(s->instance, s->timer);
#endif
#ifdef FAULT_STOP_TWICE
	if (s->text[0]++ && s->was_started)
		abort();
#endif
	s->timer = 0;
}

static void destroy(void *self)
{
	struct self *s = self;

	for (struct kept *k = s->kept, *next; k; k = next) {
		next = k->next;
		free(k);
	}
#ifndef FAULT_LEAK
	free(s->text);
#endif
	free(s);
}

/* --- The writer --- */

static int32_t drain(void *self, int64_t deadline_ns)
{
#ifndef FAULT_UNDRAINED
	const struct self *s = self;

	s->host->drained(s->instance);
#ifdef FAULT_DRAINED_TWICE
	s->host->drained(s->instance);
#endif
#endif
	return 0;
}

static void take(void *self, const struct andiron_batch *batch)
{
#ifdef FAULT_HOLDS
	batch->retain(batch->owner);
#endif
#ifdef FAULT_STACK_OF_BATCH
	go_deep();
#endif
#ifdef FAULT_WRITES
	*(volatile uint64_t *)(uintptr_t)&batch->samples = batch->samples;
#endif
#ifdef FAULT_EXITS
	if (batch->samples)
		_exit(1);
#endif
#ifdef FAULT_UNCHECKED_BATCH
	char *text = malloc(100);

	*(volatile char *)text = 0;
	free(text);
#endif
#ifdef FAULT_IGNORES
	signal(SIGPIPE, SIG_IGN);
#endif
#ifdef FAULT_ROUNDING
	fesetround(FE_UPWARD);
#endif
#ifdef FAULT_OPENS_PER_BATCH
	fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
#endif
#ifdef FAULT_LEAK_PER_BATCH
	keep(self);
#endif
#ifndef FAULT_LEDGER
	const struct self *s = self;

	s->host->ledger_add(s->instance, ANDIRON_LEDGER_DELIVERED, NULL, batch->samples);
#endif
}

#if defined(FAULT_ENVIRONMENT) || defined(FAULT_LEAK_PER_UPDATE)
static void follow(void *self, const char *port, const struct andiron_targets *update)
{
#ifdef FAULT_ENVIRONMENT
	setenv("BROKEN", "1", 1);
#else
	keep(self);
#endif
}
#else
#define follow NULL
#endif

static const struct andiron_option items[] = {
	{
		.name = "interval",
		.type = ANDIRON_TYPE_DURATION,
#ifdef FAULT_DEFAULT
		.default_text = "\"1ms\"",
#else
		.default_text = "\"15s\"",
#endif
		.doc = "An option.",
		.min = 1000000000,
		.max = 60000000000,
	},
};

static const struct andiron_options table = ANDIRON_OPTIONS(items);

static const struct andiron_export receiver[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "What it is given."}};

static const struct andiron_component writer = {
	.size = sizeof(writer),
	.flags = ANDIRON_COMPONENT_WRITER,
	.name = "broken.write",
	.summary = "Delivers what it is given.",
	.options = &table,
	.exports = receiver,
	.n_exports = N(receiver),
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.drain = drain,
	.targets = follow,
	.batch = take,
};

/* --- The source of targets --- */

static const struct andiron_str strings[] = {{"a", 1}, {"b", 1}, {"x", 1}};
#ifdef FAULT_TARGETS
static const struct andiron_label labels[] = {{1, 2}, {0, 2}};
#else
static const struct andiron_label labels[] = {{0, 2}, {1, 2}};
#endif
static const struct andiron_target rows[] = {{.row = 1, .n_labels = N(labels)}};

static int32_t find(void *self, struct andiron_error *err)
{
	const struct self *s = self;
	const struct andiron_targets update = {
		.size = sizeof(update),
		.flags = ANDIRON_TARGETS_SNAPSHOT,
		.producer = s->instance,
		.generation = 1,
		.strings = strings,
		.n_strings = N(strings),
		.labels = labels,
		.n_labels = N(labels),
		.rows = rows,
		.n_rows = N(rows),
		.n_added = N(rows),
		.retain = nothing,
		.release = nothing,
	};

	s->host->send_targets(s->instance, "targets", &update);
	return start(self, err);
}

static const struct andiron_export targets[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "One target."}};

static const struct andiron_component source = {
	.size = sizeof(source),
	.name = "discovery.broken",
	.summary = "Finds one target.",
	.exports = targets,
	.n_exports = N(targets),
	.create = create,
	.start = find,
	.stop = stop,
	.destroy = destroy,
};

#if defined(FAULT_RECOGNIZES) || defined(FAULT_OBJECT)
/* --- A runtime. Its object is none, which is found behind what FAULT_RECOGNIZES does --- */

static int32_t recognizes(void *self, uint64_t object)
{
#ifdef FAULT_RECOGNIZES
	return dup(0) < 0; /* and leaves it open */
#else
	return 0;
#endif
}

static int32_t begin(void *self, const struct andiron_runtime_map *maps, uint64_t n, void **ret)
{
	*ret = self;
	return 0;
}

static int32_t claim(void *session, const struct andiron_runtime_process *process,
		     const struct andiron_runtime_mapping *mappings, uint64_t n,
		     struct andiron_runtime_claim *ret, uint64_t max)
{
	return 0;
}

static void gone(void *session, const struct andiron_runtime_process *process)
{
}

static int32_t resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
		       uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	return -ENOENT;
}

static int32_t describe(void *session, const struct andiron_runtime_process *process, char *ret,
			uint64_t max)
{
	return 0;
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_runtime runtime = {
		.size = sizeof(runtime),
		.walk_version = ANDIRON_WALK_VERSION,
		.object = "no object",
		.object_bytes = 9,
		.program = "walk",
		.frame_type = "broken",
		.recognizes = recognizes,
		.open = begin,
		.close = nothing,
		.claim = claim,
		.gone = gone,
		.resolve = resolve,
		.describe = describe,
	};

	return &runtime;
}

static const char *const offers[] = {ANDIRON_RUNTIME_PREFIX "broken" ANDIRON_RUNTIME_SUFFIX, NULL};

static const struct andiron_component runtime = {
	.size = sizeof(runtime),
	.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,
	.name = "runtime.broken",
	.summary = "Frames of nothing.",
	.offers = offers,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.extension = extension,
};

ANDIRON_PLUGIN("broken", "1.0", "Apache-2.0", &writer, &source, &runtime);
#else
ANDIRON_PLUGIN("broken", "1.0", "Apache-2.0", &writer, &source);
#endif
