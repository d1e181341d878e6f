/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the functions of cfi-x86.S, each of which keeps its caller's stack in another way. */
#include "burn.h"

extern void cfa_rbx(void (*next)(void)), cfa_r12(void (*next)(void)), cfa_saved(void (*next)(void)),
	clobbers_rbp(void (*next)(void));
extern void cfa_r10(unsigned long rounds), return_in_rdi(unsigned long rounds),
	pushes(unsigned long rounds);

static void leaf(void)
{
	burn(20000);
	NO_TAIL;
}

static void leaves(void)
{
	cfa_r10(20000);
	return_in_rdi(20000);
	pushes(5000);
	NO_TAIL;
}

static void over_saved(void)
{
	cfa_saved(leaf);
	cfa_rbx(leaves);
	NO_TAIL;
}

static void over_rbx(void)
{
	cfa_rbx(over_saved);
	clobbers_rbp(leaves);
	NO_TAIL;
}

static void over_r12(void)
{
	cfa_r12(over_rbx);
	clobbers_rbp(over_saved);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning())
		over_r12();
	return 0;
}
