/* SPDX-License-Identifier: Apache-2.0 */
/* The input as a file: what reads files gets one, and it need not be made anew for each input. */
#include "fuzz.h"

#include "base/check.h"

#include <sys/mman.h>
#include <unistd.h>

int fuzz_file(const uint8_t *bytes, size_t n)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
	return fd;
}
