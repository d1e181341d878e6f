/* SPDX-License-Identifier: Apache-2.0 */
/* Files watched. Contract in files.h. A quick reader would see a file that is written in place half
 * written, so changes are gathered until nothing has changed for a moment. */
#include "discovery/files.h"

#include "abi/value.h"
#include "base/clock.h"
#include "discovery/read-files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define QUIET_NS   (20 * NS_PER_MSEC)
#define LONGEST_NS (500 * NS_PER_MSEC) /* of waiting for quiet */

struct files {
	struct abi_context context;
	struct arena arena;
	struct sources sources;
	VEC(struct str) patterns;
	int64_t refresh_ns;
	int watch_fd;
	uint64_t watch, refresh_timer, gather_timer;
	int64_t changed_ns; /* the first change that was not read; 0: none */
	bool reading, stopped;
	struct files_counts counts;
};

struct reading {
	struct files *f;
	struct read_files found;
	int result;
};

const char *files_pattern_fault(struct str pattern)
{
	static const char *const endings[] = {".json", ".yml", ".yaml", ".JSON", ".YML", ".YAML"};
	size_t star = str_find(pattern, '*'), slash = str_rfind(pattern, '/');
	bool ends = false;

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		ends |= str_ends(pattern, str_of(endings[i]));
	if (!ends)
		return "ends with none of .json, .yml and .yaml";
	if (star < pattern.n && slash < pattern.n && star < slash)
		return "has a * in a folder's name: it may stand in that of the file only";
	return memchr(pattern.p, '\0', pattern.n) ? "holds a NUL byte" : NULL;
}

int32_t files_create(const struct andiron_host *host, uint64_t instance,
		     const struct andiron_value *args, void **ret_self,
		     struct andiron_error *ret_err)
{
	const struct andiron_value *list = value_get(args, "files");
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->context = (struct abi_context){host, instance};
	f->watch_fd = -1;
	f->refresh_ns = value_int(args, "refresh_interval", 300 * NS_PER_SEC);
	for (uint64_t i = 0; list && i < list->n_items; i++) {
		struct str pattern = arena_str(&f->arena, abi_str(list->items[i].string));

		if (!pattern.p || !vec_push(&f->patterns, pattern)) {
			files_free(f);
			return -ENOMEM;
		}
	}
	if (sources_init(&f->sources, &f->context) < 0) {
		files_free(f);
		return -ENOMEM;
	}
	*ret_self = f;
	return 0;
}

void files_free(void *self)
{
	struct files *f = self;

	if (!f)
		return;
	if (f->watch_fd >= 0)
		close(f->watch_fd);
	sources_fini(&f->sources);
	vec_free(&f->patterns);
	arena_free(&f->arena);
	free(f);
}

static void read_again(void *context);

/* Reads when it has been quiet; what changed during a reading is read after it. */
static void changed(struct files *f)
{
	const struct andiron_host *host = f->context.host;
	int64_t now = clock_mono();

	if (!f->changed_ns)
		f->changed_ns = now;
	if (f->reading)
		return;
	if (f->gather_timer && now - f->changed_ns > LONGEST_NS)
		return;
	if (f->gather_timer)
		host->timer_cancel(f->context.instance, f->gather_timer);
	f->gather_timer = 0;
	if (host->timer_set(f->context.instance, QUIET_NS, 0, read_again, f, &f->gather_timer) < 0)
		host->post(f->context.instance, read_again, f);
}

/* What happened is not looked at, but that something did. */
static void on_watch(void *context, int32_t fd, uint32_t events)
{
	struct files *f = context;
	char events_read[4096];

	while (read(fd, events_read, sizeof(events_read)) > 0)
		;
	changed(f);
}

static void use_watch(struct files *f, int fd)
{
	const struct andiron_host *host = f->context.host;

	if (f->watch)
		host->watch_remove(f->context.instance, f->watch);
	f->watch = 0;
	if (f->watch_fd >= 0)
		close(f->watch_fd);
	f->watch_fd = fd;
	if (fd >= 0 && host->watch_add(f->context.instance, fd, ANDIRON_WATCH_IN, on_watch, f,
				       &f->watch) < 0)
		f->watch = 0;
}

/* The first trouble is the health; each new one is a line of the log. */
static void say_state(struct files *f, const struct read_files *found)
{
	const struct source *first = NULL;
	char every[32], left_out[128] = "";

	if (found->left_out)
		snprintf(left_out, sizeof(left_out),
			 "%zu files are not read: no more than %d are; put more groups into each",
			 found->left_out, FILES_MAX);
	vec_each (&f->sources.all, source)
		if (source->fault && !first)
			first = source;
	if (first)
		abi_health(&f->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%s cannot be used: %s; the targets that it had stay%s%s", first->name,
			   first->fault, left_out[0] ? "; " : "", left_out);
	else if (found->left_out)
		abi_health(&f->context, ANDIRON_HEALTH_UNHEALTHY, "%s", left_out);
	else if (found->unwatched)
		abi_health(&f->context, ANDIRON_HEALTH_HEALTHY,
			   "%zu targets in %zu files; %d folders cannot be watched, and are read "
			   "every %s",
			   sources_count(&f->sources), f->sources.all.n, found->unwatched,
			   duration_format(f->refresh_ns, every, sizeof(every)));
	else
		abi_health(&f->context, ANDIRON_HEALTH_HEALTHY, "%zu targets in %zu files",
			   sources_count(&f->sources), f->sources.all.n);
}

static int take(struct files *f, const struct read_files *found)
{
	int r = 0;

	vec_each (&f->sources.all, source)
		source->present = false;
	vec_each (&found->all, file) {
		struct source *source = sources_get(&f->sources, file->path);

		if (!source)
			return -ENOMEM;
		source->present = true;
		source_fail(source, file->fault);
		f->counts.failures += file->fault != NULL;
		if (!file->fault && sources_set(&f->sources, source, &file->rows) < 0)
			r = -ENOMEM;
	}
	if (r == 0)
		sources_sweep(&f->sources);
	return r < 0 ? r : sources_publish(&f->sources);
}

static void on_reading(void *context)
{
	struct reading *r = context;

	r->result = read_files(r->f->patterns.p, r->f->patterns.n, &r->found);
}

static void on_read(void *context)
{
	struct reading *r = context;
	struct files *f = r->f;

	f->reading = false;
	if (!f->stopped && r->result == 0) {
		f->counts.reads++;
		use_watch(f, r->found.watch_fd);
		r->found.watch_fd = -1;
		r->result = take(f, &r->found);
		if (r->result == 0)
			say_state(f, &r->found);
	}
	if (!f->stopped && r->result < 0)
		abi_health(&f->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: the targets are not up to date");
	read_files_free(&r->found);
	free(r);
	if (!f->stopped && f->changed_ns)
		changed(f);
}

static void read_again(void *context)
{
	struct files *f = context;
	struct reading *r;

	f->gather_timer = 0;
	if (f->stopped || f->reading)
		return;
	f->changed_ns = 0;
	r = calloc(1, sizeof(*r));
	if (r)
		*r = (struct reading){.f = f, .found.watch_fd = -1};
	f->reading = r && f->context.host->work(f->context.instance, on_reading, on_read, r) == 0;
	if (!f->reading)
		free(r); /* the next refresh tries again */
}

static void on_refresh(void *context)
{
	read_again(context);
}

int32_t files_start(void *self, struct andiron_error *err)
{
	struct files *f = self;
	int r = f->context.host->timer_set(f->context.instance, f->refresh_ns, f->refresh_ns,
					   on_refresh, f, &f->refresh_timer);

	if (r == 0)
		read_again(f);
	return r;
}

void files_stop(void *self)
{
	struct files *f = self;
	const struct andiron_host *host = f->context.host;

	f->stopped = true;
	use_watch(f, -1);
	if (f->refresh_timer)
		host->timer_cancel(f->context.instance, f->refresh_timer);
	if (f->gather_timer)
		host->timer_cancel(f->context.instance, f->gather_timer);
	f->refresh_timer = f->gather_timer = 0;
}

struct files_counts files_counts(const void *self)
{
	const struct files *f = self;
	struct files_counts c = f->counts;

	c.files = f->sources.all.n;
	c.targets = sources_count(&f->sources);
	return c;
}
