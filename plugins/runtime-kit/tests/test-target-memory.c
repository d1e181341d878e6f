/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of processes: right, of the right process only, bounded, and never waiting for one. */
#include "runtime-kit/target-memory.h"

#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

/* What a target says when it is ready. */
struct ready {
	uint64_t at;
	int error;
};

/* Waits until the threads of readers that were freed have ended. A child may hang that is forked
 * beside one: under sanitizers it begins threads of its own with a lock that the other one held. */
static void expect_alone(void)
{
	struct stat tasks;

	do
		expect_eq(stat("/proc/self/task", &tasks), 0);
	while (tasks.st_nlink > 3 && poll(NULL, 0, 1) == 0);
}

/* A child that runs `body`, which writes a struct ready; and what it wrote. Before a reader is made.
 */
static pid_t start(void (*body)(int out), struct ready *ret)
{
	int ends[2];
	pid_t pid;

	expect_alone();
	expect_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
		ret->error = ECHILD;
	close(ends[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void say(int out, const void *at, int error)
{
	struct ready r = {(uintptr_t)at, error};

	if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r))
		_exit(1);
	pause();
}

/* /proc/PID/stat's field 22, in ns. */
static struct andiron_runtime_process process_of(pid_t pid)
{
	struct andiron_runtime_process ret = {.pid = (uint32_t)pid};
	char path[32], text[1024];
	FILE *f;
	char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	expect(f && fgets(text, sizeof(text), f));
	fclose(f);
	at = strrchr(text, ')');
	for (int i = 2; i < 22; i++)
		at = strchr(at + 1, ' ');
	ret.start_ns = strtoull(at, NULL, 10) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
	return ret;
}

static struct target_memory *memory_of(struct target_reader *r, pid_t pid)
{
	struct andiron_runtime_process process = process_of(pid);
	struct target_memory *m;
	int error = target_memory_open(r, &process, &m);

	if (error == -EACCES)
		test_skip("needs the right to read a child's memory");
	expect_eq(error, 0);
	return m;
}

static uint64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A page between two that are not there, with a text up to its end. */
static void have_page(int out)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE);
	/* Only what is not mapped cannot be read. */
	munmap(p, PAGE);
	munmap(p + 2 * PAGE, PAGE);
	memset(p + PAGE, 'x', PAGE);
	memcpy(p + PAGE, "hello", 6);
	say(out, p + PAGE, 0);
}

/* Bytes, words and texts, up to the border of what is there. */
TEST(memory_is_read)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready page;
	pid_t pid = start(have_page, &page);
	char text[16];

	r = target_reader_new(false);
	m = memory_of(r, pid);
	expect_eq(target_memory_text(m, page.at, text, sizeof(text)), 5);
	expect_str(str_of(text), "hello");
	expect_eq(target_memory_text(m, page.at, text, 3), 2);
	expect_eq(target_memory_text(m, page.at + PAGE - 4, text, sizeof(text)), 4);
	expect_str(str_of(text), "xxxx");
	expect_eq(target_memory_word32(m, page.at + PAGE - 4), 0x78787878);
	expect_eq(target_memory_word32(m, page.at + PAGE - 3), 0);
	expect_eq(target_memory_word(m, page.at - 8), 0);
	expect_eq(target_memory_read(m, page.at + PAGE, text, 1), -EFAULT);
	expect_eq(target_memory_read(m, UINT64_MAX - 2, text, 8), -EFAULT);
	target_memory_close(m);
	target_reader_free(r);
	end(pid);
}

/* Long reads go by pieces; copies are as old as the last refresh. */
TEST(copies_are_refreshed)
{
	struct target_reader *r = target_reader_new(false);
	int fd = memfd_create("memory", MFD_CLOEXEC);
	size_t n = 1 << 20;
	unsigned char *bytes = malloc(n), *got = malloc(n);
	struct target_memory *m;
	uint64_t base = 1ull << 46;

	for (size_t i = 0; i < n; i++)
		bytes[i] = (unsigned char)(i * 31 >> 3);
	expect_eq(pwrite(fd, bytes, n, (off_t)base), n);
	expect_eq(target_memory_of(r, dup(fd), &m), 0);
	expect_eq(target_memory_read(m, base + 1, got, n - 1), 0);
	expect(memcmp(got, bytes + 1, n - 1) == 0);
	expect_eq(target_memory_read(m, base + 4000, got, 5000), 0);
	expect(memcmp(got, bytes + 4000, 5000) == 0);
	expect_eq(target_memory_read(m, base + 1, got, n), -EFAULT);
	expect_eq(pwrite(fd, "news", 4, (off_t)base + 4000), 4);
	expect(target_memory_word32(m, base + 4000) != 0x7377656e);
	target_reader_refresh(r);
	expect_eq(target_memory_word32(m, base + 4000), 0x7377656e);
	target_memory_close(m);
	target_reader_free(r);
	free(bytes);
	free(got);
	close(fd);
}

/* A process has so many reads in a second, however often it is opened. */
TEST(reads_are_counted)
{
	struct target_reader *r = target_reader_new(false);
	int fd = memfd_create("memory", MFD_CLOEXEC), error = 0;
	struct target_memory *m, *other;
	uint32_t n = 0;
	char c;

	expect_eq(pwrite(fd, "x", 1, 0), 1);
	expect_eq(target_memory_of(r, dup(fd), &m), 0);
	expect_eq(target_memory_of(r, fd, &other), 0);
	for (; error == 0 && n <= 100 * TARGET_READS; n++)
		error = target_memory_read(m, 0, &c, 1);
	expect_eq(error, -EDQUOT);
	expect(n > TARGET_READS);
	expect_eq(target_memory_read(other, 0, &c, 1), 0);
	target_memory_close(m);
	target_memory_close(other);
	target_reader_free(r);
}

/* Whoever bounds the time itself is not refused for their number. */
TEST(a_patient_reader_counts_no_reads)
{
	struct target_reader *r = target_reader_new(true);
	int fd = memfd_create("memory", MFD_CLOEXEC), error = 0;
	struct target_memory *m;
	char c;

	expect_eq(pwrite(fd, "x", 1, 0), 1);
	expect_eq(target_memory_of(r, fd, &m), 0);
	for (uint32_t n = 0; error == 0 && n < 10 * TARGET_READS; n++)
		error = target_memory_read(m, 0, &c, 1);
	expect_eq(error, 0);
	target_memory_close(m);
	target_reader_free(r);
}

TEST(reads_are_counted_by_process)
{
	struct target_reader *r;
	struct target_memory *m, *again;
	struct ready page;
	pid_t pid = start(have_page, &page);
	char c;

	r = target_reader_new(false);
	m = memory_of(r, pid);
	again = memory_of(r, pid);
	/* Until both fall into the same second. */
	do
		while (target_memory_read(m, page.at, &c, 1) == 0)
			;
	while (target_memory_read(again, page.at, &c, 1) != -EDQUOT);
	target_memory_close(m);
	target_memory_close(again);
	target_reader_free(r);
	end(pid);
}

/* After its end nothing is read, and a pid that is another's is refused. */
TEST(successors_are_not_read)
{
	struct target_reader *r;
	struct andiron_runtime_process process;
	struct target_memory *m;
	struct ready page;
	pid_t pid = start(have_page, &page);
	char text[8];

	r = target_reader_new(false);
	m = memory_of(r, pid);
	process = process_of(pid);
	process.start_ns += 1000000000;
	expect_eq(target_memory_read(m, page.at, text, 6), 0);
	end(pid);
	expect_eq(target_memory_read(m, page.at + PAGE / 2, text, 6), 0);
	target_reader_refresh(r);
	expect_eq(target_memory_read(m, page.at, text, 6), -EFAULT);
	target_memory_close(m);
	process.pid = (uint32_t)getpid();
	expect_eq(target_memory_open(r, &process, &m), -ESRCH);
	target_reader_free(r);
}

/* A page whose owner is asked for it by userfaultfd, and never answers. */
static void never_fault(int out)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {(uintptr_t)p, PAGE},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0)
		say(out, p, errno);
	say(out, p, 0);
}

TEST(userfaultfd_is_not_waited_for)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready page;
	pid_t pid = start(never_fault, &page);
	char c;

	r = target_reader_new(false);
	if (page.error != 0) {
		end(pid);
		test_skip("the kernel refuses userfaultfd: run this as root, as ./check does");
	}
	m = memory_of(r, pid);
	/* And not that it was given up. */
	expect_eq(target_memory_read(m, page.at, &c, 1), -EFAULT);
	target_memory_close(m);
	target_reader_free(r);
	end(pid);
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
		say(out, NULL, errno);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,max_read=%u", fd, getuid(), getgid(),
		 PAGE);
	if (mount("never", "/tmp", "fuse", MS_NOSUID | MS_NODEV, options) != 0)
		say(out, NULL, errno);
	pthread_create(&thread, NULL, serve, &fd);
	file = open("/tmp/file", O_RDONLY | O_CLOEXEC);
	p = file < 0 ? MAP_FAILED : mmap(NULL, FILE_PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	close(file);
	madvise(p, FILE_PAGES * PAGE, MADV_RANDOM);
	say(out, p, p == MAP_FAILED ? errno : 0);
}

/* A process with such a mapping. */
static pid_t start_file(int ms, struct ready *ret)
{
	pid_t pid;

	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0)
		test_skip("needs root and /dev/fuse: run this as root, as ./check does");
	answer_ms = ms;
	pid = start(map_file, ret);
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
	pid_t pid = start_file(0, &never), pid_other = start(have_page, &page);
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
	end(pid);
	while (target_reader_stuck(r) != 0)
		poll(NULL, 0, 1);
	target_memory_close(other);
	target_reader_free(r);
	end(pid_other);
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
	end(pid);
}

/* A process that answers late each time is waited for so long in a minute, and then refused. */
TEST(waits_are_summed)
{
	struct target_reader *r;
	struct andiron_runtime_process process;
	struct target_memory *m, *other;
	struct ready late, page;
	pid_t pid = start_file(TARGET_WAITS_MS / 4, &late), pid_other = start(have_page, &page);
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
	end(pid);
	end(pid_other);
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
	end(pid);
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
		end(pid);
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
	end(pid);
	waitpid(agent, NULL, 0);
}

/* Once its reader has ended, nothing is read any more. */
TEST(ended_reader_refuses)
{
	struct target_reader *r = target_reader_new(false);
	int fd = memfd_create("memory", MFD_CLOEXEC);
	struct target_memory *m;
	char c;

	expect_eq(pwrite(fd, "x", 1, 0), 1);
	expect_eq(target_memory_of(r, fd, &m), 0);
	target_reader_end(r);
	expect_eq(target_memory_read(m, 0, &c, 1), -ECANCELED);
	target_memory_close(m);
	target_reader_free(r);
}

/* Open memories leave half of the descriptors to others. */
TEST(descriptors_are_bounded)
{
	struct rlimit limit = {64, 64};
	struct target_memory *list[64];
	struct target_reader *r;
	uint32_t n = 0;
	int error = 0;

	expect_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	r = target_reader_new(false);
	while (n < 64 && error == 0) {
		error = target_memory_of(r, memfd_create("memory", MFD_CLOEXEC), &list[n]);
		n += error == 0;
	}
	expect_eq(error, -EMFILE);
	expect_eq(n, 32);
	target_memory_close(list[--n]);
	expect_eq(target_memory_of(r, memfd_create("memory", MFD_CLOEXEC), &list[n++]), 0);
	while (n > 0)
		target_memory_close(list[--n]);
	target_reader_free(r);
}

static int use(void *context)
{
	struct target_reader *r = target_reader_new(false);
	struct target_memory *m = NULL;
	int error = r ? target_memory_of(r, dup(*(int *)context), &m) : -ENOMEM;
	char c;

	if (error == 0)
		error = target_memory_read(m, 0, &c, 1);
	target_memory_close(m);
	target_reader_free(r);
	return error;
}

TEST(survives_out_of_memory)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);

	expect_eq(pwrite(fd, "x", 1, 0), 1);
	test_each_failing_allocation(use, &fd);
	close(fd);
}
