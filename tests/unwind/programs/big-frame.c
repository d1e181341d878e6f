/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of 1 MiB: what copies a piece of the stack does not see beyond it. */
#include "burn.h"

#define FRAME_BYTES (1 << 20)

static NOINLINE void under(volatile char *top)
{
	burn(100000);
	*top = 1;
}

static NOINLINE void big(int x)
{
	volatile char room[FRAME_BYTES];

	room[0] = room[FRAME_BYTES - 1] = (char)x;
	under(&room[FRAME_BYTES / 2]);
	burn_result += (unsigned long)room[0];
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning())
		big(argc);
	return 0;
}
