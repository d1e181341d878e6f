/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's protocol, spoken with a child process that plays the JVM: it waits for SIGQUIT, listens
 * and answers as it is told. */
#include "java/attach/attach.h"

#include "base/check.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define INNER_PID 7u

struct jvm {
	char folder[32];
	int tmp, pidfd, told; /* told: what the child has seen */
	pid_t pid;
	struct attach attach;
};

static void tell(int fd, const void *data, size_t n)
{
	check(write(fd, data, n) == (ssize_t)n);
}

static void on_quit(int number)
{
}

/* The child: the file that asks must be there when the signal comes. */
static _Noreturn void serve(const char *folder, int told, const char *answer, size_t n,
			    bool forever)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[64], request[2048];
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd, number;
	sigset_t quit;
	ssize_t got;

	sigemptyset(&quit);
	sigaddset(&quit, SIGQUIT);
	signal(SIGQUIT, on_quit);
	tell(told, "b", 1);
	sigwait(&quit, &number);
	snprintf(path, sizeof(path), "%s/.attach_pid%u", folder, INNER_PID);
	check(access(path, F_OK) == 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/.java_pid%u", folder, INNER_PID);
	unlink(address.sun_path);
	check(bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0);
	check(listen(listener, 5) == 0);
	tell(told, "l", 1);
	fd = accept(listener, NULL, NULL);
	got = read(fd, request, sizeof(request));
	if (got <= 0)
		_exit(0);
	tell(told, request, (size_t)got);
	do
		for (size_t at = 0; at < n;) {
			ssize_t sent = send(fd, answer + at, n - at, MSG_NOSIGNAL);

			if (sent < 0)
				_exit(0);
			at += (size_t)sent;
		}
	while (forever && n);
	if (forever)
		pause();
	_exit(0);
}

static struct jvm jvm_new(const char *answer, size_t n, bool forever)
{
	struct jvm j = {.folder = "/tmp/test-attach-XXXXXX"};
	sigset_t quit;
	int pipe_fds[2];

	sigemptyset(&quit);
	sigaddset(&quit, SIGQUIT);
	sigprocmask(SIG_BLOCK, &quit, NULL);
	check(mkdtemp(j.folder) && pipe2(pipe_fds, O_CLOEXEC) == 0);
	j.pid = fork();
	if (j.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(j.folder, pipe_fds[1], answer, n, forever);
	}
	close(pipe_fds[1]);
	j.told = pipe_fds[0];
	j.tmp = open(j.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	j.pidfd = (int)syscall(SYS_pidfd_open, j.pid, 0);
	attach_init(&j.attach, j.tmp, j.pidfd, (uint32_t)j.pid, INNER_PID, geteuid());
	return j;
}

static void jvm_free(struct jvm *j)
{
	char path[64];

	attach_withdraw(&j->attach);
	attach_reset(&j->attach);
	kill(j->pid, SIGKILL);
	waitpid(j->pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/.java_pid%u", j->folder, INNER_PID);
	unlink(path);
	expect_eq(rmdir(j->folder), 0); /* nothing is left */
	close(j->tmp);
	close(j->pidfd);
	close(j->told);
}

static char heard(const struct jvm *j)
{
	char c = 0;

	expect_eq(read(j->told, &c, 1), 1);
	return c;
}

static void connect_to(struct jvm *j)
{
	struct error err = ERROR_NULL;

	expect_eq(heard(j), 'b');
	expect_eq(attach_connect(&j->attach, &err), -EAGAIN);
	expect_eq(heard(j), 'l');
	expect_eq(attach_connect(&j->attach, &err), 0);
	attach_withdraw(&j->attach);
}

/* Reads on whenever there is something. */
static int answer_of(struct jvm *j, struct error *err)
{
	int r;

	while ((r = attach_read(&j->attach, err)) == -EAGAIN)
		poll(&(struct pollfd){.fd = j->attach.socket, .events = POLLIN}, 1, -1);
	return r;
}

/* The JVM is asked once, and gets what HotSpot expects. */
TEST(a_library_is_loaded)
{
	static const char answer[] = "0\nreturn code: 0\n";
	static const char want[] = "1\0load\0/lib.so\0true\0start,jfr";
	struct jvm j = jvm_new(answer, sizeof(answer) - 1, false);
	struct error err = ERROR_NULL;
	char request[sizeof(want)];
	int code = -1;

	connect_to(&j);
	expect_eq(attach_load(&j.attach, "/lib.so", "start,jfr", &err), 0);
	expect_eq(read(j.told, request, sizeof(request)), sizeof(request));
	expect(memcmp(request, want, sizeof(want)) == 0);
	expect_eq(answer_of(&j, &err), 0);
	expect_eq(attach_result(buf_str(&j.attach.answer), &code, &err), 0);
	expect_eq(code, 0);
	jvm_free(&j);
}

/* An answer without an end costs 64 KiB, one that never comes nothing. */
TEST(answers_are_bounded)
{
	static const char much[4096] = "0\n";
	struct error err = ERROR_NULL;
	struct jvm j = jvm_new(much, sizeof(much), true);

	connect_to(&j);
	expect_eq(attach_load(&j.attach, "/lib.so", "stop", &err), 0);
	expect_eq(answer_of(&j, &err), -EPROTO);
	expect(j.attach.answer.n <= 65536);
	jvm_free(&j);
	j = jvm_new("", 0, true);
	connect_to(&j);
	expect_eq(attach_load(&j.attach, "/lib.so", "stop", &err), 0);
	expect_eq(attach_read(&j.attach, &err), -EAGAIN);
	jvm_free(&j);
}

/* What a JVM would cut off is not sent. */
TEST(long_arguments_are_refused)
{
	struct jvm j = jvm_new("", 0, true);
	struct error err = ERROR_NULL;
	char options[ATTACH_MAX_ARGUMENT + 1];

	memset(options, 'x', sizeof(options));
	options[ATTACH_MAX_ARGUMENT] = '\0';
	connect_to(&j);
	expect_eq(attach_load(&j.attach, "/lib.so", options, &err), -E2BIG);
	options[ATTACH_MAX_ARGUMENT - 1] = '\0';
	expect_eq(attach_load(&j.attach, "/lib.so", options, &err), 0);
	jvm_free(&j);
}

/* A link where the socket should be leads nowhere, and no file stands in for it. */
TEST(only_a_socket_is_a_socket)
{
	struct jvm j = jvm_new("", 0, true);
	struct error err = ERROR_NULL;

	expect_eq(heard(&j), 'b');
	expect_eq(symlinkat("/run/elsewhere", j.tmp, ".java_pid7"), 0);
	expect_eq(attach_connect(&j.attach, &err), -EPERM);
	unlinkat(j.tmp, ".java_pid7", 0);
	close(openat(j.tmp, ".java_pid7", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	expect_eq(attach_connect(&j.attach, &err), -EPERM);
	expect(!j.attach.asked);
	jvm_free(&j);
}

static int listen_at(const struct jvm *j)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/.java_pid7", j->folder);
	expect_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	expect_eq(listen(fd, 5), 0);
	return fd;
}

/* Another process that listens in the JVM's place is not the JVM, which is asked all the same. */
TEST(another_listener_is_not_the_jvm)
{
	struct jvm j = jvm_new("", 0, true);
	int other = listen_at(&j);

	connect_to(&j);
	close(other);
	jvm_free(&j);
}

/* A process that has become another program, without a handler, is not sent what would end it. */
TEST(what_does_not_expect_the_signal_is_spared)
{
	struct jvm j = jvm_new("", 0, true);
	struct error err = ERROR_NULL;
	pid_t other = fork();

	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	expect_eq(heard(&j), 'b');
	j.attach.pid = (uint32_t)other;
	expect_eq(attach_connect(&j.attach, &err), -EAGAIN);
	expect(!j.attach.asked);
	expect(faccessat(j.tmp, ".attach_pid7", F_OK, 0) < 0);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	jvm_free(&j);
}

/* The file that asks does not stay behind when the signal cannot be sent. */
TEST(a_failed_signal_leaves_no_file)
{
	struct jvm j = jvm_new("", 0, true);
	struct error err = ERROR_NULL;
	int pidfd = j.pidfd;

	expect_eq(heard(&j), 'b');
	j.attach.pidfd = -1;
	expect_eq(attach_connect(&j.attach, &err), -EBADF);
	expect_eq(faccessat(j.tmp, ".attach_pid7", F_OK, 0), 0);
	attach_withdraw(&j.attach);
	expect(faccessat(j.tmp, ".attach_pid7", F_OK, 0) < 0);
	j.attach.pidfd = pidfd;
	jvm_free(&j);
}

/* A socket without room is an error: nothing would come of waiting. */
TEST(a_full_socket_is_an_error)
{
	static const char much[4096];
	struct jvm j = jvm_new("", 0, true);
	struct error err = ERROR_NULL;
	char request[2048];

	connect_to(&j);
	expect_eq(attach_load(&j.attach, "/lib.so", "stop", &err), 0);
	expect(read(j.told, request, sizeof(request)) > 0); /* the JVM reads no more */
	while (send(j.attach.socket, much, sizeof(much), MSG_NOSIGNAL) > 0)
		;
	expect_eq(errno, EAGAIN);
	expect_eq(attach_load(&j.attach, "/lib.so", "stop", &err), -EIO);
	jvm_free(&j);
}

/* The socket of a JVM that has gone is none; nor is anything sent to another process. */
TEST(a_stale_socket_is_no_listener)
{
	struct jvm j = jvm_new("", 0, true);
	struct error err = ERROR_NULL;

	close(listen_at(&j));
	connect_to(&j);
	attach_reset(&j.attach);
	kill(j.pid, SIGKILL);
	waitpid(j.pid, NULL, 0);
	expect_eq(attach_connect(&j.attach, &err), -ESRCH);
	expect(!j.attach.asked);
	j.pid = 0x7fffffff; /* reaped already */
	jvm_free(&j);
}

static int result(const char *answer, int *code, struct error *err)
{
	*err = ERROR_NULL;
	return attach_result(str_of(answer), code, err);
}

/* All versions' ways to say it; what is no answer is an error with the JVM's words, on one line. */
TEST(answers_are_understood)
{
	struct error err;
	int code = -1;

	expect_eq(result("0\n0\n", &code, &err), 0); /* JDK 8 */
	expect_eq(code, 0);
	expect_eq(result("0\nreturn code: 200\n", &code, &err), 0);
	expect_eq(code, 200);
	expect_eq(result("0\n-1\n", &code, &err), 0);
	expect_eq(code, -1);
	expect_eq(result("0\n/x/lib.so was not loaded.\n/x/lib.so: no\x1b[2J such\n", &code, &err),
		  -EPROTO);
	expect(strstr(err.text, "was not loaded.") && !strchr(err.text, '\n'));
	expect(!strchr(err.text, '\x1b'));
	expect_eq(result("102\nDynamic agent loading is not enabled.", &code, &err), -EPROTO);
	expect(strstr(err.text, "Dynamic agent loading"));
	expect_eq(result("", &code, &err), -ECONNRESET);
	expect_eq(result("hello", &code, &err), -EBADMSG);
	expect_eq(result("\n\n\n", &code, &err), -EBADMSG);
	expect_eq(result("99999999999999999999\n0", &code, &err), -EBADMSG);
	expect_eq(result("0", &code, &err), -EPROTO);
}
