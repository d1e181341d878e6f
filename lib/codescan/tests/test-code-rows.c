/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rows that are made of x86-64 code alone, and of instructions' lengths. */
#include "base/cleanup.h"
#include "testing/test.h"
#include "codescan/code-rows.h"
#include "unwind/tests/test-frames.h"

#include <errno.h>
#include <stdlib.h>

#define AT UINT64_C(0x401000)

struct made {
	uint64_t rules[512]; /* by the place of the instruction; 1: none begins there */
	size_t n;
	uint64_t work;
};

/* Whatever the code is, the work grows as it does. */
static int make_by(struct code_rows *c, const void *code, size_t n, struct made *made)
{
	_cleanup_(closep) int fd = elf_memfd(code, n);
	struct rows_piece piece;
	uint64_t before = AT;
	int r = code_rows_begin(c, fd, 0, AT, AT + n);

	for (size_t i = 0; i < 512; i++)
		made->rules[i] = 1;
	made->n = 0;
	while (r == 0 && (r = code_rows_next(c, &piece)) == 1) {
		expect_eq(piece.start, before);
		expect(piece.end > piece.start && piece.end <= AT + n);
		before = piece.end;
		if (piece.start - AT < 512)
			made->rules[piece.start - AT] = piece.words.rule;
		made->n++;
		r = 0;
	}
	expect(r < 0 || before == AT + n);
	made->work = c->work;
	expect(made->work <= n * (1 + (c->strict ? CODE_ROWS_WORK_STRICT : CODE_ROWS_WORK)));
	code_rows_free(c);
	return r;
}

static int make(const void *code, size_t n, uint64_t entry, struct made *made)
{
	struct code_rows c = {.absolute = true, .entry = entry};

	return make_by(&c, code, n, made);
}

#define CODE(bytes) static const char code[] = bytes

#define SP(offset)           frames_rule(UNWIND_X86_RSP, offset, UNWIND_FP_SAME)
#define SP_SAVED(offset, fp) frames_rule(UNWIND_X86_RSP, offset, fp)

static struct made made_of(const char *code, size_t n)
{
	struct made made;

	expect_eq(make(code, n, 0, &made), 0);
	return made;
}

static struct made made_strictly(const char *code, size_t n)
{
	struct code_rows c = {.strict = true};
	struct made made;

	expect_eq(make_by(&c, code, n, &made), 0);
	return made;
}

/* Pushes, pops and moves of the stack pointer count, and where the frame pointer is saved. */
TEST(prologue_and_epilogue)
{
	CODE("\x55\x53\x48\x83\xec\x18\x90\x48\x83\xc4\x18\x5b\x5d\xc3");
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[0], SP(8));
	expect_eq(made.rules[1], SP_SAVED(16, -2));
	expect_eq(made.rules[2], SP_SAVED(24, -2));
	expect_eq(made.rules[6], SP_SAVED(48, -2));
	expect_eq(made.rules[11], SP_SAVED(24, -2));
	expect_eq(made.rules[12], SP_SAVED(16, -2));
	expect_eq(made.rules[13], SP(8));
}

/* Where the stack pointer becomes unknown the frame pointer serves, until it is put back. */
TEST(frame_pointer_serves)
{
	/* push rbp; mov rsp,rbp; sub rax,rsp; nop; leave; ret */
	CODE("\x55\x48\x89\xe5\x48\x29\xc4\x90\xc9\xc3");
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[4], SP_SAVED(16, -2));
	expect_eq(made.rules[7], frames_rule(UNWIND_X86_RBP, 16, -2));
	expect_eq(made.rules[9], SP(8));
}

/* A loop's body that only a later jump leads back to, and code behind a return, have the stack of
 * those who jump there. */
TEST(jumps_tell_their_targets)
{
	/* push rbx; jmp 2f; 1: nop; 2: dec eax; jne 1b; je 3f; pop rbx; ret; 3: pop rbx; ret */
	CODE("\x53\xeb\x01\x90\xff\xc8\x75\xfb\x74\x02\x5b\xc3\x5b\xc3");
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[3], SP(16));
	expect_eq(made.rules[4], SP(16));
	expect_eq(made.rules[12], SP(16));
	expect_eq(made.rules[13], SP(8));
}

/* What nothing leads to is understood from where it leads to: here, two pops and a return. */
TEST(blocks_of_tables_are_understood)
{
	/* push rbp; push rbx; jmp *rax; nop; pop rbx; pop rbp; ret; push rbx; pop rbx; ret */
	CODE("\x55\x53\xff\xe0\x31\xc0\x5b\x5d\xc3\x53\x5b\xc3");
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[4], SP_SAVED(24, -2));
	expect_eq(made.rules[7], SP_SAVED(16, -2));
	expect_eq(made.rules[9], SP(8));
	expect_eq(made.rules[10], SP(16));
}

/* Who clears the frame pointer that he has not saved is an outermost frame; and so is the entry. */
TEST(outermost_frames_end)
{
	CODE("\x90\x31\xed\x48\x89\xe7\xf4\x90\x90");
	uint64_t end = unwind_rule(0, UNWIND_CFA_END, 0, 0, 0);
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[0], SP(8));
	expect_eq(made.rules[1], SP(8));
	expect_eq(made.rules[3], end);
	expect_eq(make(OPS(code), AT, &made), 0);
	expect_eq(made.rules[0], end);
	/* Behind padding, as in the dynamic linker. */
	expect_eq(make(OPS(code), AT + 1, &made), 0);
	expect_eq(made.rules[0], SP(8));
	expect_eq(made.rules[1], end);
}

/* A function whose return does not find the return address was not understood: nothing is said of
 * it, and the next is not touched by that. */
TEST(misunderstood_functions_are_left_out)
{
	/* push rbx; ret; call next; ret; next: push rbx; pop rbx; ret */
	CODE("\x53\xc3\xe8\x00\x00\x00\x00\x53\x5b\xc3");
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[0], 0);
	expect_eq(made.rules[1], 1);
	expect_eq(made.rules[7], SP(8));
	expect_eq(made.rules[8], SP(16));
}

/* Where the stack is aligned, the CFA is found by what was stored. */
TEST(aligned_stack)
{
	/* mov rsp,r11; and -32,rsp; sub 0x820,rsp; mov r11,0x800(rsp); push; pop; mov
	 * 0x800(rsp),rsp; ret */
	CODE("\x49\x89\xe3\x48\x83\xe4\xe0\x48\x81\xec\x20\x08\0\0\x4c\x89\x9c\x24\0\x08\0\0"
	     "\x50\x58\x48\x8b\xa4\x24\0\x08\0\0\xc3");
	/* The same, but r11 is changed first. */
	static const char code_too[] =
		"\x49\x89\xe3\x48\x83\xe4\xe0\x4d\x31\xdb\x4c\x89\x9c\x24\0\x08\0\0"
		"\x50\x58\x48\x8b\xa4\x24\0\x08\0\0\xc3";
	uint64_t stored = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_DEREF, 0, UNWIND_FP_SAME, 0x800);
	uint64_t pushed = unwind_rule(UNWIND_X86_RSP, UNWIND_CFA_DEREF, 0, UNWIND_FP_SAME, 0x808);
	struct made made = made_of(OPS(code));

	expect_eq(made.rules[3], SP(8));
	expect_eq(made.rules[7], 0);
	expect_eq(made.rules[14], 0);
	expect_eq(made.rules[22], unwind_rule_more(stored, 0, 0, 8));
	expect_eq(made.rules[23], unwind_rule_more(pushed, 0, 0, 8));
	expect_eq(made.rules[24], unwind_rule_more(stored, 0, 0, 8));
	expect_eq(made.rules[32], SP(8));
	made = made_of(OPS(code_too));
	expect_eq(made.n, 1);
	expect_eq(made.rules[0], 0);
}

/* A table amid code is left out, and what follows it is not. */
TEST(tables_amid_code)
{
	char code[64];
	struct made made;

	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x53\x5b\xc3", 3);
	memcpy(code + 16, "\x53\xc3\xff\x12\x06\x07\xc3\x55", 8);
	memcpy(code + 48, "\x53\x5b\xc3", 3);
	made = made_strictly(code, sizeof(code));
	expect_eq(made.rules[1], SP(16));
	expect_eq(made.rules[16], 0);
	expect_eq(made.rules[17], 1);
	expect_eq(made.rules[48], SP(8));
	expect_eq(made.rules[49], SP(16));
}

/* Between a short jump and its target none begins. */
TEST(short_jumps_stay_in_their_function)
{
	char code[48];
	struct made made;

	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x53\x74\x1d\x5b\xc3", 5); /* push; je 32; pop; ret */
	memcpy(code + 32, "\x5b\xc3", 2);
	made = made_strictly(code, sizeof(code));
	expect_eq(made.rules[3], SP(16));
	expect_eq(made.rules[32], SP(16));
	expect_eq(made.rules[33], SP(8));
}

/* Who ends with a jump is understood if that leads to a known beginning. */
TEST(functions_that_end_with_a_jump)
{
	for (int called = 0; called < 2; called++) {
		char code[48];
		struct made made;

		memset(code, 0x90, sizeof(code));
		memcpy(code, "\x53\x5b\xe9\x19\0\0\0", 7);  /* push; pop; jmp 32 */
		memcpy(code + 16, "\xe8\x0b\0\0\0\xc3", 6); /* call 32; ret */
		if (!called)
			memset(code + 16, 0x90, 5);
		code[32] = (char)0xc3;
		made = made_strictly(code, sizeof(code));
		expect_eq(made.rules[0], called ? SP(8) : 0);
		expect_eq(made.rules[1], called ? SP(16) : 1);
		expect_eq(made.rules[16], SP(8));
	}
}

/* make_by counts the work. */
TEST(work_is_linear)
{
	static const struct {
		const char *bytes;
		size_t n;
	} of[] = {{OPS("\x90")},
		  {OPS("\xc3")},
		  {OPS("\xcc")},
		  {OPS("\0")},
		  {OPS("\x06")},
		  {OPS("\xeb\xfe")},
		  {OPS("\xeb\0")},
		  {OPS("\xeb\x7e")},
		  {OPS("\x74\x80")},
		  {OPS("\x5b\xc3")},
		  {OPS("\xe8\0\x01\0\0")},
		  {OPS("\xe9\0\x01\0\0")},
		  {OPS("\x53\xff\xd0\xc3\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90")},
		  {OPS("\x53\xff\xd0\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\xc3")}};
	char code[8192];

	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = of[k].bytes[i % of[k].n];
		made_of(code, sizeof(code));
		made_strictly(code, sizeof(code));
	}
}

/* Each case of a table of jumps is followed from where it stands, not from the function's
 * beginning. */
TEST(cases_are_followed_once)
{
	const size_t cases = CODE_ROWS_GUESSES - 2, instructions = 2 + 2 * cases;
	char code[3 + 2 * CODE_ROWS_GUESSES] = "\x53\xff\xe0"; /* push %rbx; jmp *%rax */
	struct made made;

	for (size_t i = 0; i < cases; i++)
		memcpy(code + 3 + 2 * i, "\x5b\xc3", 2); /* pop %rbx; ret */
	made = made_of(code, 3 + 2 * cases);
	for (size_t i = 0; i < cases; i++) {
		expect_eq(made.rules[3 + 2 * i], SP(16));
		expect_eq(made.rules[4 + 2 * i], SP(8));
	}
	expect(made.work < 6 * instructions);
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Bytes of any kind end, in order, and without harm. */
TEST(any_bytes_do_no_harm)
{
	static const uint8_t likely[] = {0x55, 0x53, 0xc3, 0xe8, 0xeb, 0x74, 0x48,
					 0x83, 0xec, 0xc9, 0xff, 0x0f, 0x84, 0x62,
					 0xc4, 0x31, 0xed, 0x5d, 0xe9, 0x00};
	uint64_t state = 0x9e3779b97f4a7c15;

	for (int i = 0; i < 400; i++) {
		uint8_t code[700];
		struct made made;
		size_t n = random_next(&state) % sizeof(code) + 1;

		for (size_t k = 0; k < n; k++) {
			uint64_t x = random_next(&state);

			code[k] = x & 3 ? likely[(x >> 8) % sizeof(likely)] : (uint8_t)(x >> 8);
		}
		expect_eq(make(code, n, 0, &made), 0);
		made_strictly((const char *)code, n);
	}
}

/* What is no code costs hardly more than to read it. */
TEST(numbers_are_given_up_early)
{
	uint64_t state = 0x9e3779b97f4a7c15;
	char code[65536];

	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (char)random_next(&state);
	expect(made_strictly(code, sizeof(code)).work < sizeof(code));
}

static int make_small(void *context)
{
	struct made made;

	return make("\x53\x5b\xc3", 3, 0, &made);
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(make_small, NULL);
}
