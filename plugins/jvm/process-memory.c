/* SPDX-License-Identifier: Apache-2.0 */
/* By /proc/PID/mem, one system call for each read. */
#include "jvm/process-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int memory_open(uint32_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

int memory_read(int fd, void *to, uint64_t n, uint64_t at)
{
	if (at > INT64_MAX || n > INT64_MAX)
		return -EFAULT;
	return pread(fd, to, n, (off_t)at) == (ssize_t)n ? 0 : -EFAULT;
}

uint64_t memory_word(int fd, uint64_t at)
{
	uint64_t word;

	return memory_read(fd, &word, sizeof(word), at) == 0 ? word : 0;
}

uint32_t memory_word32(int fd, uint64_t at)
{
	uint32_t word;

	return memory_read(fd, &word, sizeof(word), at) == 0 ? word : 0;
}

void memory_text(int fd, char *to, uint64_t max, uint64_t at)
{
	ssize_t n = at > 4096 && at <= INT64_MAX ? pread(fd, to, max - 1, (off_t)at) : 0;

	to[n > 0 ? n : 0] = 0;
}
