/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves many frames at once by longjmp, works on both sides of it, and overwrites what was
 * left. */
#include "burn.h"

#include <setjmp.h>

static jmp_buf back;
static volatile int left;

static NOINLINE __attribute__((noreturn)) void leave(void)
{
	burn(20000);
	longjmp(back, 1);
}

static NOINLINE void dive(volatile char *above)
{
	volatile char here[200];

	here[left] = *above;
	if (left == 0)
		leave();
	left--;
	dive(here);
	burn_result += (unsigned long)here[0];
}

static NOINLINE void round_trip(int depth)
{
	char start = 1;

	left = depth;
	if (setjmp(back) == 0)
		dive(&start);
	else
		burn(20000);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	for (int i = 0; burning(); i++)
		round_trip(i % 60);
	return 0;
}
