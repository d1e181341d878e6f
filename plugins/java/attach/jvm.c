/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in jvm.h. Formats: proc(5). */
#include "java/attach/jvm.h"

#include "base/file.h"
#include "java/attach/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_STATUS  (64u << 10)
#define MAX_CMDLINE (256u << 10)
#define MAX_MAPS    (16u << 20)
#define SIGQUIT_BIT 4u /* of a mask whose lowest bit is signal 1 */

static int read_of(uint32_t pid, const char *file, struct buf *out, size_t max, struct error *err)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	buf_clear(out);
	r = file_read(AT_FDCWD, path, out, max);
	if (r == -ENOENT || r == -ESRCH)
		return error_set(err, -ESRCH, "there is no process %u", pid);
	if (r == -EACCES || r == -EPERM)
		return error_set(err, r,
				 "%s may not be read; the agent needs CAP_SYS_PTRACE for processes "
				 "of others",
				 path);
	if (r == -E2BIG)
		r = 0; /* what matters comes early */
	return r < 0 ? error_errno(err, r, "cannot read %s", path) : 0;
}

/* The text behind "NAME:" of a line of /proc/PID/status. */
static struct str field(struct str status, const char *name)
{
	while (status.n) {
		struct str line = str_cut(&status, '\n'), key = str_cut(&line, ':');

		if (str_is(key, name))
			return str_trim(line);
	}
	return STR_NULL;
}

/* The nth number of a field, from 0. */
static bool number_at(struct str text, int n, uint64_t *ret)
{
	struct str part = STR_NULL;

	for (int i = 0; i <= n; i++)
		part = str_cut(&text, '\t');
	return str_u64(part, ret);
}

static bool last_number(struct str text, uint64_t *ret)
{
	struct str part = STR_NULL;

	while (text.n)
		part = str_cut(&text, '\t');
	return str_u64(part, ret);
}

/* What of it matters: who it is, and whether SIGQUIT has a handler. */
static int read_status(struct str status, struct jvm *j, bool *ret_expects, struct error *err)
{
	uint64_t uid, gid, inner = j->pid, caught = 0;
	struct str name = field(status, "Name");

	if (!number_at(field(status, "Uid"), 1, &uid) ||
	    !number_at(field(status, "Gid"), 1, &gid) || !str_hex(field(status, "SigCgt"), &caught))
		return error_set(err, -EBADMSG, "/proc/%u/status is not understood", j->pid);
	last_number(field(status, "NSpid"), &inner);
	j->uid = (uid_t)uid;
	j->gid = (gid_t)gid;
	j->inner_pid = (uint32_t)inner;
	snprintf(j->name, sizeof(j->name), "%.*s", STR_FMT(name));
	*ret_expects = caught & SIGQUIT_BIT;
	return 0;
}

static bool has(struct str text, const char *what)
{
	return str_search(text, str_of(what)) < text.n;
}

/* One whole argument, wherever it stands. */
static bool has_argument(struct str cmdline, const char *what)
{
	while (cmdline.n)
		if (str_is(str_cut(&cmdline, '\0'), what))
			return true;
	return false;
}

static int judge(struct str maps, struct str cmdline, bool expects, uint32_t pid, struct error *err)
{
	if (has(maps, "/libj9vm"))
		return error_set(err, -ENOTSUP,
				 "process %u is an OpenJ9, which async-profiler does not profile; "
				 "run the program on a HotSpot",
				 pid);
	if (!has(maps, "/libjvm.so"))
		return error_set(err, -ENOEXEC, "process %u is not a JVM", pid);
	if (has_argument(cmdline, "-XX:+DisableAttachMechanism"))
		return error_set(err, -ENOTSUP,
				 "the JVM was started with -XX:+DisableAttachMechanism, so nothing "
				 "can attach to it; start it without that flag");
	if (has_argument(cmdline, "-Xrs") || has_argument(cmdline, "-XX:+ReduceSignalUsage"))
		return error_set(
			err, -ENOTSUP,
			"the JVM was started with -Xrs, so SIGQUIT would end it instead of "
			"letting us attach; start it without that flag");
	if (!expects)
		return error_set(err, -EAGAIN,
				 "the JVM does not listen for SIGQUIT yet, by which one attaches");
	return 0;
}

static int inspect(struct jvm *j, struct buf *text, struct buf *cmdline, struct error *err)
{
	char path[64];
	bool expects = false;
	int r = read_of(j->pid, "status", text, MAX_STATUS, err);

	if (r == 0)
		r = read_status(buf_str(text), j, &expects, err);
	if (r == 0)
		r = read_of(j->pid, "cmdline", cmdline, MAX_CMDLINE, err);
	if (r == 0)
		r = read_of(j->pid, "maps", text, MAX_MAPS, err);
	if (r < 0)
		return r;
	r = judge(buf_str(text), buf_str(cmdline), expects, j->pid, err);
	snprintf(path, sizeof(path), "/proc/%u/exe", j->pid);
	if (r == 0)
		j->machine = library_machine(path);
	return r;
}

int jvm_inspect(uint32_t pid, struct jvm *ret, struct error *err)
{
	struct buf text = BUF_NULL, cmdline = BUF_NULL;
	struct jvm j = {.pid = pid};
	int r = inspect(&j, &text, &cmdline, err);

	buf_free(&text);
	buf_free(&cmdline);
	if (r == 0)
		*ret = j;
	return r;
}

int jvm_expects_quit(uint32_t pid, struct error *err)
{
	struct buf text = BUF_NULL;
	struct jvm j = {.pid = pid};
	bool expects = false;
	int r = read_of(pid, "status", &text, MAX_STATUS, err);

	if (r == 0)
		r = read_status(buf_str(&text), &j, &expects, err);
	buf_free(&text);
	return r < 0 ? r : expects;
}
