/* SPDX-License-Identifier: Apache-2.0 */
/* Uses so much CPU eight calls deep, loading and linking included, and is gone. */
#include "burn.h"

static NOINLINE void work(int depth)
{
	if (depth > 0)
		work(depth - 1);
	else
		burn(20000);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning())
		work(8);
	return 0;
}
