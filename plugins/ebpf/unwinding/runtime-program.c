/* SPDX-License-Identifier: Apache-2.0 */
/* BPF programs of language runtimes, loaded beside those of a session: see runtimes.h. The end of
 * the verifier's text goes to the log. The kernel verifies for 20 to 250 ms, so a thread waits for
 * it that shares nothing but descriptors; meanwhile the ring is read. */
#include "ebpf/kernel/session.h"
#include "ebpf/unwinding/runtimes.h"

#include "base/str.h"
#include "proc/thread.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG_BYTES                                                                                  \
	(1u << 20) /* of the verifier's; before Linux 6.4 it keeps the beginning, not the end */

/* The verifier's last lines, in one, without its statistics and the program's text. */
static void last_lines(const char *log, char *ret, size_t n)
{
	struct str rest = str_trim(str_of(log)), lines[2];
	size_t count = 0, at = 0;

	while (rest.n > 0 && count < 2) {
		size_t newline = str_rfind(rest, '\n');
		struct str line = newline < rest.n ? str_skip(rest, newline + 1) : rest;

		rest = newline < rest.n ? str_trim(str_first(rest, newline)) : STR_NULL;
		if (!str_starts(line, STR("processed ")) && !str_starts(line, STR(";")))
			lines[count++] = str_first(line, 200);
	}
	ret[0] = '\0';
	while (count-- > 0 && at < n) {
		int r = snprintf(ret + at, n - at, "%s%.*s", at ? "; " : "", STR_FMT(lines[count]));

		at += r > 0 ? (size_t)r : 0;
	}
}

static int share_map(struct bpf_object *object, const char *name, int fd, struct error *err)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	int r = map ? bpf_map__reuse_fd(map, fd) : -ENOENT;

	return r == 0 ? 0
		      : error_errno(err, r, "its object cannot share the sampler's map \"%s\"",
				    name);
}

static bool is_shared(const struct bpf_map *map)
{
	struct str name = str_of(bpf_map__name(map));

	return str_is(name, "walks") || str_is(name, "programs");
}

/* One that is loaded, at first by a thread of its own, whose alone all but `done` is until then. */
struct runtime_program {
	const struct andiron_runtime *table;
	int walks_fd, programs_fd;
	struct bpf_object *object;   /* NULL: it could not be loaded */
	struct bpf_program *program; /* the one that is called */
	int code;                    /* what came of it */
	struct error error;
	pthread_t thread;
	bool joined;
	atomic_bool done;
};

/* All programs of the object. */
static int load_object(struct runtime_program *p)
{
	struct bpf_program *program;
	int code;

	bpf_object__for_each_program (program, p->object)
		bpf_program__set_type(program, BPF_PROG_TYPE_PERF_EVENT);
	p->program = bpf_object__find_program_by_name(p->object, p->table->program);
	if (!p->program)
		return error_set(&p->error, -ENOENT, "its object has no program \"%s\"",
				 p->table->program);
	code = share_map(p->object, "walks", p->walks_fd, &p->error);
	if (code == 0)
		code = share_map(p->object, "programs", p->programs_fd, &p->error);
	return code == 0 ? bpf_object__load(p->object) : code;
}

static int open_and_load(struct runtime_program *p)
{
	char *log = calloc(1, LOG_BYTES), why[512];
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "andiron_runtime",
		    .kernel_log_buf = log, .kernel_log_size = LOG_BYTES);
	int code;

	if (!log)
		return error_set(&p->error, -ENOMEM, "out of memory");
	p->object = bpf_object__open_mem(p->table->object, p->table->object_bytes, &options);
	code = p->object ? load_object(p)
			 : error_errno(&p->error, -errno, "its object cannot be read");
	last_lines(log, why, sizeof(why));
	free(log);
	if (code == 0 || p->error.code != 0)
		return code;
	return why[0] ? error_set(&p->error, code, "the kernel refused its program: %s", why)
		      : error_errno(&p->error, code, "the kernel refused its object");
}

static void *run(void *arg)
{
	struct runtime_program *p = arg;

	p->code = open_and_load(p);
	atomic_store(&p->done, true);
	return NULL;
}

static void join(struct runtime_program *p)
{
	if (!p->joined)
		pthread_join(p->thread, NULL);
	p->joined = true;
}

static void free_program(struct runtime_program *p)
{
	join(p);
	bpf_object__close(p->object);
	free(p);
}

/* Begins to load it; where there can be no thread, in this one. */
static struct runtime_program *start(const struct session *session,
				     const struct andiron_runtime *table)
{
	struct runtime_program *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->table = table;
	p->walks_fd = session_walks_fd(session);
	p->programs_fd = session_programs_fd(session);
	if (thread_start(&p->thread, NULL, run, p) != 0) {
		p->joined = true;
		run(p);
	}
	return p;
}

/* Lets walks call it. */
static int put_program(const struct runtime_program *p, uint32_t slot, struct error *err)
{
	int fd = bpf_program__fd(p->program);

	if (p->code != 0) {
		*err = p->error;
		return p->code;
	}
	if (bpf_map_update_elem(p->programs_fd, &slot, &fd, BPF_ANY) == 0)
		return 0;
	return error_errno(err, -errno, "the kernel does not take its program for a walk");
}

static int load(void *context, uint32_t slot, const struct andiron_runtime *table, void **program,
		struct error *err)
{
	struct runtime_program *p = *program;
	int code;

	if (session_programs_fd(context) < 0)
		return error_set(
			err, -ENOTSUP,
			"walks are one program on this kernel, which can call no other; on arm64 "
			"that takes Linux 6.0 or later");
	if (!p)
		*program = p = start(context, table);
	if (!p)
		return error_set(err, -ENOMEM, "out of memory");
	if (!atomic_load(&p->done))
		return -EINPROGRESS;
	join(p);
	code = put_program(p, slot, err);
	if (code == 0)
		return 0;
	free_program(p);
	*program = NULL;
	return code;
}

static uint64_t maps(void *program, struct andiron_runtime_map *ret, uint64_t max)
{
	uint64_t n = 0;
	struct bpf_map *map;

	bpf_object__for_each_map (map, ((struct runtime_program *)program)->object)
		if (!is_shared(map) && n < max)
			ret[n++] = (struct andiron_runtime_map){bpf_map__name(map),
								bpf_map__fd(map), 0};
	return n;
}

static void unload(void *context, uint32_t slot, void *program)
{
	struct runtime_program *p = program;

	bpf_map_delete_elem(p->programs_fd, &slot);
	free_program(p);
}

static int begin(void *context)
{
	session_load_continuation(context);
	return session_report_launches(context);
}

static void have_walks(void *context, bool any)
{
	session_continue_walks(context, any);
}

static void watch(void *context, const struct sampler_process_key *process, uint64_t generation)
{
	session_watch_program(context, process, generation);
}

struct runtimes_kernel runtime_programs(struct session *session)
{
	return (struct runtimes_kernel){session, load, maps, unload, begin, have_walks, watch};
}
