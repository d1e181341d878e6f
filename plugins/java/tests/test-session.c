/* SPDX-License-Identifier: Apache-2.0 */
/* A session with a child process that plays the JVM: it has mapped a libjvm.so, listens at SIGQUIT,
 * and says yes to whatever it is told. What async-profiler would write, the test does. */
#include "java/session.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "testing/test.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define RECORDING 100 /* bytes */

struct scene {
	char folder[32], socket[32];
	pid_t pid;
	struct session session;
};

/* --- The JVM --- */

static void on_quit(int number)
{
}

static _Noreturn void answer_all(int listener)
{
	static const char yes[] = "0\nreturn code: 0\n";
	char request[2048];

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		check(read(fd, request, sizeof(request)) > 0);
		check(write(fd, yes, sizeof(yes) - 1) > 0);
		close(fd);
	}
}

static _Noreturn void play(const char *library, int ready)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = open(library, O_RDONLY | O_CLOEXEC), number;
	sigset_t quit;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check(mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	sigemptyset(&quit);
	sigaddset(&quit, SIGQUIT);
	sigprocmask(SIG_BLOCK, &quit, NULL);
	signal(SIGQUIT, on_quit);
	check(write(ready, "r", 1) == 1);
	sigwait(&quit, &number);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/.java_pid%d", getpid());
	check(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	check(listen(fd, 5) == 0);
	answer_all(fd);
}

/* --- The scene --- */

static void put(const char *path, const void *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	expect_eq(file_write_fd(fd, data, n), 0);
	close(fd);
}

/* Both libraries in one file: what is loaded into JVMs, and what makes a process one. */
static void put_libraries(const char *folder, char jvm[64])
{
	static const char names[] = "\0Agent_OnAttach\0asprof_execute";
	char path[64], bytes[sizeof(Elf64_Ehdr) + sizeof(names)];
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			   .e_machine = library_machine("/proc/self/exe")};

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + sizeof(head), names, sizeof(names));
	snprintf(path, sizeof(path), "%s/" LIBRARY_NAME, folder);
	put(path, bytes, sizeof(bytes));
	snprintf(jvm, 64, "%s/libjvm.so", folder);
	put(jvm, bytes, sizeof(bytes));
}

static struct settings *settings_of(const char *folder)
{
	char dist[64];
	size_t n = (size_t)snprintf(dist, sizeof(dist), "%s/" LIBRARY_NAME, folder);
	const struct andiron_str keys[] = {{"tmp_dir", 7}, {"dist", 4}};
	const struct andiron_value items[] = {
		{.kind = ANDIRON_VALUE_STRING, .string = {folder, strlen(folder)}},
		{.kind = ANDIRON_VALUE_STRING, .string = {dist, n}},
	};
	const struct andiron_value args = {
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = items, .n_items = 2};
	struct error err = ERROR_NULL;
	struct settings *s;

	expect_eq(settings_new(&args, &s, &err), 0);
	return s;
}

static struct scene scene_new(void)
{
	struct scene s = {.folder = "/tmp/test-session-XXXXXX"};
	char jvm[64], ready;
	int fds[2];

	check(mkdtemp(s.folder) && pipe2(fds, O_CLOEXEC) == 0);
	put_libraries(s.folder, jvm);
	s.pid = fork();
	if (s.pid == 0)
		play(jvm, fds[1]);
	close(fds[1]);
	expect_eq(read(fds[0], &ready, 1), 1);
	close(fds[0]);
	snprintf(s.socket, sizeof(s.socket), "/tmp/.java_pid%d", s.pid);
	expect(unlink(s.socket) == 0 || errno == ENOENT); /* of an earlier process */
	session_init(&s.session, (uint32_t)s.pid, settings_of(s.folder));
	return s;
}

static void end_jvm(struct scene *s)
{
	kill(s->pid, SIGKILL);
	expect_eq(waitpid(s->pid, NULL, 0), s->pid);
}

static void scene_free(struct scene *s)
{
	char path[64];

	session_fini(&s->session);
	unlink(s->socket);
	snprintf(path, sizeof(path), "%s/" LIBRARY_NAME, s->folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/libjvm.so", s->folder);
	unlink(path);
	expect_eq(rmdir(s->folder), 0); /* nothing is left */
}

/* Steps whenever one is due until profiling has begun. */
static void start(struct scene *s)
{
	for (;;) {
		int64_t wait;

		session_step(&s->session);
		expect_str(str_of(s->session.why.text), "");
		if (s->session.phase == SESSION_RUNS)
			return;
		wait = (s->session.due_ns - clock_mono()) / NS_PER_MSEC + 1;
		poll(&(struct pollfd){.fd = s->session.wait_fd, .events = POLLIN}, 1, (int)wait);
	}
}

static void put_recording(const struct scene *s)
{
	char path[80], chunk[RECORDING] = "FLR";
	uint64_t length = htobe64(sizeof(chunk));

	memcpy(chunk + 8, &length, sizeof(length));
	snprintf(path, sizeof(path), "%s/andiron-java-%d/recording.jfr", s->folder, s->pid);
	put(path, chunk, sizeof(chunk));
}

/* A JVM whose end is seen by the session first leaves its last recording, too. */
TEST(the_last_recording_is_taken)
{
	struct scene s = scene_new();

	start(&s);
	expect(s.session.attached && s.session.running);
	put_recording(&s);
	end_jvm(&s);
	s.session.closing = true;
	session_step(&s.session);
	expect_eq(s.session.recording.n, RECORDING);
	expect(!s.session.attached && !s.session.running && !s.session.failed);
	expect_eq(s.session.why.code, -ESRCH);
	scene_free(&s);
}

/* The same where its owner has seen it. */
TEST(an_end_that_is_told_is_the_same)
{
	struct scene s = scene_new();

	start(&s);
	put_recording(&s);
	end_jvm(&s);
	s.session.ended = true;
	session_step(&s.session);
	expect_eq(s.session.recording.n, RECORDING);
	expect(!s.session.attached && s.session.foreign);
	scene_free(&s);
}

/* Closing stops what runs, takes it, and leaves nothing. */
TEST(closing_takes_what_there_is)
{
	struct scene s = scene_new();

	start(&s);
	put_recording(&s);
	s.session.closing = true;
	session_step(&s.session);
	while (s.session.attached) {
		poll(&(struct pollfd){.fd = s.session.wait_fd, .events = POLLIN}, 1, -1);
		session_step(&s.session);
	}
	expect_eq(s.session.recording.n, RECORDING);
	expect(!s.session.failed);
	end_jvm(&s);
	scene_free(&s);
}
