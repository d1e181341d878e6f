/* SPDX-License-Identifier: Apache-2.0 */
/* Has the C library call back from below a function whose caller's stack is found by a register
 * (cfi-x86.S). The library has saved that register, which no rule of its own needs. */
#include "burn.h"

extern void cfa_rbx(void (*next)(void)), cfa_r12(void (*next)(void));

static int compare(const void *a, const void *b)
{
	burn(2000);
	return *(const int *)a - *(const int *)b;
}

static void sort(void)
{
	int numbers[32];

	for (int i = 0; i < 32; i++)
		numbers[i] = i * 7919 % 32;
	qsort(numbers, 32, sizeof(numbers[0]), compare);
	NO_TAIL;
}

static void over_rbx(void)
{
	cfa_rbx(sort);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning())
		cfa_r12(over_rbx);
	return 0;
}
