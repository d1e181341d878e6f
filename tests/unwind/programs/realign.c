/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that align their stack beyond what their caller guarantees. gcc keeps the caller's in
 * r10 and then in the frame (the canonical frame address is read from memory); clang addresses its
 * locals by rbx and the frame by rbp. Built several times with other flags. */
#include "burn.h"

#include <string.h>

static volatile size_t amount = 333;

static NOINLINE void aligned(int depth);

static NOINLINE void growing(int depth)
{
	_Alignas(64) char fixed[128];
	char *more = __builtin_alloca(amount + (size_t)depth);

	memset(fixed, depth, sizeof(fixed));
	memset(more, depth, amount);
	burn_result += (unsigned char)fixed[depth & 63] + (unsigned char)more[depth & 63];
	if (depth > 0)
		aligned(depth - 1);
	else
		burn(50000);
	burn_result += (unsigned char)fixed[64] + (unsigned char)more[64];
}

struct numbers {
	long n[8];
};

/* An argument that lies on the caller's stack: which is needed after it has been left. */
static NOINLINE long many(int depth, struct numbers passed)
{
	_Alignas(128) volatile long kept[16];

	for (int i = 0; i < 16; i++)
		kept[i] = passed.n[i & 7] + i;
	growing(depth);
	return kept[depth & 15] + passed.n[depth & 7];
}

static NOINLINE void aligned(int depth)
{
	_Alignas(32) volatile char room[96];

	room[depth & 63] = (char)depth;
	burn_result += (unsigned long)many(depth, (struct numbers){{1, 2, 3, depth}});
	burn_result += (unsigned long)room[depth & 63];
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning())
		aligned(4);
	return 0;
}
