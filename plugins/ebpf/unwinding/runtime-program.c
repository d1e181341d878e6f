/* SPDX-License-Identifier: Apache-2.0 */
/* BPF programs of language runtimes, loaded beside those of a session: see runtimes.h. The end of
 * the verifier's text goes to the log. */
#include "ebpf/kernel/session.h"
#include "ebpf/unwinding/runtimes.h"

#include "base/str.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
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

/* All programs of the object; the one that is called in *ret. */
static int load_object(struct bpf_object *object, const struct session *session, const char *name,
		       struct bpf_program **ret, struct error *err)
{
	struct bpf_program *program;
	int code;

	bpf_object__for_each_program (program, object)
		bpf_program__set_type(program, BPF_PROG_TYPE_PERF_EVENT);
	*ret = bpf_object__find_program_by_name(object, name);
	if (!*ret)
		return error_set(err, -ENOENT, "its object has no program \"%s\"", name);
	code = share_map(object, "walks", session_walks_fd(session), err);
	if (code == 0)
		code = share_map(object, "programs", session_programs_fd(session), err);
	return code == 0 ? bpf_object__load(object) : code;
}

static int put_program(const struct session *session, uint32_t slot,
		       const struct bpf_program *program, struct error *err)
{
	int fd = bpf_program__fd(program);

	if (bpf_map_update_elem(session_programs_fd(session), &slot, &fd, BPF_ANY) == 0)
		return 0;
	return error_errno(err, -errno, "the kernel does not take its program for a walk");
}

static int load(void *context, uint32_t slot, const struct andiron_runtime *table,
		void **ret_program, struct error *err)
{
	char *log = session_programs_fd(context) >= 0 ? calloc(1, LOG_BYTES) : NULL, why[512];
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "andiron_runtime",
		    .kernel_log_buf = log, .kernel_log_size = LOG_BYTES);
	struct bpf_program *program = NULL;
	struct bpf_object *object;
	int code;

	if (session_programs_fd(context) < 0)
		return error_set(
			err, -ENOTSUP,
			"walks are one program on this kernel, which can call no other; on arm64 "
			"that takes Linux 6.0 or later");
	if (!log)
		return error_set(err, -ENOMEM, "out of memory");
	object = bpf_object__open_mem(table->object, table->object_bytes, &options);
	if (!object) {
		code = error_errno(err, -errno, "its object cannot be read");
		free(log);
		return code;
	}
	code = load_object(object, context, table->program, &program, err);
	last_lines(log, why, sizeof(why));
	free(log);
	if (code == 0)
		code = put_program(context, slot, program, err);
	if (code != 0 && err->code == 0)
		code = why[0] ? error_set(err, code, "the kernel refused its program: %s", why)
			      : error_errno(err, code, "the kernel refused its object");
	if (code == 0)
		*ret_program = object;
	else
		bpf_object__close(object);
	return code;
}

static uint64_t maps(void *program, struct andiron_runtime_map *ret, uint64_t max)
{
	uint64_t n = 0;
	struct bpf_map *map;

	bpf_object__for_each_map (map, (struct bpf_object *)program)
		if (!is_shared(map) && n < max)
			ret[n++] = (struct andiron_runtime_map){bpf_map__name(map),
								bpf_map__fd(map), 0};
	return n;
}

static void unload(void *context, uint32_t slot, void *program)
{
	bpf_map_delete_elem(session_programs_fd(context), &slot);
	bpf_object__close(program);
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

static void watch(void *context, const struct sampler_process_key *process)
{
	session_watch_program(context, process);
}

struct runtimes_kernel runtime_programs(struct session *session)
{
	return (struct runtimes_kernel){session, load, maps, unload, begin, have_walks, watch};
}
