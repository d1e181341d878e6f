/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in session.h. Only what /proc says of the JVM is done as ourselves; everything in its
 * root, and the signal, as its user. */
#include "java/session.h"

#include "base/clock.h"
#include "java/attach/identity.h"
#include "java/attach/library.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_NS     (50 * NS_PER_MSEC) /* between looks whether the JVM listens */
#define RETRY_NS    (10 * NS_PER_SEC)
#define RETRY_MAX   (600 * NS_PER_SEC)
#define ASKED_NS    (60 * NS_PER_SEC) /* each SIGQUIT in vain is a thread dump on its output */
#define ASKED_MAX   (3600 * NS_PER_SEC)
#define MAX_OPTIONS 1024

void session_init(struct session *s, uint32_t pid, struct settings *settings)
{
	*s = (struct session){.pid = pid,
			      .settings = settings,
			      .wait_fd = -1,
			      .pidfd = -1,
			      .folder = FOLDER_NULL};
	attach_init(&s->attach, -1, -1, 0, 0, 0);
	s->due_ns = clock_mono();
}

static void forget(struct session *s)
{
	attach_reset(&s->attach);
	folder_close(&s->folder);
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->pidfd = -1;
	s->attached = s->running = s->ended = false;
	s->phase = SESSION_IDLE;
}

/* An owner that could not wait for the JVM leaves no files all the same. */
void session_fini(struct session *s)
{
	struct identity identity;

	if (s->attached && identity_enter(&identity, s->jvm.uid, s->jvm.gid, NULL) == 0) {
		attach_withdraw(&s->attach);
		folder_remove(&s->folder);
		identity_leave(&identity);
	}
	forget(s);
	buf_free(&s->recording);
	settings_release(s->settings);
}

/* --- The end, good or bad --- */

/* Leaves the JVM, and nothing in its folder. */
static void detach(struct session *s)
{
	attach_withdraw(&s->attach);
	folder_remove(&s->folder);
	forget(s);
}

static void back_off(struct session *s, bool asked)
{
	int64_t wait = asked ? ASKED_NS : RETRY_NS, most = asked ? ASKED_MAX : RETRY_MAX;

	for (unsigned int i = 0; i < s->failures && wait < most; i++)
		wait *= 2;
	s->failures++;
	s->due_ns = clock_mono() + (wait < most ? wait : most);
}

static void fail(struct session *s, int code, const struct error *err)
{
	bool asked = s->attach.asked;

	if (err->code)
		s->why = *err;
	else
		error_set(&s->why, code, "out of memory");
	s->failed = true;
	s->foreign = code == -ENOEXEC || code == -ESRCH;
	detach(s);
	back_off(s, asked && code == -ETIMEDOUT);
}

static void take(struct session *s)
{
	struct error err = ERROR_NULL;

	buf_free(&s->recording);
	s->why = ERROR_NULL;
	s->failed = folder_take(&s->folder, &s->recording, &err) < 0;
	if (s->failed)
		s->why = err;
	s->to_ns = clock_real();
	s->from_ns = s->to_ns - (clock_mono() - s->began_ns);
	s->running = false;
}

/* async-profiler ends a recording when its JVM ends in good order. */
static void on_end(struct session *s)
{
	bool ran = s->running || (s->phase == SESSION_ANSWER && s->command == SESSION_START);

	if (ran)
		take(s);
	detach(s);
	s->foreign = true;
	if (!ran || s->recording.n)
		error_set(&s->why, -ESRCH, "the JVM has ended");
	s->failures = 0;
	back_off(s, false);
}

/* --- Commands --- */

static void begin_command(struct session *s, enum session_command command)
{
	attach_reset(&s->attach);
	s->command = command;
	s->phase = SESSION_CONNECT;
	s->deadline_ns = clock_mono() + SESSION_CONNECT_NS;
}

static int put_options(const struct session *s, char *out, size_t room)
{
	const char *path = s->folder.path;
	long long limit = (s->settings->interval_ns + SESSION_GRACE_NS + NS_PER_SEC - 1) /
			  NS_PER_SEC;
	int n;

	if (s->command == SESSION_START)
		n = snprintf(out, room,
			     "start,jfr,file=%s/recording.jfr,log=%s/log,timeout=%lld%.*s", path,
			     path, limit, STR_FMT(s->settings->agent));
	else
		n = snprintf(out, room, "stop,jfr,quiet,file=%s/recording.jfr,log=%s/log", path,
			     path);
	return n < 0 || (size_t)n >= room ? -E2BIG : 0;
}

static int send_command(struct session *s, struct error *err)
{
	char options[MAX_OPTIONS];
	int r = put_options(s, options, sizeof(options));

	if (r < 0)
		return error_set(err, r, "tmp_dir and profiling_config are too long for a JVM");
	r = attach_load(&s->attach, s->folder.library, options, err);
	if (r < 0)
		return r;
	if (s->command == SESSION_START) {
		s->began_ns = clock_mono();
		s->interval_ns = s->settings->interval_ns;
		s->sample_rate = s->settings->sample_rate;
	}
	s->phase = SESSION_ANSWER;
	s->deadline_ns = clock_mono() + SESSION_ANSWER_NS;
	return 0;
}

static const char *hint_of(struct str text)
{
	if (str_search(text, STR("already started")) < text.n)
		return "; something else in this JVM uses it";
	if (str_search(text, STR("AllocTracer")) < text.n)
		return " If not, set alloc = \"\" for this JVM";
	return "";
}

/* Why the library, once loaded, did not do as it was told. */
static int refusal(const struct session *s, struct error *err)
{
	char text[200];

	folder_log(&s->folder, text, sizeof(text));
	return error_set(err, -EPROTO, "async-profiler refuses: %s%s",
			 text[0] ? text
				 : "it does not say why; perhaps it cannot be loaded there (a "
				   "file system with noexec, another C library)",
			 hint_of(str_of(text)));
}

/* The answer is whole. */
static int on_answer(struct session *s, struct error *err)
{
	int code = 0;
	int r = attach_result(buf_str(&s->attach.answer), &code, err);

	attach_reset(&s->attach);
	if (r == 0 && code != 0 && s->command == SESSION_START)
		r = refusal(s, err);
	switch (s->command) {
	case SESSION_CLEAR:
		if (r == 0)
			begin_command(s, SESSION_START);
		return r;
	case SESSION_START:
		if (r < 0)
			return r;
		s->running = true;
		s->failures = 0;
		if (s->why.code != -E2BIG && s->why.code != -EBADMSG)
			s->why = ERROR_NULL;
		s->phase = SESSION_RUNS;
		return 0;
	case SESSION_STOP:
	default:
		if (r < 0)
			return r;
		take(s);
		if (s->closing)
			detach(s);
		else
			begin_command(s, SESSION_START);
		return 0;
	}
}

/* --- Steps --- */

static int open_pidfd(uint32_t pid, struct error *err)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	if (fd < 0 && errno == ESRCH)
		return error_set(err, -ESRCH, "there is no process %u", pid);
	return fd < 0 ? error_errno(err, -errno, "cannot open process %u", pid) : fd;
}

static int settle_in(struct session *s, int root, const struct library *library, struct error *err)
{
	int r = folder_open(&s->folder, root, &s->jvm, s->settings->tmp_dir, err);

	if (r == 0) {
		s->attached = true;
		r = folder_place(&s->folder, root, library, err);
	}
	if (r < 0)
		return r;
	attach_init(&s->attach, s->folder.tmp, s->pidfd, s->pid, s->jvm.inner_pid, s->jvm.uid);
	begin_command(s, folder_has_recording(&s->folder) ? SESSION_CLEAR : SESSION_START);
	return 0;
}

static int enter(struct session *s, const struct library *library, struct error *err)
{
	struct identity identity;
	int root = folder_root(s->pid, err), r = root;

	/* What was read of /proc is of the process behind the pidfd only if that lives. */
	if (r >= 0 && syscall(SYS_pidfd_send_signal, s->pidfd, 0, NULL, 0) < 0 && errno == ESRCH)
		r = error_set(err, -ESRCH, "there is no process %u", s->pid);
	if (r >= 0)
		r = identity_enter(&identity, s->jvm.uid, s->jvm.gid, err);
	if (r == 0) {
		r = settle_in(s, root, library, err);
		if (r < 0)
			detach(s);
		identity_leave(&identity);
	}
	if (root >= 0)
		close(root);
	return r;
}

static int begin(struct session *s, struct error *err)
{
	struct library library = {.bytes = BUF_NULL};
	int r;

	s->no_library = false;
	s->pidfd = open_pidfd(s->pid, err);
	r = s->pidfd < 0 ? s->pidfd : jvm_inspect(s->pid, &s->jvm, err);
	if (r < 0)
		return r;
	r = library_load(&library, s->settings->dist, err);
	if (r < 0) {
		s->no_library = r != -ENOMEM;
		return r;
	}
	if (s->jvm.machine && s->jvm.machine != library.machine)
		r = error_set(err, -ENOEXEC,
			      "%s is for another machine (ELF machine %u) than the JVM (%u)",
			      library.path, library.machine, s->jvm.machine);
	else
		r = enter(s, &library, err);
	library_free(&library);
	return r == -ENOEXEC ? -ENOTSUP : r;
}

static int connect_step(struct session *s, struct error *err)
{
	int r = attach_connect(&s->attach, err);

	if (r != -EAGAIN)
		attach_withdraw(&s->attach);
	if (r == 0)
		return send_command(s, err);
	if (r != -EAGAIN)
		return r;
	if (clock_mono() >= s->deadline_ns)
		return error_set(err, -ETIMEDOUT,
				 s->attach.asked
					 ? "the JVM was asked to let us attach (SIGQUIT) and has "
					   "not listened for %d s"
					 : "the JVM could not be asked to let us attach for %d s: "
					   "it had no handler for SIGQUIT, or no room for us at "
					   "its socket",
				 (int)(SESSION_CONNECT_NS / NS_PER_SEC));
	s->due_ns = clock_mono() + POLL_NS;
	return -EAGAIN;
}

static int answer_step(struct session *s, struct error *err)
{
	int r = attach_read(&s->attach, err);

	if (r == 0)
		return on_answer(s, err);
	if (r != -EAGAIN)
		return r;
	if (clock_mono() >= s->deadline_ns)
		return error_set(err, -ETIMEDOUT,
				 "the JVM has not answered for %d s; it may be stopped, or busy",
				 (int)(SESSION_ANSWER_NS / NS_PER_SEC));
	s->wait_fd = s->attach.socket;
	s->due_ns = s->deadline_ns;
	return -EAGAIN;
}

static int run_step(struct session *s)
{
	if (!s->closing && clock_mono() < s->began_ns + s->interval_ns) {
		s->due_ns = s->began_ns + s->interval_ns;
		return -EAGAIN;
	}
	begin_command(s, SESSION_STOP);
	return 0;
}

/* A JVM that ends closes its connections first, and has async-profiler end the recording then. */
static int broken_step(struct session *s, struct error *err)
{
	if (clock_mono() >= s->deadline_ns) {
		*err = s->why;
		return err->code;
	}
	s->due_ns = s->deadline_ns;
	return -EAGAIN;
}

static bool broke(int code)
{
	return code == -ECONNRESET || code == -EPIPE;
}

/* 0: go on; -EAGAIN: wait; else it has failed. */
static int advance(struct session *s, struct error *err)
{
	switch (s->phase) {
	case SESSION_CONNECT:
		return connect_step(s, err);
	case SESSION_ANSWER:
		return answer_step(s, err);
	case SESSION_RUNS:
		return run_step(s);
	case SESSION_BROKEN:
		return broken_step(s, err);
	case SESSION_IDLE:
	default:
		return -EAGAIN;
	}
}

/* As the JVM's user. Closing before anything was begun ends at once. */
static void run(struct session *s)
{
	struct error err = ERROR_NULL;
	int r = 0;

	if (s->ended) {
		on_end(s);
		return;
	}
	if (s->closing && s->phase == SESSION_CONNECT && s->command != SESSION_STOP) {
		detach(s);
		return;
	}
	while (r == 0 && s->phase != SESSION_IDLE)
		r = advance(s, &err);
	if (broke(r) && s->phase != SESSION_BROKEN) {
		s->why = err;
		s->foreign = true; /* no news yet */
		s->running |= s->command == SESSION_START;
		s->phase = SESSION_BROKEN;
		s->due_ns = s->deadline_ns = clock_mono() + SESSION_BROKEN_NS;
		return;
	}
	if (r == -ESRCH) /* seen by us before the owner saw it */
		on_end(s);
	else if (r < 0 && r != -EAGAIN)
		fail(s, r, &err);
}

void session_step(struct session *s)
{
	struct identity identity;
	struct error err = ERROR_NULL;
	int r = 0;

	s->wait_fd = -1;
	s->failed = false;
	if (!s->attached) {
		if (s->closing)
			return;
		r = begin(s, &err);
		if (r < 0) {
			fail(s, r, &err);
			return;
		}
	}
	r = identity_enter(&identity, s->jvm.uid, s->jvm.gid, &err);
	if (r < 0) {
		fail(s, r, &err);
		return;
	}
	run(s);
	identity_leave(&identity);
}
