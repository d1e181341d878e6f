/* SPDX-License-Identifier: Apache-2.0 */
/* Files in. Contract in input.h. */
#include "cli/report/input.h"

#include "cli/options.h"
#include "cli/report/shown.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "pprof/encode.h"
#include "pprof/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_stdin(const char *path)
{
	return strcmp(path, "-") == 0;
}

int input_check(const struct command *command, const char *const *paths, size_t n)
{
	size_t times = 0;

	for (size_t i = 0; i < n; i++)
		times += is_stdin(paths[i]);
	return times > 1 ? options_wrong(command, "- is standard input, which can be read once")
			 : OPTIONS_DONE;
}

const char *input_name(const char *path)
{
	return is_stdin(path) ? "standard input" : path;
}

static int read_stdin(struct profile **ret, struct error *err)
{
	struct buf data = {.limit = PROFILE_MAX_BYTES + 65536};
	int r = file_read_fd(STDIN_FILENO, &data, PROFILE_MAX_BYTES);

	if (r == -E2BIG)
		error_set(err, r, "more than %zu MB came", PROFILE_MAX_BYTES >> 20);
	else if (r < 0)
		error_errno(err, r, "cannot read it");
	else
		r = profile_decode(buf_str(&data), ret, err);
	buf_free(&data);
	return r < 0 ? error_wrap(err, r, "%s", input_name("-")) : 0;
}

static int note(struct input *in, const char *path, const struct profile *p)
{
	struct input_file f = {.name = input_name(path), .time_ns = p->time_ns};

	f.duration_ns = p->duration_ns > 0 ? p->duration_ns : 0;
	f.is_cpu = profile_cpu_time(p, &f.cpu_ns);
	in->is_cpu = in->is_cpu && f.is_cpu;
	in->cpu_ns = pprof_sum(in->cpu_ns, f.cpu_ns);
	return vec_push(&in->files, f) ? 0 : -ENOMEM;
}

static int read_all(struct input *in, const char *const *paths, size_t n, struct error *err)
{
	_cleanup_(freep) struct profile **parts = calloc(n, sizeof(*parts));
	_cleanup_(freep) const char **names = calloc(n, sizeof(*names));
	size_t n_read = 0;
	int r = parts && names ? 0 : -ENOMEM;

	in->is_cpu = true;
	for (; r == 0 && n_read < n; n_read++) {
		names[n_read] = input_name(paths[n_read]);
		r = is_stdin(paths[n_read]) ? read_stdin(&parts[n_read], err)
					    : profile_read(paths[n_read], &parts[n_read], err);
		if (r < 0)
			break;
		r = note(in, paths[n_read], parts[n_read]);
	}
	if (r == 0)
		return profile_merge(parts, names, n, &in->p, err);
	for (size_t i = 0; i < n_read; i++)
		profile_free(parts[i]);
	return r;
}

bool input_read(struct input *in, const char *verb, const char *const *paths, size_t n)
{
	struct error err = ERROR_NULL;
	struct buf text = BUF_NULL;

	*in = INPUT_NULL;
	if (read_all(in, paths, n, &err) == 0)
		return true;
	shown_text(&text, err.code ? str_of(err.text) : STR("out of memory"), 0);
	fprintf(stderr, "andiron %s: %.*s\n", verb, STR_FMT(buf_str(&text)));
	buf_free(&text);
	input_fini(in);
	return false;
}

void input_fini(struct input *in)
{
	profile_free(in->p);
	vec_free(&in->files);
	*in = INPUT_NULL;
}
