/* SPDX-License-Identifier: Apache-2.0 */
/* See call-stack.h. makecontext, and not a thread: the call stays on the thread that the component
 * knows, and the C library lays nothing of its own on that stack. */
#include "cli/conformance/call-stack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)1 << 20)
#define PATTERN     0xa5

/* Two halves of a pointer, since a context passes only int. */
struct call {
	void (*fn)(void *arg);
	void *arg;
};

static void enter(unsigned int high, unsigned int low)
{
	const struct call *call = (const struct call *)(((uintptr_t)high << 32) | low);

	call->fn(call->arg);
}

static void do_nothing(void *arg)
{
}

static int64_t run(unsigned char *stack, struct call call)
{
	ucontext_t here, there;
	size_t at = 0;

	memset(stack, PATTERN, STACK_BYTES);
	if (getcontext(&there) < 0)
		return -errno;
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))enter, 2, (unsigned int)((uintptr_t)&call >> 32),
		    (unsigned int)(uintptr_t)&call);
	if (swapcontext(&here, &there) < 0)
		return -errno;
	while (at < STACK_BYTES && stack[at] == PATTERN)
		at++;
	return (int64_t)(STACK_BYTES - at);
}

int64_t call_stack_use(void (*fn)(void *arg), void *arg)
{
	unsigned char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int64_t used, empty;

	if (stack == MAP_FAILED)
		return -errno;
	empty = run(stack, (struct call){do_nothing, NULL});
	used = empty < 0 ? empty : run(stack, (struct call){fn, arg});
	munmap(stack, STACK_BYTES);
	return used < 0 ? used : used - empty;
}
