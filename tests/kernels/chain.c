/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose stacks are known from the first to the last frame: _start, chain_0, eight
 * functions that each call the next, and chain_end, which uses the processor.
 *
 *     chain SECONDS      whole ones, of CPU time
 *
 * It has no C library, for that one is built without frame pointers: all of this is built with
 * them, and _start says by a frame pointer of 0, and by its call-frame information, that nothing is
 * behind it. */
#include <asm/unistd.h>
#include <linux/time.h>
#include <stdint.h>

#define NOINLINE __attribute__((noinline))
#define ROUNDS   4000000 /* some milliseconds, between two looks at the clock */

#if defined(__x86_64__)
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	".cfi_startproc\n"
	".cfi_undefined rip\n"
	"xor %ebp, %ebp\n"
	"mov %rsp, %rdi\n"
	"and $-16, %rsp\n"
	"call chain_0\n"
	"ud2\n"
	".cfi_endproc\n"
	".size _start, . - _start\n");

static long call_kernel(long number, long a, long b)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n"
	".type _start, %function\n"
	"_start:\n"
	".cfi_startproc\n"
	".cfi_undefined x30\n"
	"mov x29, #0\n"
	"mov x30, #0\n"
	"mov x0, sp\n"
	"bl chain_0\n"
	"brk #0\n"
	".cfi_endproc\n"
	".size _start, . - _start\n");

static long call_kernel(long number, long a, long b)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	return x0;
}
#endif

/* Not zero: before Linux 6.6 a segment with nothing in the file is mapped wrongly. */
static volatile uint64_t sink = 1;

/* The variable has an address, so that this leaf needs a frame. */
static NOINLINE void chain_end(void)
{
	volatile int i;

	for (i = 0; i < ROUNDS; i++)
		sink = sink * 6364136223846793005u + 1442695040888963407u;
}

/* What stands behind the call keeps it from becoming a jump. */
#define LINK(name, next)                                                                           \
	static NOINLINE void name(void)                                                            \
	{                                                                                          \
		next();                                                                            \
		sink = sink + 1;                                                                   \
	}

LINK(chain_8, chain_end)
LINK(chain_7, chain_8)
LINK(chain_6, chain_7)
LINK(chain_5, chain_6)
LINK(chain_4, chain_5)
LINK(chain_3, chain_4)
LINK(chain_2, chain_3)
LINK(chain_1, chain_2)

static long number(const char *text)
{
	long n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		n = 10 * n + *text - '0';
	return n;
}

/* From _start, with the stack as the kernel makes it: argc, argv. */
_Noreturn void chain_0(const long *stack);
_Noreturn void chain_0(const long *stack)
{
	long seconds = stack[0] > 1 ? number((const char *)stack[2]) : 1;
	struct timespec used = {0};

	while (used.tv_sec < seconds) {
		chain_1();
		call_kernel(__NR_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, (long)&used);
	}
	for (;;)
		call_kernel(__NR_exit_group, 0, 0);
}
