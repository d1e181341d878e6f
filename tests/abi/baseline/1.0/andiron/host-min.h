/* SPDX-License-Identifier: Apache-2.0 */
/* A small host, for a program that drives single plugins itself. Include it in one source file, and
 * a component is eight calls away:
 *
 *     andiron_min_open(&loop);
 *     component = andiron_min_find("andiron-process.so", "discovery.process", &why);
 *     andiron_min_create(&part, &loop, component, &args);
 *     andiron_min_start(&part);
 *     while (…)
 *             andiron_min_turn(&loop, -1);
 *     andiron_min_drain(&part, deadline_ns);
 *     andiron_min_end(&part);
 *     andiron_min_close(&loop);
 *
 * It is no part of the ABI: nothing here crosses to a plugin but a table of functions, which is
 * host.h's. Whoever needs more copies the table, puts functions of his own in it, and sets a part's
 * `host` to the copy, which lives as long as the process.
 *
 * One thread is everything: [loop], [worker], and the caller of all that follows. So every call is
 * [serial], and a component that works for long holds up the others. Calls from a plugin's own
 * threads are queued. Timers are descriptors, so one poll waits for all there is.
 *
 * `instance` is the part's address: no table of ids, and no global variables. So a part lives
 * until its loop is closed.
 *
 * The component waits while `on_targets`, `extension` or the loop's `log` run, so they neither
 * drain nor end a part. `on_batch` may do both. None of them closes the loop.
 *
 * What it does not have: spawn (-ENOSYS), extensions but those of the part's `extension`, a queue
 * for each consumer (one for all, of ANDIRON_MIN_QUEUE_BYTES), targets for late consumers (it keeps
 * none, and does not call `resend`: start consumers first), reasons in the ledger, and all behind
 * `extension` in host.h. */
#ifndef ANDIRON_HOST_MIN_H
#define ANDIRON_HOST_MIN_H

#include <andiron/host-min-table.h>
#include <andiron/plugin.h>
#include <dlfcn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values, for arguments. All are borrowed: they live as long as what they are made of. */

ANDIRON_MIN_FN struct andiron_value andiron_min_value(uint32_t kind)
{
	struct andiron_value v;

	memset(&v, 0, sizeof(v));
	v.kind = kind;
	return v;
}

/* A BOOL or an INT; a duration is an INT of nanoseconds. */
ANDIRON_MIN_FN struct andiron_value andiron_min_number(uint32_t kind, int64_t integer)
{
	struct andiron_value v = andiron_min_value(kind);

	v.integer = integer;
	return v;
}

ANDIRON_MIN_FN struct andiron_value andiron_min_string(const char *text)
{
	struct andiron_value v = andiron_min_value(ANDIRON_VALUE_STRING);

	v.string.ptr = text;
	v.string.len = strlen(text);
	return v;
}

ANDIRON_MIN_FN struct andiron_value andiron_min_list(const struct andiron_value *items, uint64_t n)
{
	struct andiron_value v = andiron_min_value(ANDIRON_VALUE_LIST);

	v.items = items;
	v.n_items = n;
	return v;
}

ANDIRON_MIN_FN struct andiron_value andiron_min_map(const struct andiron_str *keys,
						    const struct andiron_value *items, uint64_t n)
{
	struct andiron_value v = andiron_min_value(ANDIRON_VALUE_MAP);

	v.keys = keys;
	v.items = items;
	v.n_items = n;
	return v;
}

/* The calls. All on one thread; 0 or a negative errno. */

/* Opens a plugin's file and finds a component in it. NULL, and why: dlerror's text or one of ours.
 * It does not know what the caller's parts will offer, so it takes no plugin with `needs` (a
 * component's own `needs` are the caller's to meet). The file is never closed. */
ANDIRON_MIN_FN const struct andiron_component *andiron_min_find(const char *file, const char *name,
								const char **ret_why)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	const struct andiron_plugin *plugin =
		library ? (const struct andiron_plugin *)dlsym(library, ANDIRON_PLUGIN_SYMBOL)
			: NULL;

	if (!plugin) {
		*ret_why = dlerror();
		return NULL;
	}
	if (plugin->needs && plugin->needs[0]) {
		*ret_why = "the plugin has `needs`, which andiron_min_find does not support: open "
			   "it with dlopen, and offer what it needs in the part's `extension`";
		return NULL;
	}
	for (uint64_t i = 0; i < plugin->n_components; i++)
		if (strcmp(plugin->components[i]->name, name) == 0)
			return plugin->components[i];
	*ret_why = "the file has no component of that name";
	return NULL;
}

ANDIRON_MIN_FN int32_t andiron_min_open(struct andiron_min_loop *loop)
{
	struct epoll_event e;
	int32_t r;

	e.events = EPOLLIN;
	e.data.u64 = 0;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	if (loop->epoll < 0 || loop->wake < 0 ||
	    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &e) < 0)
		r = -errno;
	else
		r = -pthread_mutex_init(&loop->lock, NULL);
	if (r < 0 && loop->epoll >= 0)
		close(loop->epoll);
	if (r < 0 && loop->wake >= 0)
		close(loop->wake);
	return r;
}

/* Once every part has ended. */
ANDIRON_MIN_FN void andiron_min_close(struct andiron_min_loop *loop)
{
	while (loop->sources)
		andiron_min_source_remove(loop, loop->sources->id);
	close(loop->epoll);
	close(loop->wake);
	pthread_mutex_destroy(&loop->lock);
}

/* A line of the log for each warning that `validate` gave. */
ANDIRON_MIN_FN void andiron_min_log_report(const struct andiron_min *part,
					   const struct andiron_report *report)
{
	struct andiron_str line;

	for (line.ptr = report->text; *line.ptr; line.ptr += line.len + (line.ptr[line.len] != 0)) {
		line.len = strcspn(line.ptr, "\n");
		part->host->log((uint64_t)(uintptr_t)part, ANDIRON_LOG_WARN, &line, NULL, 0);
	}
}

/* -EINVAL where the component finds errors in its arguments. Why a call failed is in
 * part->error. Warnings are logged. */
ANDIRON_MIN_FN int32_t andiron_min_create(struct andiron_min *part, struct andiron_min_loop *loop,
					  const struct andiron_component *component,
					  const struct andiron_value *args)
{
	struct andiron_report report;

	memset(&report, 0, sizeof(report));
	part->loop = loop;
	part->component = component;
	if (!part->host)
		part->host = andiron_min_host();
	if (component->validate)
		component->validate(part->host, args, &report);
	if (report.n_errors)
		return part->host->error_add(&part->error, -EINVAL, report.text,
					     strlen(report.text));
	andiron_min_log_report(part, &report);
	return component->create(part->host, (uint64_t)(uintptr_t)part, args, &part->self,
				 &part->error);
}

ANDIRON_MIN_FN int32_t andiron_min_start(struct andiron_min *part)
{
	return part->component->start(part->self, &part->error);
}

/* Makes the first call that waits. It waits no longer while it is made, so `on_batch` can wait for
 * those behind it. */
ANDIRON_MIN_FN void andiron_min_run_call(struct andiron_min_loop *loop)
{
	struct andiron_min_call *call;

	pthread_mutex_lock(&loop->lock);
	call = loop->calls;
	if (call) {
		loop->calls = call->next;
		call->part->pending--;
	}
	pthread_mutex_unlock(&loop->lock);
	if (!call)
		return;
	if (call->run)
		call->run(call->arg);
	if (call->done)
		call->done(call->arg);
	if (call->batch) {
		call->part->on_batch(call->part->context, call->batch);
		pthread_mutex_lock(&loop->lock);
		loop->queued_bytes -= call->batch->bytes;
		pthread_mutex_unlock(&loop->lock);
		call->batch->release(call->batch->owner);
	}
	free(call);
}

/* One descriptor or timer is ready. */
ANDIRON_MIN_FN void andiron_min_ready(struct andiron_min_loop *loop, uint64_t id, uint32_t events)
{
	const struct andiron_min_source *found = andiron_min_source_of(loop, id);
	struct andiron_min_source s;
	uint64_t count;

	if (!found)
		return;
	s = *found; /* the call may remove it */
	if (events & (EPOLLERR | EPOLLHUP))
		events |= ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT;
	if (!s.is_timer) {
		s.on_ready(s.arg, s.fd, events & (ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT));
		return;
	}
	if (read(s.fd, &count, sizeof(count)) < 0)
		return; /* not yet due */
	if (!s.is_periodic)
		andiron_min_source_remove(loop, s.id);
	s.on_time(s.arg);
}

/* Waits for something to do, at most so long (-1: for ever), and does it: one call that waits, or
 * one timer, or one descriptor. 1: there was something. */
ANDIRON_MIN_FN int32_t andiron_min_turn(struct andiron_min_loop *loop, int32_t timeout_ms)
{
	struct epoll_event e;
	int n = epoll_wait(loop->epoll, &e, 1, timeout_ms);
	uint64_t count;

	if (n <= 0)
		return n < 0 && errno != EINTR ? -errno : 0;
	if (e.data.u64 != 0)
		andiron_min_ready(loop, e.data.u64, e.events);
	else if (read(loop->wake, &count, sizeof(count)) > 0)
		andiron_min_run_call(loop);
	return 1;
}

ANDIRON_MIN_FN int64_t andiron_min_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Has a component deliver what it holds, and waits until it says that it has, and none of its calls
 * waits; or its deadline has passed by a second (-ETIMEDOUT). */
ANDIRON_MIN_FN int32_t andiron_min_drain(struct andiron_min *part, int64_t deadline_ns)
{
	const int64_t end = andiron_min_now() + deadline_ns + 1000000000;
	int32_t r = 0, is_drained = 0;

	part->is_drained = !part->component->drain;
	if (!part->is_drained)
		r = part->component->drain(part->self, deadline_ns);
	while (r >= 0 && !is_drained) {
		pthread_mutex_lock(&part->loop->lock);
		is_drained = part->is_drained && !part->pending;
		pthread_mutex_unlock(&part->loop->lock);
		if (!is_drained)
			r = andiron_min_now() < end ? andiron_min_turn(part->loop, 100)
						    : -ETIMEDOUT;
	}
	return r < 0 ? r : 0;
}

/* Stops it, lets its work come back, and frees it; also after a `create` or `start` that failed.
 * Nothing where it is ending already: `on_batch` may be called meanwhile, and end it as well. */
ANDIRON_MIN_FN void andiron_min_end(struct andiron_min *part)
{
	uint64_t pending;

	if (!part->self || part->is_ending)
		return;
	part->is_ending = 1;
	part->component->stop(part->self);
	do {
		pthread_mutex_lock(&part->loop->lock);
		pending = part->pending;
		part->gone = !pending;
		pthread_mutex_unlock(&part->loop->lock);
		if (pending)
			andiron_min_turn(part->loop, -1);
	} while (pending);
	part->component->destroy(part->self);
	part->self = NULL;
}

#ifdef __cplusplus
}
#endif

#endif
