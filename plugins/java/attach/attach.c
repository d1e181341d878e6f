/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in attach.h. */
#include "java/attach/attach.h"

#include "base/cleanup.h"
#include "java/attach/jvm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define MAX_ANSWER (64u << 10)
#define PREVIEW    300

void attach_init(struct attach *a, int tmp, int pidfd, uint32_t pid, uint32_t inner_pid, uid_t uid)
{
	*a = (struct attach){.tmp = tmp,
			     .pidfd = pidfd,
			     .pid = pid,
			     .inner_pid = inner_pid,
			     .uid = uid,
			     .socket = -1,
			     .answer = {.limit = MAX_ANSWER}};
}

void attach_reset(struct attach *a)
{
	if (a->socket >= 0)
		close(a->socket);
	a->socket = -1;
	a->asked = false;
	buf_free(&a->answer);
}

/* --- The connection --- */

/* Whether the JVM itself listens: another of its user may, where they share /tmp and have the same
 * pid in namespaces of their own. */
static bool is_peer(const struct attach *a, int fd)
{
	struct ucred peer = {0};
	socklen_t n = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.pid == (pid_t)a->pid;
}

/* 0, -ENOENT: the JVM does not listen; or another errno. By a descriptor of the socket's own inode,
 * since connect follows symbolic links, and one in a container's /tmp would lead to a socket of
 * ours. */
static int try_connect(struct attach *a, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(closep) int inode = -1;
	_cleanup_(closep) int fd = -1;
	char name[32];
	struct stat st;

	snprintf(name, sizeof(name), ".java_pid%u", a->inner_pid);
	inode = openat(a->tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (inode < 0 && errno == ENOENT)
		return -ENOENT;
	if (inode < 0 || fstat(inode, &st) < 0)
		return error_errno(err, -errno, "cannot open the JVM's /tmp/%s", name);
	if (!S_ISSOCK(st.st_mode) || st.st_uid != a->uid)
		return error_set(err, -EPERM,
				 "the JVM's /tmp/%s is not a socket of its user %u; remove it",
				 name, a->uid);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_errno(err, -errno, "cannot make a socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", inode);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ECONNREFUSED) /* of an earlier JVM */
			return -ENOENT;
		if (errno == EAGAIN)
			return -EAGAIN; /* others wait there, too */
		return error_errno(err, -errno, "cannot connect to the JVM's /tmp/%s", name);
	}
	if (!is_peer(a, fd))
		return -ENOENT;
	a->socket = take_fd(fd);
	return 0;
}

static void request_name(const struct attach *a, char out[32])
{
	snprintf(out, 32, ".attach_pid%u", a->inner_pid);
}

/* The handler is looked for again: the process may have become a program that SIGQUIT ends. */
static int ask(struct attach *a, struct error *err)
{
	char name[32];
	int fd, r = jvm_expects_quit(a->pid, err);

	if (r <= 0)
		return r < 0 ? r : -EAGAIN;
	request_name(a, name);
	fd = openat(a->tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return error_errno(err, -errno, "cannot make %s in the JVM's /tmp", name);
	if (fd >= 0)
		close(fd);
	a->asked = true; /* the file is there, whatever becomes of the signal */
	if (syscall(SYS_pidfd_send_signal, a->pidfd, SIGQUIT, NULL, 0) < 0)
		return errno == ESRCH ? error_set(err, -ESRCH, "the JVM has ended")
				      : error_errno(err, -errno, "cannot send SIGQUIT to the JVM");
	return 0;
}

int attach_connect(struct attach *a, struct error *err)
{
	int r = try_connect(a, err);

	if (r != -ENOENT)
		return r;
	if (!a->asked)
		r = ask(a, err);
	return r == 0 || r == -ENOENT ? -EAGAIN : r;
}

void attach_withdraw(struct attach *a)
{
	char name[32];

	request_name(a, name);
	if (a->asked)
		unlinkat(a->tmp, name, 0);
}

/* --- Request and answer --- */

int attach_load(struct attach *a, const char *path, const char *options, struct error *err)
{
	const char *const words[] = {"1", "load", path, "true", options};
	struct buf request = BUF_NULL;
	ssize_t sent;
	int r = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i]) >= ATTACH_MAX_ARGUMENT)
			r = error_set(err, -E2BIG,
				      "the JVM takes at most %d bytes of one argument; shorten "
				      "tmp_dir or profiling_config",
				      ATTACH_MAX_ARGUMENT - 1);
		buf_append(&request, words[i], strlen(words[i]) + 1);
	}
	if (r == 0 && request.failed)
		r = -ENOMEM;
	if (r == 0) {
		/* A few hundred bytes: an empty socket has room for them. */
		sent = send(a->socket, request.p, request.n, MSG_NOSIGNAL);
		if (sent < 0 || (size_t)sent < request.n)
			r = error_errno(err, sent < 0 && errno != EAGAIN ? -errno : -EIO,
					"cannot send a request to the JVM");
	}
	buf_free(&request);
	return r;
}

int attach_read(struct attach *a, struct error *err)
{
	char piece[4096];

	for (;;) {
		ssize_t n = recv(a->socket, piece, sizeof(piece), 0);

		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return -EAGAIN;
		if (n < 0)
			return error_errno(err, -errno, "the JVM broke off its answer");
		n = buf_append(&a->answer, piece, (size_t)n);
		if (n == -E2BIG)
			return error_set(err, -EPROTO,
					 "the JVM's answer has more than %u KiB, which none has",
					 MAX_ANSWER >> 10);
		if (n < 0)
			return -ENOMEM;
	}
}

static bool integer(struct str s, int *ret)
{
	bool negative = s.n && s.p[0] == '-';
	uint64_t value;

	if (!str_u64(negative ? str_skip(s, 1) : s, &value) || value > 1000000)
		return false;
	*ret = negative ? -(int)value : (int)value;
	return true;
}

/* What a JVM says, on one line and without what terminals act upon. */
static void show(struct str text, char out[PREVIEW + 1])
{
	size_t n = 0;

	text = str_first(str_trim(text), PREVIEW);
	for (; n < text.n; n++)
		out[n] = text.p[n] >= ' ' && text.p[n] < 0x7f ? text.p[n] : ' ';
	out[n] = '\0';
}

/* JDK 8 gives the library's code as a bare number, later ones behind "return code: ". Where the
 * library could not be loaded there is text, and in some versions a number behind it. */
int attach_result(struct str answer, int *ret_code, struct error *err)
{
	struct str rest = answer, first = str_trim(str_cut(&rest, '\n')), line = str_trim(rest);
	char text[PREVIEW + 1];
	int status, code;

	if (!answer.n)
		return error_set(err, -ECONNRESET,
				 "the JVM closed the connection without an answer: it serves its "
				 "own user only, and this is not it to the JVM");
	show(rest, text);
	if (!integer(first, &status)) {
		show(first, text);
		return error_set(err, -EBADMSG, "the JVM's answer is not one: \"%s\"", text);
	}
	if (str_starts(line, STR("return code: ")))
		line = str_trim(str_skip(line, 13));
	if (status == 0 && integer(line, &code)) {
		*ret_code = code;
		return 0;
	}
	return error_set(err, -EPROTO, "the JVM did not load async-profiler: %s",
			 text[0] ? text : "it does not say why");
}
