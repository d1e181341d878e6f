/* SPDX-License-Identifier: Apache-2.0 */
/* One process, one program image after the other, each of 20 ms. Between two of them stands one
 * that does nothing, so that nobody who looks now and then sees it: the kernel gives an image what
 * the one before the last has given up, as between two exec calls of a shell and of what starts a
 * compiler. */
#include "burn.h"

#include <unistd.h>

int main(int argc, char **argv)
{
	double until = burn_used() + 0.02;

	burn_init(argc, argv);
	if (argc > 2)
		return execl(argv[0], argv[0], argv[1], (char *)NULL);
	while (burning() && burn_used() < until)
		burn(20000);
	return burning() ? execl(argv[0], argv[0], argv[1], "at once", (char *)NULL) : 0;
}
