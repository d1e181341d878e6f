/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of processes: right, of the right process only, and bounded. */
#include "runtime-kit/target-memory.h"

#include "child.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes, words and texts, up to the border of what is there. */
TEST(memory_is_read)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready page;
	pid_t pid = child_start(child_have_page, &page);
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
	child_end(pid);
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

/* What is announced is read at once, as it is then; what is not there, or too much, costs nothing
 * else its bytes. */
TEST(what_is_announced_is_copied)
{
	const uint64_t base = 1ull << 40, at[] = {base + 5, base + PAGE, base + 9, 0, UINT64_MAX,
						  base + 3 * PAGE};
	struct target_reader *r = target_reader_new(false);
	int fd = memfd_create("memory", MFD_CLOEXEC);
	struct target_memory *m;

	expect_eq(pwrite(fd, "old1", 4, (off_t)base), 4);
	expect_eq(pwrite(fd, "old2", 4, (off_t)base + PAGE), 4);
	expect_eq(pwrite(fd, "old3", 4, (off_t)base + 2 * PAGE), 4);
	expect_eq(target_memory_of(r, dup(fd), &m), 0);
	target_memory_announce(m, at, sizeof(at) / sizeof(at[0]));
	expect_eq(pwrite(fd, "new1", 4, (off_t)base), 4);
	expect_eq(pwrite(fd, "new2", 4, (off_t)base + PAGE), 4);
	expect_eq(pwrite(fd, "new3", 4, (off_t)base + 2 * PAGE), 4);
	expect_eq(target_memory_word32(m, base), 0x31646c6f);
	expect_eq(target_memory_word32(m, base + PAGE), 0x32646c6f);
	expect_eq(target_memory_word32(m, base + 2 * PAGE), 0x3377656e);
	expect_eq(target_memory_word32(m, base + 3 * PAGE), 0);
	target_reader_refresh(r);
	target_memory_announce(m, at, 2);
	expect_eq(target_memory_word32(m, base), 0x3177656e);
	expect_eq(target_memory_word32(m, base + PAGE), 0x3277656e);
	target_memory_close(m);
	target_reader_free(r);
	close(fd);
}

/* Blocks that are read in turn do not displace each other, wherever they are; the one that was used
 * the longest ago goes. */
TEST(sixteen_blocks_are_copied)
{
	struct target_reader *r = target_reader_new(false);
	int fd = memfd_create("memory", MFD_CLOEXEC);
	struct target_memory *m;

	for (uint32_t i = 0; i < 17; i++)
		expect_eq(pwrite(fd, "old1", 4, (off_t)i * PAGE), 4);
	expect_eq(target_memory_of(r, dup(fd), &m), 0);
	for (uint64_t i = 0; i < 16; i++)
		expect_eq(target_memory_word32(m, i * PAGE), 0x31646c6f);
	for (uint32_t i = 0; i < 17; i++)
		expect_eq(pwrite(fd, "new1", 4, (off_t)i * PAGE), 4);
	for (uint64_t i = 0; i < 16; i++)
		expect_eq(target_memory_word32(m, i * PAGE), 0x31646c6f);
	expect_eq(target_memory_word32(m, 16 * PAGE), 0x3177656e);
	expect_eq(target_memory_word32(m, 1 * PAGE), 0x31646c6f);
	expect_eq(target_memory_word32(m, 0), 0x3177656e);
	target_memory_close(m);
	target_reader_free(r);
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
	pid_t pid = child_start(child_have_page, &page);
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
	child_end(pid);
}

/* After its end nothing is read, and a pid that is another's is refused. */
TEST(successors_are_not_read)
{
	struct target_reader *r;
	struct andiron_runtime_process process;
	struct target_memory *m;
	struct ready page;
	pid_t pid = child_start(child_have_page, &page);
	char text[8];

	r = target_reader_new(false);
	m = memory_of(r, pid);
	process = process_of(pid);
	process.start_ns += 1000000000;
	expect_eq(target_memory_read(m, page.at, text, 6), 0);
	child_end(pid);
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
		child_say(out, p, errno);
	child_say(out, p, 0);
}

TEST(userfaultfd_is_not_waited_for)
{
	struct target_reader *r;
	struct target_memory *m;
	struct ready page;
	pid_t pid = child_start(never_fault, &page);
	char c;

	r = target_reader_new(false);
	if (page.error != 0) {
		child_end(pid);
		test_skip("the kernel refuses userfaultfd: run this as root, as ./check does");
	}
	m = memory_of(r, pid);
	/* And not that it was given up. */
	expect_eq(target_memory_read(m, page.at, &c, 1), -EFAULT);
	target_memory_close(m);
	target_reader_free(r);
	child_end(pid);
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
