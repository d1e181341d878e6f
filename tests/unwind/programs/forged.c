/* SPDX-License-Identifier: Apache-2.0 */
/* Looks like Go that has left its goroutine's stack, which is said to be where nothing of the kind
 * is: in memory that nobody has touched, or in a file's, if one is named. Prints how many pages of
 * it are there in the end: those that somebody else has read. */
#include "burn.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 16
#define PAGE  4096

struct g {
	uint64_t low, high, guards[2], panics, defers, m, sp, pc, self;
};

/* Rounds with the g in the register where Go's code has it. */
static NOINLINE void spin(const struct g *g)
{
	unsigned long rounds = 1000000;

#if defined(__aarch64__)
	__asm__ volatile("mov x28, %1\n1: subs %0, %0, #1\n b.ne 1b"
			 : "+r"(rounds)
			 : "r"(g)
			 : "x28", "cc");
#else
	__asm__ volatile("mov %1, %%r14\n1: dec %0\n jnz 1b" : "+r"(rounds) : "r"(g) : "r14", "cc");
#endif
}

static int present(const char *memory)
{
	int fd = open("/proc/self/pagemap", O_RDONLY), n = 0;
	uint64_t pages[PAGES];

	if (fd < 0 || pread(fd, pages, sizeof(pages),
			    (off_t)((uintptr_t)memory / PAGE * sizeof(pages[0]))) != sizeof(pages))
		exit(2);
	for (int i = 0; i < PAGES; i++)
		n += pages[i] >> 63 != 0;
	return n;
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[2], O_RDONLY) : -1;
	char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	uint64_t *m = calloc(32, sizeof(*m));
	struct g *system = calloc(1, sizeof(*system)), *g = calloc(1, sizeof(*g));

	burn_init(argc, argv);
	if (memory == MAP_FAILED || (argc > 2 && fd < 0) || !m || !system || !g)
		return 1;
	*system = (struct g){.low = 8, .high = 16, .m = (uintptr_t)m};
	*g = (struct g){.low = (uintptr_t)memory,
			.high = (uintptr_t)memory + PAGES * PAGE,
			.m = (uintptr_t)m};
	g->sp = g->low + PAGE;
	g->self = (uintptr_t)g;
	m[0] = (uintptr_t)system;
	m[24] = (uintptr_t)g;
	while (burning())
		spin(g);
	printf("%d\n", present(memory));
	return 0;
}
