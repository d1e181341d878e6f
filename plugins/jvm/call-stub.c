/* SPDX-License-Identifier: Apache-2.0 */
/* The stub has been the same from JDK 8 to 26:
 *
 *   push %rbp; mov %rsp, %rbp; sub $N, %rsp … call *%rsi; … [exit:] … add $N, %rsp; vzeroupper;
 *   pop %rbp; ret
 *
 * Behind the return stand the stores of results that are no int: of an object or a long, of a float
 * and of a double, each of which jumps back to `exit`. What else is there is the next stub. */
#include "jvm/call-stub.h"

#include <string.h>

#define STUB_BYTES 256 /* of it, at most, before its call returns, and behind */
#define RESULTS    3

#define is(code, text) (memcmp(code, text, sizeof(text) - 1) == 0)

/* The end of the stores at code[at], which jump to between `from` and `at`. */
static uint32_t results_end(const uint8_t *code, uint32_t from, uint32_t at)
{
	uint32_t end = at;

	for (int i = 0; i < RESULTS && end + 6 <= 2 * STUB_BYTES; i++) {
		uint32_t jump = end + (is(code + end, "\x48\x89\x07") ? 3 : 4), back;

		/* mov %rax, (%rdi), or movs? %xmm0, (%rdi) */
		if ((jump == end + 4 && !is(code + end + 2, "\x11\x07")) || code[jump] != 0xeb)
			break;
		back = 256u - code[jump + 1];
		if (back > jump + 2 - from || jump + 2 - back >= at)
			break;
		end = jump + 2;
	}
	return end;
}

/* The offset behind its return, 0: there is none. */
static uint32_t return_end(const uint8_t *code)
{
	for (uint32_t at = STUB_BYTES; at + 2 <= 2 * STUB_BYTES; at++)
		if (is(code + at, "\x5d\xc3") &&
		    (is(code + at - 3, "\xc5\xf8\x77") || is(code + at - 4, "\x48\x83\xc4")))
			return at + 2;
	return 0;
}

void call_stub_read(struct target_memory *memory, struct jvm_process *ret)
{
	uint8_t code[2 * STUB_BYTES];
	uint32_t end;

	if (target_memory_read(memory, ret->call_stub - STUB_BYTES, code, sizeof(code)) != 0 ||
	    !is(code + STUB_BYTES - 2, "\xff\xd6"))
		return;
	end = return_end(code);
	for (uint32_t at = STUB_BYTES - 8; at > 0 && end != 0; at--)
		if (is(code + at, "\x55\x48\x8b\xec\x48") && code[at + 6] == 0xec) {
			ret->call_stub_before = (uint16_t)(STUB_BYTES - at);
			ret->call_stub_behind =
				(uint16_t)(results_end(code, STUB_BYTES, end) - STUB_BYTES);
			return;
		}
}
