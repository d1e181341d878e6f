/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of processes whose memory comes late or never: a file system of their own has it. */
#include "runtime-kit/target-memory.h"

#include "child.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

#define FILE_PAGES 16u

/* How long a file system takes to answer a read; 0: for ever. */
static int answer_ms;

/* A file system that opens any name. */
static void *serve(void *context)
{
	static _Alignas(8) char request[FUSE_MIN_READ_BUFFER + PAGE];
	int fd = *(int *)context;

	while (read(fd, request, sizeof(request)) > 0) {
		const struct fuse_in_header *in = (const void *)request;
		struct {
			struct fuse_out_header head;
			union {
				struct fuse_init_out init;
				struct fuse_entry_out entry;
				struct fuse_open_out open;
				struct fuse_attr_out attr;
				char bytes[PAGE];
			};
		} out = {.head = {.unique = in->unique}};
		size_t n = 0;

		if (in->opcode == FUSE_INIT) {
			out.init = (struct fuse_init_out){.major = FUSE_KERNEL_VERSION,
							  .minor = FUSE_KERNEL_MINOR_VERSION,
							  .max_write = PAGE};
			n = sizeof(out.init);
		} else if (in->opcode == FUSE_LOOKUP) {
			out.entry = (struct fuse_entry_out){.nodeid = 2,
							    .entry_valid = 1000,
							    .attr_valid = 1000,
							    .attr = {.ino = 2,
								     .size = FILE_PAGES * PAGE,
								     .mode = S_IFREG | 0444,
								     .nlink = 1}};
			n = sizeof(out.entry);
		} else if (in->opcode == FUSE_OPEN) {
			/* Else closing waits, too, as the process ends. */
			out.open.open_flags = FOPEN_NOFLUSH;
			n = sizeof(out.open);
		} else if (in->opcode == FUSE_READ && answer_ms == 0) {
			continue;
		} else if (in->opcode == FUSE_READ) {
			poll(NULL, 0, answer_ms);
			n = PAGE;
		} else {
			out.head.error = -ENOSYS;
		}
		out.head.len = (uint32_t)(sizeof(out.head) + n);
		if (write(fd, &out, out.head.len) < 0)
			break;
	}
	return NULL;
}

/* Maps a file of such a file system, in a mount namespace of its own. */
static void map_file(int out)
{
	static int fd;
	char options[128];
	pthread_t thread;
	void *p;
	int file;

	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		child_say(out, NULL, errno);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,max_read=%u", fd, getuid(), getgid(),
		 PAGE);
	if (mount("never", "/tmp", "fuse", MS_NOSUID | MS_NODEV, options) != 0)
		child_say(out, NULL, errno);
	pthread_create(&thread, NULL, serve, &fd);
	file = open("/tmp/file", O_RDONLY | O_CLOEXEC);
	p = file < 0 ? MAP_FAILED : mmap(NULL, FILE_PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	madvise(p, FILE_PAGES * PAGE, MADV_RANDOM);
	child_say(out, p, p == MAP_FAILED ? errno : 0);
}

/* A process with such a mapping. */
static pid_t start_file(int ms, struct ready *ret)
{
	pid_t pid;

	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0)
		test_skip("needs root and /dev/fuse: run this as root, as ./check does");
	answer_ms = ms;
	pid = child_start(map_file, ret);
	expect_eq(ret->error, 0);
	return pid;
}

static void never_comes(bool patient)
{
	uint32_t deadline_ms = TARGET_DEADLINE_MS * (patient ? TARGET_PATIENCE : 1);
	struct target_reader *r;
	struct andiron_runtime_process process;
	struct target_memory *m, *other;
	struct ready never, page;
	pid_t pid = start_file(0, &never), pid_other = child_start(child_have_page, &page);
	uint64_t before;
	char c;

	r = target_reader_new(patient);
	m = memory_of(r, pid);
	other = memory_of(r, pid_other);
	before = milliseconds();
	expect_eq(target_memory_read(m, never.at, &c, 1), -ETIMEDOUT);
	expect(milliseconds() - before >= deadline_ms);
	expect_eq(target_memory_read(m, never.at, &c, 1), -ETIMEDOUT);
	expect_eq(target_reader_stuck(r), 1);
	expect_eq(target_memory_read(other, page.at, &c, 1), 0);
	expect_eq(c, 'h');
	target_memory_close(m);
	process = process_of(pid);
	expect_eq(target_memory_open(r, &process, &m), -ETIMEDOUT);
	/* The thread ends when the file system does, and is taken back. */
	child_end(pid);
	while (target_reader_stuck(r) != 0)
		poll(NULL, 0, 1);
	target_memory_close(other);
	target_reader_free(r);
	child_end(pid_other);
}

/* The reader gives such a process up as long as that lasts, and reads the others. */
TEST(page_that_never_comes_is_given_up)
{
	never_comes(false);
	never_comes(true);
}

/* A reader may end before its threads do. */
TEST(reader_ends_before_its_threads)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready never;
	pid_t pid = start_file(0, &never);
	char c;

	r = target_reader_new(false);
	m = memory_of(r, pid);
	expect_eq(target_memory_read(m, never.at, &c, 1), -ETIMEDOUT);
	target_memory_close(m);
	target_reader_free(r);
	child_end(pid);
}

/* A process that answers late each time is waited for so long in a minute, and then refused. */
TEST(waits_are_summed)
{
	struct target_reader *r;
	struct andiron_runtime_process process;
	struct target_memory *m, *other;
	struct ready late, page;
	pid_t pid = start_file(TARGET_WAITS_MS / 4, &late);
	pid_t pid_other = child_start(child_have_page, &page);
	uint32_t n = 0;
	int error = 0;
	char c;

	r = target_reader_new(false);
	other = memory_of(r, pid_other);
	process = process_of(pid);
	for (; error == 0 && n < FILE_PAGES; n++) {
		error = target_memory_open(r, &process, &m);
		if (error == 0) {
			error = target_memory_read(m, late.at + (uint64_t)n * PAGE, &c, 1);
			target_memory_close(m);
		}
	}
	expect_eq(error, -ETIMEDOUT);
	expect(n <= 5);
	expect_eq(target_memory_read(other, page.at, &c, 1), 0);
	target_memory_close(other);
	target_reader_free(r);
	child_end(pid);
	child_end(pid_other);
}

/* Whoever bounds the time itself waits longer, and refuses nobody who answers in that time. */
TEST(a_patient_reader_waits)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready late;
	pid_t pid = start_file(TARGET_DEADLINE_MS + 200, &late);
	uint64_t before = milliseconds();
	char c;

	r = target_reader_new(true);
	m = memory_of(r, pid);
	for (uint32_t n = 0; milliseconds() - before <= TARGET_PATIENCE * TARGET_WAITS_MS; n++)
		expect_eq(target_memory_read(m, late.at + (uint64_t)n * PAGE, &c, 1), 0);
	expect_eq(target_memory_read(m, late.at, &c, 1), 0);
	target_memory_close(m);
	target_reader_free(r);
	child_end(pid);
}

/* The descriptors of a process whose read never ends are closed when it is killed. */
TEST(stuck_reader_holds_no_descriptors)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready never;
	pid_t pid = start_file(0, &never), agent;
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0), ends[2];
	int copy = (int)syscall(SYS_pidfd_getfd, self, self, 0);
	char c;

	if (copy < 0) {
		child_end(pid);
		test_skip("the kernel has no pidfd_getfd, or refuses it: run this as root");
	}
	close(copy);
	close(self);
	expect_eq(pipe2(ends, O_CLOEXEC), 0);
	agent = fork();
	if (agent == 0) {
		close(ends[0]);
		r = target_reader_new(false);
		m = memory_of(r, pid);
		expect_eq(target_memory_read(m, never.at, &c, 1), -ETIMEDOUT);
		expect_eq(write(ends[1], "s", 1), 1);
		pause();
	}
	close(ends[1]);
	expect_eq(read(ends[0], &c, 1), 1);
	kill(agent, SIGKILL);
	/* The end of the pipe, though the file system has not answered. */
	expect_eq(read(ends[0], &c, 1), 0);
	expect_eq(waitpid(agent, NULL, WNOHANG), 0);
	close(ends[0]);
	child_end(pid);
	waitpid(agent, NULL, 0);
}
