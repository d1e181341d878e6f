/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that compiles, as far as its mappings go: every 40 ms it maps another piece of memory
 * to write to and to run, puts a function with a frame pointer there, and works below that. Such
 * memory is in no count of the kernel's that tells of a change. */
#include "burn.h"

#include <string.h>
#include <sys/mman.h>

#define PIECE 65536

typedef void (*through_fn)(void (*work)(void));

/* Calls its argument. */
#if defined(__x86_64__)
static const unsigned char code[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
	0xff, 0xd7,       /* call *%rdi */
	0x5d,             /* pop %rbp */
	0xc3,             /* ret */
};
#elif defined(__aarch64__)
static const unsigned char code[] = {
	0xfd, 0x7b, 0xbf, 0xa9, /* stp x29, x30, [sp, #-16]! */
	0xfd, 0x03, 0x00, 0x91, /* mov x29, sp */
	0x00, 0x00, 0x3f, 0xd6, /* blr x0 */
	0xfd, 0x7b, 0xc1, 0xa8, /* ldp x29, x30, [sp], #16 */
	0xc0, 0x03, 0x5f, 0xd6, /* ret */
};
#endif

static void work(void)
{
	double until = burn_used() + 0.04;

	while (burning() && burn_used() < until)
		burn(20000);
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning()) {
		char *piece = mmap(NULL, 2 * PIECE, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (piece == MAP_FAILED)
			return 1;
		/* Or the next one would be one mapping with it. */
		munmap(piece, PIECE);
		piece += PIECE;
		memcpy(piece, code, sizeof(code));
		__builtin___clear_cache(piece, piece + sizeof(code));
		((through_fn)(void *)piece)(work);
	}
	return 0;
}
