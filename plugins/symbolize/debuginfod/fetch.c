/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching debug files. Contract in fetch.h. */
#include "symbolize/debuginfod/fetch.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define PROGRAM      "andiron-debuginfod"
#define BUILD_ID_MAX 128

enum state { WANTED, RUNNING, ARRIVED, ABSENT };

struct fetched {
	struct fetch *fetch;
	char build_id[BUILD_ID_MAX + 1];
	enum state state;
	int64_t retry_ns;
	int fd; /* of what has arrived */
};

void fetch_init(struct fetch *f, const struct abi_context *abi, fetch_arrived_fn arrived,
		void *context)
{
	*f = (struct fetch){.abi = *abi, .arrived = arrived, .context = context};
}

void fetch_fini(struct fetch *f)
{
	vec_each (&f->known, k) {
		closep(&(*k)->fd);
		free(*k);
	}
	vec_free(&f->known);
	free(f->program);
	free(f->urls);
	free(f->cache);
}

static int replace(char **to, struct str text)
{
	char *copy = text.n ? str_dup(text) : NULL;

	if (text.n && !copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

/* The program lies beside the file that this code was loaded from. */
static int find_program(struct fetch *f)
{
	_cleanup_(buf_free) struct buf path = BUF_NULL;
	struct str self;
	Dl_info info;

	if (f->program)
		return 0;
	if (!dladdr((void *)(uintptr_t)find_program, &info) || !info.dli_fname)
		return -ENOENT;
	self = str_of(info.dli_fname);
	self = str_first(self, str_rfind(self, '/') < self.n ? str_rfind(self, '/') + 1 : 0);
	buf_printf(&path, "%.*s" PROGRAM, STR_FMT(self));
	f->program = buf_take(&path);
	return f->program ? 0 : -ENOMEM;
}

int fetch_set(struct fetch *f, const struct fetch_settings *settings)
{
	int r = replace(&f->urls, settings->urls);

	f->max_bytes = settings->max_bytes;
	f->cache_bytes = settings->cache_bytes;
	f->lines_only = settings->lines_only;
	return r < 0 ? r : replace(&f->cache, settings->cache);
}

static struct fetched *find(const struct fetch *f, struct str build_id)
{
	vec_each (&f->known, k)
		if (str_is(build_id, (*k)->build_id))
			return *k;
	return NULL;
}

int fetch_open(const struct fetch *f, struct str build_id)
{
	const struct fetched *k = build_id.n ? find(f, build_id) : NULL;
	int fd = k && k->state == ARRIVED ? fcntl(k->fd, F_DUPFD_CLOEXEC, 3) : -1;

	return fd < 0 ? -ENOENT : fd;
}

/* It becomes an argument: hex and nothing else. */
static bool plausible(struct str id)
{
	return id.n >= 8 && id.n <= BUILD_ID_MAX && str_is_hex(id);
}

void fetch_want(struct fetch *f, struct str build_id, int64_t now_ns)
{
	struct fetched *k;

	if (!f->urls || !plausible(build_id))
		return;
	k = find(f, build_id);
	if (k) {
		if (k->state == ABSENT && now_ns >= k->retry_ns)
			k->state = WANTED;
		return;
	}
	if (f->known.n >= FETCH_KNOWN_MAX || !vec_reserve(&f->known, 1))
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	*k = (struct fetched){.fetch = f, .state = WANTED, .fd = -1};
	memcpy(k->build_id, build_id.p, build_id.n);
	f->known.p[f->known.n++] = k;
}

/* The client prints the path in its cache. */
static int open_result(const struct andiron_spawn_result *result)
{
	struct str path = str_trim((struct str){result->output.ptr, result->output.len});
	_cleanup_(freep) char *copy = NULL;
	int fd;

	if (!WIFEXITED(result->status) || WEXITSTATUS(result->status) != 0 || !path.n)
		return -ENOENT;
	copy = str_dup(path);
	fd = copy ? open(copy, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	return fd < 0 ? -ENOENT : fd;
}

static void ended(void *arg, const struct andiron_spawn_result *result)
{
	struct fetched *k = arg;
	struct fetch *f = k->fetch;

	check(f->n_running > 0 && k->state == RUNNING);
	f->n_running--;
	k->fd = result->status < 0 ? -1 : open_result(result);
	k->state = k->fd < 0 ? ABSENT : ARRIVED;
	k->retry_ns = clock_mono() + FETCH_RETRY_NS;
	if (k->fd >= 0)
		f->n_arrived++;
	else if (result->status < 0)
		f->n_failed++;
	else
		f->n_absent++;
	if (k->fd >= 0)
		f->arrived(f->context);
	fetch_start(f);
}

/* What the program may know of ours: where to keep files, whom to trust, how to get out. */
static const char *const passed[] = {"XDG_CACHE_HOME",     "DEBUGINFOD_CACHE_PATH",
				     "DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXTIME",
				     "DEBUGINFOD_MAXSIZE", "SSL_CERT_FILE",
				     "SSL_CERT_DIR",       "http_proxy",
				     "https_proxy",        "HTTPS_PROXY",
				     "all_proxy",          "ALL_PROXY",
				     "no_proxy",           "NO_PROXY"};
#define N_PASSED (sizeof(passed) / sizeof(passed[0]))

struct environment {
	struct buf text;
	size_t at[N_PASSED + 3], n;
};

static void put(struct environment *e, const char *name, const char *value)
{
	if (!value)
		return;
	check(e->n < sizeof(e->at) / sizeof(e->at[0]));
	e->at[e->n++] = e->text.n;
	buf_printf(&e->text, "%s=%s%c", name, value, 0);
}

static void put_all(struct environment *e, const struct fetch *f)
{
	const char *home = getenv("HOME");

	put(e, "DEBUGINFOD_URLS", f->urls);
	put(e, "HOME", home ? home : "/var/cache");
	for (size_t i = 0; i < N_PASSED; i++)
		put(e, passed[i],
		    f->cache && !strcmp(passed[i], "DEBUGINFOD_CACHE_PATH") ? f->cache
									    : getenv(passed[i]));
}

static int start(struct fetch *f, struct fetched *k)
{
	char max_bytes[24], cache_bytes[24];
	const char *argv[] = {f->program,
			      "--max-bytes",
			      max_bytes,
			      "--cache-bytes",
			      cache_bytes,
			      k->build_id,
			      f->lines_only ? "--lines" : NULL,
			      NULL};
	struct environment e = {.n = 0};
	const char *envp[N_PASSED + 3];
	struct andiron_spawn spawn = {.size = sizeof(spawn),
				      .argv = argv,
				      .envp = envp,
				      .deadline_ns = FETCH_DEADLINE_NS,
				      .max_output = 8192};
	int r;

	snprintf(max_bytes, sizeof(max_bytes), "%llu", (unsigned long long)f->max_bytes);
	snprintf(cache_bytes, sizeof(cache_bytes), "%llu", (unsigned long long)f->cache_bytes);
	put_all(&e, f);
	for (size_t i = 0; i < e.n; i++)
		envp[i] = e.text.p + e.at[i];
	envp[e.n] = NULL;
	r = e.text.failed ? -ENOMEM : f->abi.host->spawn(f->abi.instance, &spawn, ended, k);
	buf_free(&e.text);
	return r;
}

void fetch_start(struct fetch *f)
{
	vec_each (&f->known, k) {
		int r;

		if (f->n_running >= FETCH_RUNNING_MAX)
			return;
		if ((*k)->state != WANTED)
			continue;
		(*k)->state = RUNNING;
		f->n_running++;
		r = find_program(f);
		if (r == 0)
			r = start(f, *k);
		if (r == 0)
			continue;
		f->n_running--;
		f->n_failed++;
		(*k)->state = ABSENT;
		(*k)->retry_ns = clock_mono() + FETCH_RETRY_NS;
		abi_log(&f->abi, ANDIRON_LOG_WARN,
			"debug files cannot be fetched: %s does not start (error %d); "
			"it belongs beside the plugin's file",
			f->program ? f->program : PROGRAM, -r);
	}
}
