/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. A recording is a configuration like any other: sampler, then file writer. What
 * cannot be said in it cannot be recorded, so `run` is never poorer than `record`. */
#include "cli/record/request.h"

#include "base/clock.h"
#include "base/str.h"
#include "host/config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_TITLE        2048
#define DEFAULT_DURATION (10 * NS_PER_SEC)

/* Counts are read this often. The end of a recording reads what is left, so this bounds memory, not
 * completeness. */
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

/* Takes "-" out of the outputs. */
static void take_stdout(struct record_request *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->outputs.n; i++)
		if (strcmp(q->outputs.p[i], "-") == 0)
			q->to_stdout = true;
		else
			q->outputs.p[n++] = q->outputs.p[i];
	q->outputs.n = n;
}

static int choose_outputs(struct record_request *q, struct error *err)
{
	int r = 0;

	take_stdout(q);
	q->chose_outputs = q->outputs.n == 0 && !q->to_stdout;
	if (q->chose_outputs && (!vec_push(&q->outputs, (const char *)"flame.html") ||
				 !vec_push(&q->outputs, (const char *)"profile.pb.gz")))
		return error_set(err, -ENOMEM, "out of memory");
	if (q->to_stdout && isatty(STDOUT_FILENO) == 1)
		return error_set(err, -EINVAL,
				 "-o - writes pprof, which is binary, and standard output is a "
				 "terminal; send it on: andiron record -o - | COMMAND, or > FILE");
	for (size_t i = 0; i < q->outputs.n && r == 0; i++)
		r = check_output(q->outputs.p[i], err);
	return r;
}

int record_check_pid(void *n_checked, pid_t pid, struct error *err)
{
	size_t *n = n_checked;

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
	r = record_each_pid(q, record_check_pid, &n_pids, err);
	if (r < 0)
		return r;
	return choose_outputs(q, err);
}

/* --- The text --- */

static void add_item(struct buf *out, struct str text)
{
	config_quote(out, text);
	buf_putc(out, ',');
}

static void add_groups(const struct record_request *q, struct buf *out)
{
	struct str rest = str_of(q->group_by);

	if (!q->group_by)
		return;
	buf_printf(out, "  group_by = [");
	while (rest.n)
		add_item(out, str_trim(str_cut(&rest, ',')));
	buf_printf(out, "]\n");
}

/* What was recorded, for the picture's heading; words that are no text are left out. */
static void add_title(const struct record_request *q, struct buf *out)
{
	char host[HOST_NAME_MAX + 1] = "this machine";
	struct buf title = BUF_NULL;

	for (char **word = q->command; word && *word && title.n < MAX_TITLE; word++)
		if (str_utf8(str_of(*word)))
			buf_printf(&title, word == q->command ? "%s" : " %s", *word);
	for (size_t i = 0; i < q->pids.n; i++)
		buf_printf(&title, i ? ",%s" : "process %s", q->pids.p[i]);
	if (!q->command && q->pids.n == 0 && gethostname(host, sizeof(host)) == 0)
		host[HOST_NAME_MAX] = '\0';
	if (!q->command && q->pids.n == 0)
		buf_str_append(&title, str_of(host));
	config_quote(out, buf_str(&title));
	out->failed |= title.failed;
	buf_free(&title);
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
		   "  comm             = \"label\"\n"
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
	vec_each (&q->outputs, path)
		add_item(out, str_of(*path));
	if (q->aside)
		add_item(out, str_of(q->aside));
	buf_printf(out, "]\n");
	add_groups(q, out);
	buf_printf(out, "}\n");
	return out->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}
