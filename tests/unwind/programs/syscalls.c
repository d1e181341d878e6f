/* SPDX-License-Identifier: Apache-2.0 */
/* Most time is spent in the kernel: in system calls, and in faults that any instruction may
 * cause. */
#include "burn.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES (1 << 20)

static NOINLINE void reading(int zero, char *to)
{
	for (int i = 0; i < 50; i++)
		if (read(zero, to, BYTES / 4) < 0)
			burn_result++;
}

static NOINLINE void asking(void)
{
	struct stat s;

	for (int i = 0; i < 2000; i++)
		burn_result += (unsigned long)(stat("/usr/lib/os-release", &s) + getppid());
}

static NOINLINE void faulting(void)
{
	volatile char *p =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if ((void *)p == MAP_FAILED)
		return;
	for (int i = 0; i < BYTES; i += 4096)
		p[i] = 1;
	munmap((void *)(unsigned long)p, BYTES);
}

int main(int argc, char **argv)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *to = malloc(BYTES);

	burn_init(argc, argv);
	while (zero >= 0 && to && burning()) {
		reading(zero, to);
		asking();
		for (int i = 0; i < 20; i++)
			faulting();
	}
	return 0;
}
