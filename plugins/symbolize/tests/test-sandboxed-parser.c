/* SPDX-License-Identifier: Apache-2.0 */
/* The parser in a process of its own: the test forks it, so that it can kill it. That it gives up
 * its privileges is tested on the real command (tests/scenario). */
#include "symbolize/parser/sandboxed-parser.h"
#include "symbolize/parser/answer.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct service {
	pid_t pid;
	int n_starts;
	bool mute; /* it answers nothing sensible */
};

static void serve_nonsense(int socket)
{
	char bytes[256];

	while (recv(socket, bytes, sizeof(bytes), 0) > 0)
		send(socket, "nonsense", 8, MSG_NOSIGNAL);
}

static int32_t start(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd)
{
	struct service *s = self;
	int fds[2];

	expect_eq(instance, 42);
	expect_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	s->n_starts++;
	s->pid = fork();
	if (s->pid == 0) {
		close(fds[0]);
		if (s->mute)
			serve_nonsense(fds[1]);
		else
			sandboxed_parser_serve(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	*ret_socket = fds[0];
	*ret_pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	return 0;
}

static const struct andiron_subprocess table = {.size = sizeof(table), .start = start};

static struct sandboxed_parser make(struct service *s)
{
	struct sandboxed_parser a = SANDBOXED_PARSER_NULL;

	a.service = &table;
	a.self = s;
	a.instance = 42;
	return a;
}

static int file_with(const char *name)
{
	struct elf_writer w;
	uint16_t text;
	int fd;

	elf_writer_init(&w);
	text = elf_write_section(&w, ".text", SHT_NOBITS, 0x1000, NULL, 0x1000);
	elf_write_symbol(&w, name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, 0x1000, 16);
	elf_write_symbols(&w, SHT_SYMTAB);
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	return fd;
}

static int ask(struct sandboxed_parser *a, const char *name, struct buf *answer)
{
	static const uint64_t addresses[] = {0x1000, 0x1010};
	const struct parser_request q = {.object = 2,
					 .flags = PARSER_REOPEN,
					 .max_bytes = 1u << 20,
					 .file_bytes = 1u << 20,
					 .steps = 1000,
					 .fds = {file_with(name), -1, file_with("other"), -1},
					 .addresses = addresses,
					 .n = 2};

	buf_clear(answer);
	return sandboxed_parser_ask(a, &q, answer);
}

static void name_is(const struct buf *answer, const char *name)
{
	struct str rest = buf_str(answer);
	struct answer_tail tail;
	struct answer_address address;
	struct answer_head head;
	struct answer_frame f;

	expect(answer_tail(&rest, &tail) && tail.wanted.n == 0 && tail.over == 0);
	expect(answer_head(&rest, &head));
	expect_eq(head.n, 2);
	expect(answer_address(&rest, &address) && address.n_frames == 1);
	expect(answer_frame(&rest, &f));
	expect_str(f.name, name);
	expect(answer_address(&rest, &address) && address.n_frames == 0);
	expect_eq(address.source, FROM_COUNT);
	expect_eq(rest.n, 0);
}

/* Descriptors go one way, names come back; one process serves many requests. */
TEST(a_process_answers)
{
	_cleanup_(buf_free) struct buf answer = BUF_NULL;
	struct service s = {0};
	struct sandboxed_parser a = make(&s);

	for (int i = 0; i < 3; i++) {
		expect_eq(ask(&a, "one", &answer), 0);
		name_is(&answer, "one");
	}
	expect_eq(s.n_starts, 1);
	sandboxed_parser_stop(&a);
	sandboxed_parser_stop(&a);
}

/* What a file may cost goes with the request: the process reads no more than that of it, and says
 * so. */
TEST(a_process_keeps_to_the_budgets)
{
	static const struct {
		uint64_t file_bytes, steps;
		int32_t over;
	} budgets[] = {
		{1u << 20, 1u << 24, -E2BIG}, {1u << 24, 1024, -ETIME}, {1u << 24, 1u << 24, 0}};
	static const uint64_t address = 0x100000;
	_cleanup_(buf_free) struct buf answer = BUF_NULL, map = BUF_NULL;
	struct service s = {0};
	struct sandboxed_parser a = make(&s);

	for (unsigned int i = 0; map.n < 2u << 20; i++)
		check(buf_printf(&map, "%x 10 function_%u\n", 0x100000 + i * 16, i) >= 0);
	for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
		int file = budgets[i].over == -E2BIG ? elf_memfd(map.p, map.n)
						     : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		const struct parser_request q = {.object = 2,
						 .flags = PARSER_LINES | PARSER_REOPEN,
						 .max_bytes = 1u << 24,
						 .file_bytes = budgets[i].file_bytes,
						 .steps = budgets[i].steps,
						 .fds = {file, -1, -1, -1},
						 .addresses = &address,
						 .n = 1};
		struct answer_tail tail;
		struct str rest;

		buf_clear(&answer);
		expect_eq(sandboxed_parser_ask(&a, &q, &answer), 0);
		rest = buf_str(&answer);
		expect(answer_tail(&rest, &tail));
		expect_eq(tail.over, budgets[i].over);
	}
	expect_eq(s.n_starts, 1);
	sandboxed_parser_stop(&a);
}

/* That it is killed costs the request it works on, at most; the next one has a new process. */
TEST(a_killed_process_is_replaced)
{
	_cleanup_(buf_free) struct buf answer = BUF_NULL;
	struct service s = {0};
	struct sandboxed_parser a = make(&s);

	expect_eq(ask(&a, "one", &answer), 0);
	for (int i = 0; i < 3; i++) {
		siginfo_t info;

		expect_eq(kill(s.pid, SIGKILL), 0);
		expect_eq(waitid((idtype_t)P_PIDFD, (id_t)a.pidfd, &info, WEXITED | WNOWAIT), 0);
		expect_eq(ask(&a, "two", &answer), -EPIPE);
		expect_eq(a.socket, -1);
		expect_eq(ask(&a, "two", &answer), 0);
		name_is(&answer, "two");
	}
	expect_eq(s.n_starts, 4);
	sandboxed_parser_stop(&a);
}

/* What does not speak the language is ended, not believed. */
TEST(a_process_that_talks_nonsense_is_ended)
{
	_cleanup_(buf_free) struct buf answer = BUF_NULL;
	struct service s = {.mute = true};
	struct sandboxed_parser a = make(&s);

	expect_eq(ask(&a, "one", &answer), -EPIPE);
	expect_eq(answer.n, 0);
	expect_eq(kill(s.pid, 0), -1);
	s.mute = false;
	expect_eq(ask(&a, "one", &answer), 0);
	sandboxed_parser_stop(&a);
}

/* A message of another size is no request: the process ends instead of guessing. */
TEST(a_request_of_another_size_ends_the_process)
{
	int fds[2];
	pid_t pid;
	char byte = 1;

	expect_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		_exit(sandboxed_parser_serve(fds[1]) == -EBADMSG ? 7 : 8);
	}
	close(fds[1]);
	expect_eq(send(fds[0], &byte, 1, MSG_NOSIGNAL), 1);
	{
		int status;

		expect_eq(waitpid(pid, &status, 0), pid);
		expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	}
	close(fds[0]);
}
