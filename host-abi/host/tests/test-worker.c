/* SPDX-License-Identifier: Apache-2.0 */
/* Processes for components, by the program that the host's maker names. */
#include "host/tests/test-support.h"

#include <andiron/subprocess.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int32_t serve(int32_t socket)
{
	return -ENOSYS;
}

struct answer {
	struct probe probe;
	bool sends;
	int32_t found, started, socket, pidfd;
};

/* In `start`: what a component gets that asks for a process. */
static void ask(struct probe *p)
{
	struct answer *a = p->user;
	struct andiron_extension got = {0};
	const struct andiron_subprocess *service;

	a->found = p->host->extension(p->instance, ANDIRON_SUBPROCESS_ID, &got);
	service = got.table;
	if (a->found == 0)
		a->started =
			(a->sends ? service->start_sender : service->start)(got.self, p->instance,
									    &a->socket, &a->pidfd);
}

static void run(const char *worker, bool sends, struct answer *a)
{
	static struct andiron_component component;
	struct plan *plan = test_plan();
	struct host *host;

	component = test_producer;
	component.name = "test.parsing";
	component.subprocess = component.sender = serve;
	*a = (struct answer){
		.probe = {.on_start = ask, .user = a}, .sends = sends, .socket = -1, .pidfd = -1};
	test_node(plan, "a", &component, &a->probe);
	host = test_host((struct host_options){
		.worker = worker, .live = test_stop_live, .context = &host});
	expect_eq(host_load(host, plan, NULL), 0);
	test_run(host, 0);
	host_free(host);
}

/* A program that says how it was called, or whatever `words` are to the shell, on the socket that
 * it has. */
static void write_program(char path[32], const char *words)
{
	char text[256];
	int fd, n = snprintf(text, sizeof(text), "#!/bin/sh\necho \"%s\" >&3\n", words);

	snprintf(path, 32, "/tmp/test-worker-XXXXXX");
	fd = mkstemp(path);
	expect(fd >= 0 && fchmod(fd, 0700) == 0);
	expect_eq(write(fd, text, (size_t)n), n);
	close(fd);
}

/* It is the named program that runs, told which file and component, and no other. */
TEST(the_named_program_is_run)
{
	char path[32], said[4096], file[2048];
	siginfo_t info;
	struct answer a;
	ssize_t n = readlink("/proc/self/exe", file, sizeof(file));

	write_program(path, "$*");
	run(path, false, &a);
	expect_eq(a.found, 0);
	expect_eq(a.started, 0);
	expect(n > 0 && n < (ssize_t)sizeof(file));
	file[n] = '\0';
	n = read(a.socket, said, sizeof(said) - 1);
	expect(n > 0);
	said[n] = '\0';
	expect_eq(strncmp(said, "worker ", 7), 0);
	expect(strstr(said, " test.parsing\n") && strstr(said, strrchr(file, '/')));
	expect_eq(waitid((idtype_t)P_PIDFD, (id_t)a.pidfd, &info, WEXITED), 0);
	expect_eq(info.si_status, 0);
	close(a.socket);
	close(a.pidfd);
	unlink(path);
}

/* What speaks to servers has no terminal, and nothing of what the agent's standard files are. */
TEST(what_sends_has_no_terminal)
{
	char path[32], said[4096], files[64];
	int pid = 0, session = 0;
	siginfo_t info;
	struct answer a;
	ssize_t n;

	write_program(path, "$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2 | tr '\n' ,) "
			    "$$ $(cut -d' ' -f6 /proc/$$/stat)");
	run(path, true, &a);
	expect_eq(a.started, 0);
	n = read(a.socket, said, sizeof(said) - 1);
	expect(n > 0);
	said[n] = '\0';
	expect_eq(sscanf(said, "%63s %d %d", files, &pid, &session), 3);
	expect_str(str_of(files), "/dev/null,/dev/null,/dev/null,");
	expect(pid && session == pid);
	expect_eq(waitid((idtype_t)P_PIDFD, (id_t)a.pidfd, &info, WEXITED), 0);
	close(a.socket);
	close(a.pidfd);
	unlink(path);
}

/* A host in a stranger's process must not start the stranger again: without a program of its own
 * there is no such service, and components do without. */
TEST(without_one_nothing_is_started)
{
	struct answer a;

	run(NULL, false, &a);
	expect_eq(a.found, -ENOENT);
	expect_eq(a.socket, -1);
	expect_eq(wait(NULL), -1);
	expect_eq(errno, ECHILD);
}

/* One that is not there is an error of the call. */
TEST(a_missing_program_is_an_error)
{
	struct answer a;

	run("/does/not/exist", false, &a);
	expect_eq(a.found, 0);
	expect_eq(a.started, -ENOENT);
	expect_eq(a.socket, -1);
}
