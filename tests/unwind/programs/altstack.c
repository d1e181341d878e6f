/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers that work on an alternate stack, for signals that come from within and for those of a
 * timer, which interrupt any instruction, first and last ones of functions included. */
#include "burn.h"

#include <signal.h>
#include <sys/time.h>

#define STACK_BYTES (256 << 10)

static NOINLINE void handle_deeper(int depth)
{
	if (depth > 0)
		handle_deeper(depth - 1);
	else
		burn(500000);
	NO_TAIL;
}

static void handle(int number)
{
	handle_deeper(3);
	NO_TAIL;
}

static NOINLINE int small(int x)
{
	burn_result += (unsigned long)x;
	return x ^ 5;
}

static NOINLINE void work(int depth)
{
	if (depth > 0) {
		work(depth - 1);
		NO_TAIL;
		return;
	}
	for (int i = 0, x = 1; i < 300000; i++)
		x = small(x) + 1;
	raise(SIGUSR1);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	stack_t stack = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct itimerval every = {{0, 4000}, {0, 4000}};

	burn_init(argc, argv);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) < 0)
		return 1;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	while (burning())
		work(6);
	return 0;
}
