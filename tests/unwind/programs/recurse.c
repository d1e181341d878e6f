/* SPDX-License-Identifier: Apache-2.0 */
/* Works 1,000 calls deep; with a second argument as deep as that says. */
#include "burn.h"

/* Volatile, so that the calls are none that the compiler could make a loop of. */
static volatile int left;

static NOINLINE unsigned long deeper(unsigned long x)
{
	unsigned long y;

	if (left == 0) {
		burn(3000000);
		return x;
	}
	left--;
	y = deeper(x + 1);
	left++;
	return y ^ x;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	left = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000;
	while (burning())
		burn_result += deeper(1);
	return 0;
}
