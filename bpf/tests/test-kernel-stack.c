/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of the kernel's stack over tables and stacks that are made here, natively and under the
 * sanitizers. That its answers are the kernel's own is what tests/bpf/test-kernel-stack.c shows. */
#include "bpfwire/kernel-tables.h"

#include "testing/test.h"

#include <andiron/bpf/walk.h>
#include <stdlib.h>
#include <string.h>

#define UNWIND_INLINE static inline
#define UNWIND_GLOBAL static

typedef uint32_t unwind_env;

#define CPU 3

#define TEXT      0xffffffff81000000ull
#define TEXT_END  (TEXT + 0x100000)
#define ADDRESSES 0xffffffff83000000ull
#define ENTRIES   0xffffffff84000000ull
#define MEMORY    0xffffc90000000000ull /* of stacks */
#define USER      0x401000ull
#define WORDS     4096

/* Bits of an entry. */
#define RULE(sp, fp, type, signal) (__u16)((sp) | (fp) << 4 | (type) << 8 | (signal) << 11)
#define CALL                       RULE(KERNEL_BY_SP, KERNEL_BY_NOTHING, KERNEL_TYPE_CALL, 0)

static struct {
	struct kernel_tables tables;
	struct kernel_jit jit;
	struct kernel_set sets[KERNEL_SETS];
	int32_t addresses[64];
	struct kernel_entry entries[64];
	uint64_t memory[WORDS];
	uint32_t n_searches; /* reads of the tables */
	struct andiron_walk walk;
	uint64_t now;
} kernel;

static struct andiron_walk *h_walk_state(__u32 cpu)
{
	return cpu == CPU ? &kernel.walk : NULL;
}

static __u64 h_now(void)
{
	return kernel.now;
}

static const volatile struct kernel_tables *h_kernel_tables(void)
{
	return &kernel.tables;
}

static const volatile struct kernel_jit *h_kernel_jit(void)
{
	return &kernel.jit;
}

static struct kernel_set *h_kernel_rows(__u32 i)
{
	expect(i < KERNEL_SETS);
	return &kernel.sets[i];
}

static bool read_of(void *to, size_t n, __u64 address, __u64 start, const void *from, size_t bytes)
{
	if (address < start || address - start > bytes || bytes - (address - start) < n)
		return false;
	memcpy(to, (const char *)from + (address - start), n);
	return true;
}

static long h_kernel_read(void *to, size_t n, __u64 address)
{
	if (read_of(to, n, address, MEMORY, kernel.memory, sizeof(kernel.memory)))
		return 0;
	kernel.n_searches++;
	if (read_of(to, n, address, ADDRESSES, kernel.addresses, sizeof(kernel.addresses)) ||
	    read_of(to, n, address, ENTRIES, kernel.entries, sizeof(kernel.entries)))
		return 0;
	memset(to, 0, n);
	return -14;
}

#include "unwinder/kernel-stack.h"

/* From `offset` of the code on. In ascending order. */
static void add_entry(uint32_t offset, int sp_offset, int fp_offset, __u16 rule)
{
	uint32_t i = kernel.tables.n++;

	kernel.addresses[i] = (int32_t)(TEXT + offset - (ADDRESSES + 4ull * i));
	kernel.entries[i] = (struct kernel_entry){(__s16)sp_offset, (__s16)fp_offset, rule};
}

static void begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.tables = (struct kernel_tables){
		.text = TEXT, .text_end = TEXT_END, .addresses = ADDRESSES, .entries = ENTRIES};
}

/* From the start of the memory on. */
static __u32 walk(uint32_t offset, uint64_t fp)
{
	kernel.now++;
	return kernel_walk(CPU, &kernel.walk, TEXT + offset, MEMORY, fp);
}

static void expect_frames(const uint64_t *offsets, uint32_t n, __u32 answer)
{
	expect_eq(answer, n);
	for (uint32_t i = 0; i < n; i++)
		expect_eq(kernel.walk.frames[i] - TEXT, offsets[i]);
}

/* An interrupt in a function, on a stack of its own: its frames, the registers that were
 * interrupted, the frames below them by stack and frame pointer, and the process's registers, where
 * it ends. */
static void make_interrupt(void)
{
	begin();
	add_entry(0x000, 0, 0, RULE(0, 0, KERNEL_TYPE_UNDEFINED, 0));
	add_entry(0x100, 16, 0, CALL);
	add_entry(0x200, 8, 0, RULE(KERNEL_BY_SP_INDIRECT, 0, KERNEL_TYPE_CALL, 0));
	add_entry(0x300, 0, 0, RULE(KERNEL_BY_SP, 0, KERNEL_TYPE_REGS, 1));
	add_entry(0x400, 32, -16, RULE(KERNEL_BY_SP, KERNEL_BY_CALLER_SP, KERNEL_TYPE_CALL, 0));
	add_entry(0x500, 16, -24, RULE(KERNEL_BY_FP, KERNEL_BY_CALLER_SP, KERNEL_TYPE_CALL, 0));
	add_entry(0x600, 8, 0, RULE(KERNEL_BY_SP, 0, KERNEL_TYPE_PARTIAL, 1));
	add_entry(0x700, 0, 0, RULE(0, 0, KERNEL_TYPE_END, 0));
	kernel.memory[1] = TEXT + 0x201;     /* 0x110 was called at 0x200 */
	kernel.memory[2] = MEMORY + 8 * 100; /* which has come from another stack */
	kernel.memory[107] = 0;
	kernel.memory[100] = TEXT + 0x305; /* the frame begins 8 further on: 0x304 called it */
	kernel.memory[101 + 4] = MEMORY + 8 * 210;  /* the registers: fp, */
	kernel.memory[101 + 16] = TEXT + 0x400;     /* pc, at which nothing is to be taken off, */
	kernel.memory[101 + 19] = MEMORY + 8 * 200; /* and sp */
	kernel.memory[202] = MEMORY + 8 * 220;      /* saved by 0x400 */
	kernel.memory[203] = TEXT + 0x501;
	kernel.memory[221] = TEXT + 0x601; /* the frame of 0x500 ends at 222 */
	kernel.memory[219] = 77;
	kernel.memory[223] = USER; /* what the process was interrupted at */
	kernel.memory[226] = 0x7ffd00001000;
}

TEST(frames_interrupts_and_other_stacks_are_walked)
{
	static const uint64_t offsets[] = {0x110, 0x201, 0x305, 0x400, 0x501, 0x601};

	make_interrupt();
	expect_frames(offsets, 6, walk(0x110, 1));
	expect_eq(kernel.walk.pc, USER);
	expect_eq(kernel.walk.regs[KERNEL_FP], 77);
}

/* What was met before is not searched again, and says the same. */
TEST(a_row_is_searched_once)
{
	static const uint64_t offsets[] = {0x110, 0x201, 0x305, 0x400, 0x501, 0x601};
	uint32_t n;

	make_interrupt();
	walk(0x110, 1);
	n = kernel.n_searches;
	expect(n > 0);
	expect_frames(offsets, 6, walk(0x110, 1));
	expect_eq(kernel.n_searches, n);
}

/* An address is not the one a cache's size further on. */
TEST(rows_of_the_same_set_are_told_apart)
{
	begin();
	add_entry(0, 16, 0, CALL);
	add_entry(KERNEL_SETS * KERNEL_GRANULE, 8, 0, CALL);
	kernel.memory[0] = USER;
	kernel.memory[1] = USER;
	expect_eq(walk(0x10, 0), 1);
	expect_eq(kernel.walk.regs[KERNEL_SP], MEMORY + 16);
	expect_eq(walk(KERNEL_SETS * KERNEL_GRANULE + 0x10, 0), 1);
	expect_eq(kernel.walk.regs[KERNEL_SP], MEMORY + 8);
	expect_eq(walk(0x10, 0), 1);
	expect_eq(kernel.walk.regs[KERNEL_SP], MEMORY + 16);
}

/* A row holds from its entry up to the next, within its granule. */
TEST(a_row_covers_no_more_than_its_entry)
{
	static const uint32_t at[] = {0x1f0, 0x23f, 0x240, 0x24f, 0x250, 0x2ff, 0x300};
	static const uint64_t sp[] = {8, 8, 16, 16, 24, 24, 24};

	begin();
	add_entry(0, 8, 0, CALL);
	add_entry(0x240, 16, 0, CALL);
	add_entry(0x250, 24, 0, CALL);
	for (int i = 0; i < 3; i++)
		kernel.memory[i] = USER;
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
			expect_eq(walk(at[i], 0), 1);
			expect_eq(kernel.walk.regs[KERNEL_SP], MEMORY + sp[i]);
		}
}

/* Code of programs has frame pointers; of others' nothing is known. */
TEST(programs_are_walked_by_frame_pointers)
{
	static const uint64_t offsets[] = {0x40, 0x40000010, 0x50};

	begin();
	add_entry(0, 16, -16, RULE(KERNEL_BY_SP, KERNEL_BY_CALLER_SP, KERNEL_TYPE_CALL, 0));
	kernel.memory[0] = MEMORY + 8 * 40;
	kernel.memory[1] = TEXT + 0x40000010;
	kernel.memory[41] = TEXT + 0x50;
	kernel.memory[43] = USER;
	expect_eq(walk(0x40, 0), 0);
	kernel.jit.code[1] = (struct kernel_code){TEXT + 0x40000000, 0x20};
	expect_frames(offsets, 3, walk(0x40, 0));
	kernel.memory[1] = TEXT + 0x40000020;
	expect_eq(walk(0x40, 0), 0);
}

/* As many frames as bpf_get_stack has room for, and no more. */
TEST(a_deep_stack_is_cut)
{
	begin();
	add_entry(0, 8, 0, CALL);
	for (int i = 0; i < WORDS; i++)
		kernel.memory[i] = TEXT + 0x50;
	expect_eq(walk(0x40, 0), ANDIRON_WALK_KERNEL);
	expect_eq(kernel.walk.n_words, ANDIRON_WALK_KERNEL);
	kernel.memory[ANDIRON_WALK_KERNEL - 2] = USER;
	expect_eq(walk(0x40, 0), ANDIRON_WALK_KERNEL - 1);
}

/* One frame by such an entry, called from `from`. */
static __u32 by(int sp_offset, int fp_offset, __u16 rule, uint64_t from)
{
	begin();
	add_entry(0, sp_offset, fp_offset, rule);
	kernel.tables.return_hooks[1] = TEXT + 0x30;
	kernel.memory[1] = from;
	return walk(0x40, MEMORY);
}

/* Whatever is not known for sure is no answer. */
TEST(what_is_not_known_is_left_to_the_kernel)
{
	expect_eq(by(16, 0, CALL, USER), 1);
	expect_eq(by(16, 0, CALL, 0), 1);
	expect_eq(by(16, 0, CALL, TEXT_END + 5), 0); /* a module */
	expect_eq(by(16, 0, CALL, TEXT - 5), 0);
	expect_eq(by(16, 0, CALL, TEXT), 0);        /* no call can lie before it */
	expect_eq(by(16, 0, CALL, TEXT + 0x30), 0); /* a tracer's */
	expect_eq(by(12, 0, CALL, USER), 0);
	expect_eq(by(16, 0x4000, CALL, USER), 0);
	expect_eq(by(-16, 0, CALL, USER), 0);
	expect_eq(by(0, 0, CALL, USER), 0);
	expect_eq(by(16, 0, RULE(KERNEL_BY_SP, 3, KERNEL_TYPE_CALL, 0), USER), 0);
	expect_eq(by(16, 0, RULE(KERNEL_BY_SP, 0, 5, 0), USER), 0);
	expect_eq(by(16, 0, RULE(6, 0, KERNEL_TYPE_CALL, 0), USER), 0); /* by r10 */
	expect_eq(by(16, -16, RULE(KERNEL_BY_SP, 1, KERNEL_TYPE_REGS, 0), USER), 0);
	expect_eq(by(0, 0, RULE(KERNEL_BY_NOTHING, 0, KERNEL_TYPE_END, 0), USER), 1);
	begin();
	add_entry(0, 16, 0, CALL);
	expect_eq(walk(0x100000, 0), 0);
	expect_eq(kernel_walk(CPU, &kernel.walk, TEXT + 0x40, 8, 0), 0); /* no stack there */
	kernel.tables.n = 0;
	expect_eq(walk(0x40, 0), 0);
}

/* Tables and stacks of noise: nothing is read beside them, and every walk comes to an end. */
TEST(noise_is_survived)
{
	srand(7);
	for (int round = 0; round < 3000; round++) {
		uint32_t n = (uint32_t)rand() % 64, offset = 0;

		begin();
		for (uint32_t i = 0; i < n; i++) {
			offset += (uint32_t)rand() % 0x200;
			add_entry(offset, rand() % 64 * 8 - 64, rand() % 64 * 8 - 256,
				  (__u16)(rand() % 4 ? CALL : rand()));
		}
		if (round % 3 == 0)
			for (uint32_t i = 0; i < n; i++)
				kernel.addresses[i] ^= rand() % 8 ? 0 : rand();
		for (int i = 0; i < WORDS; i++)
			kernel.memory[i] = rand() % 2 ? TEXT + (uint32_t)rand() % 0x2000
						      : MEMORY + (uint32_t)rand() % (8 * WORDS);
		if (round % 5 == 0)
			for (uint32_t i = 0; i < KERNEL_SETS * KERNEL_WAYS; i++)
				kernel.sets[i / KERNEL_WAYS].rows[i % KERNEL_WAYS] =
					(__u64)rand() << 33 ^ (__u64)rand();
		for (int i = 0; i < 20; i++)
			expect(walk((uint32_t)rand() % 0x2000, MEMORY + (uint32_t)rand() % 8192) <=
			       ANDIRON_WALK_KERNEL);
	}
}
