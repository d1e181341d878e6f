/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See request.h. A recording is a configuration like any other: sampler, then
 * file writer. What cannot be said in it cannot be recorded, so `run` is never
 * poorer than `record`.
 */
#include "cli/record/request.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_TITLE 2048
#define DEFAULT_DURATION (10 * NS_PER_SEC)

/* Counts are read this often. The end of a recording reads what is left, so
 * this bounds memory, not completeness. */
#define READ_INTERVAL "5s"

static const char *const suffixes[] = {".html", ".pb.gz", ".folded"};

#define N_SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

/* --- Checks --- */

static int check_output(const char *path, struct error *err)
{
	struct str name = str_of(path);
	char folder[PATH_MAX];
	size_t slash = str_rfind(name, '/');
	bool known = false;

	for (size_t i = 0; i < N_SUFFIXES; i++)
		known |= name.n > strlen(suffixes[i]) && str_ends(name, str_of(suffixes[i]));
	if (!known)
		return error_set(err, -EINVAL,
				 "what should be in %s? The name must end in .html (flame graph), "
				 ".pb.gz (pprof) or .folded (text)",
				 path);
	if (!str_utf8(name))
		return error_set(err, -EINVAL, "the name %s is not UTF-8", path);
	if (slash == name.n)
		snprintf(folder, sizeof(folder), ".");
	else
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash ? slash : 1), path);
	if (access(folder, W_OK | X_OK) < 0) {
		error_errno(err, -errno, "cannot write into %s", folder);
		return -EINVAL;
	}
	return 0;
}

static int check_pid(void *context, pid_t pid, struct error *err)
{
	size_t *n = context;

	(*n)++;
	if (kill(pid, 0) < 0 && errno == ESRCH)
		return error_set(err, -EINVAL, "there is no process %d; `ps -e` lists them", pid);
	return 0;
}

int record_each_pid(const struct record_request *request,
		    int (*fn)(void *context, pid_t pid, struct error *err), void *context,
		    struct error *err)
{
	for (size_t i = 0; i < request->pids.n; i++) {
		struct str rest = str_of(request->pids.p[i]);

		do {
			struct str word = str_trim(str_cut(&rest, ','));
			uint64_t pid;
			int r;

			if (!str_u64(word, &pid) || pid == 0 || pid > INT_MAX)
				return error_set(err, -EINVAL, "\"%.*s\" is no process id",
						 STR_FMT(word));
			r = fn(context, (pid_t)pid, err);
			if (r != 0)
				return r;
		} while (rest.n > 0);
	}
	return 0;
}

int record_check(struct record_request *q, struct error *err)
{
	size_t n_pids = 0;
	int r;

	if (q->everything && q->pids.n > 0)
		return error_set(err, -EINVAL,
				 "-a records every process and -p some; choose one of the two");
	if (q->command && q->pids.n > 0)
		return error_set(
			err, -EINVAL,
			"a command is recorded by itself; leave -p away, or take -a for all");
	if (!q->command && q->pids.n == 0)
		q->everything = true;
	if (!q->command && q->duration_ns == 0)
		q->duration_ns = DEFAULT_DURATION;
	r = record_each_pid(q, check_pid, &n_pids, err);
	if (r < 0)
		return r;
	q->chose_outputs = q->outputs.n == 0;
	if (q->chose_outputs && (!vec_push(&q->outputs, (const char *)"flame.html") ||
				 !vec_push(&q->outputs, (const char *)"profile.pb.gz")))
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < q->outputs.n; i++)
		if ((r = check_output(q->outputs.p[i], err)) < 0)
			return r;
	return 0;
}

/* --- The text --- */

/* A string of the configuration language. */
static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_putc(out, *text);
	}
}

static void add_quoted(struct buf *out, const char *text)
{
	buf_putc(out, '"');
	add_escaped(out, text);
	buf_putc(out, '"');
}

/* What was recorded, for the picture's heading; words that are no text are
 * left out. */
static void add_title(const struct record_request *q, struct buf *out)
{
	char host[HOST_NAME_MAX + 1] = "this machine";

	buf_putc(out, '"');
	for (char **word = q->command; word && *word && out->n < MAX_TITLE; word++)
		if (str_utf8(str_of(*word))) {
			add_escaped(out, word == q->command ? "" : " ");
			add_escaped(out, *word);
		}
	for (size_t i = 0; i < q->pids.n; i++)
		buf_printf(out, i ? ",%s" : "process %s", q->pids.p[i]);
	if (!q->command && q->pids.n == 0 && gethostname(host, sizeof(host)) == 0)
		host[HOST_NAME_MAX] = '\0';
	if (!q->command && q->pids.n == 0)
		add_escaped(out, host);
	buf_putc(out, '"');
}

static int add_target(void *context, pid_t pid, struct error *err)
{
	return buf_printf(context, "\n    {\"__process_pid__\" = \"%d\"},", pid);
}

int record_config(const struct record_request *q, pid_t command, struct buf *out, struct error *err)
{
	int r;

	buf_printf(out,
		   "pyroscope.ebpf \"record\" {\n"
		   "  forward_to       = [profile.file.record.receiver]\n"
		   "  sample_rate      = %llu\n"
		   "  collect_interval = \"" READ_INTERVAL "\"\n"
		   "  demangle         = \"full\"\n"
		   "  pid_label        = true\n"
		   "  targets_only     = %s\n",
		   (unsigned long long)q->rate_hz, q->everything ? "false" : "true");
	if (!q->everything) {
		buf_printf(out, "  follow           = %s\n  targets          = [",
			   command ? "true" : "false");
		r = record_each_pid(q, add_target, out, err);
		if (r < 0)
			return r;
		if (command)
			add_target(out, command, err);
		buf_printf(out, "\n  ]\n");
	}
	buf_printf(out, "}\n\nprofile.file \"record\" {\n  title = ");
	add_title(q, out);
	buf_printf(out, "\n  paths = [");
	for (size_t i = 0; i < q->outputs.n; i++) {
		buf_printf(out, i ? ", " : "");
		add_quoted(out, q->outputs.p[i]);
	}
	if (q->aside) {
		buf_printf(out, ", ");
		add_quoted(out, q->aside);
	}
	buf_printf(out, "]\n}\n");
	return out->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}
