/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching debug files. Contract in fetch.h. */
#include "fetch.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define CLIENT "/usr/bin/debuginfod-find"
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

int fetch_set(struct fetch *f, struct str urls, struct str cache)
{
	int r = replace(&f->urls, urls);

	return r < 0 ? r : replace(&f->cache, cache);
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
	if (id.n < 8 || id.n > BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i < id.n; i++)
		if (!memchr("0123456789abcdef", id.p[i], 16))
			return false;
	return true;
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

static int start(struct fetch *f, struct fetched *k)
{
	const char *const argv[] = {CLIENT, "debuginfo", k->build_id, NULL};
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	const char *envp[8];
	size_t at[4], n = 0;
	struct andiron_spawn spawn = {.size = sizeof(spawn),
				      .argv = argv,
				      .envp = envp,
				      .deadline_ns = FETCH_DEADLINE_NS,
				      .max_output = 8192};

	at[n++] = text.n;
	buf_printf(&text, "DEBUGINFOD_URLS=%s%c", f->urls, 0);
	at[n++] = text.n;
	buf_printf(&text, "DEBUGINFOD_MAXSIZE=%llu%c", (unsigned long long)FETCH_MAX_BYTES, 0);
	at[n++] = text.n;
	buf_printf(&text, "HOME=%s%c", getenv("HOME") ? getenv("HOME") : "/var/cache", 0);
	if (f->cache) {
		at[n++] = text.n;
		buf_printf(&text, "DEBUGINFOD_CACHE_PATH=%s%c", f->cache, 0);
	}
	if (text.failed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		envp[i] = text.p + at[i];
	envp[n] = NULL;
	return f->abi.host->spawn(f->abi.instance, &spawn, ended, k);
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
		r = start(f, *k);
		if (r == 0)
			continue;
		f->n_running--;
		f->n_failed++;
		(*k)->state = ABSENT;
		(*k)->retry_ns = clock_mono() + FETCH_RETRY_NS;
		abi_log(&f->abi, ANDIRON_LOG_WARN,
			"debug files cannot be fetched: " CLIENT
			" does not start (error %d); install it "
			"(Debian: debuginfod, Fedora: elfutils-debuginfod-client)",
			-r);
	}
}
