/* SPDX-License-Identifier: Apache-2.0 */
/* The walker over tables made for it: every rule and end, and untrusted tables and stacks. */
#include "ebpf/unwinding/native-unwind.h"

#include "unwind/pages.h"

#include "testing/random.h"
#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

#define SP WALK_STACK_POINTER
#if defined(__aarch64__)
#define FP   UNWIND_ARM_FP
#define KEEP UNWIND_ARM_X19
#define RA   UNWIND_RA_FP
#else
#define FP   UNWIND_X86_RBP
#define KEEP UNWIND_X86_RBX
#define RA   UNWIND_RA_CFA
#endif

#define CODE  0x400000u /* of the file, and where it is mapped */
#define STACK 0x7ff000000000u
#define SLOT  64u /* bytes of code for each function of the test */

/* The memory of one process. */
static struct world {
	uint8_t slab[UNWIND_SLAB_BYTES + UNWIND_SLAB_SPARE];
	struct unwind_entry rules[64];
	uint32_t n_rules;
	uint32_t at; /* end of what is in use of the slab */
	uint32_t pages;
	uint64_t word;
	struct unwind_set rows[UNWIND_SETS];
	struct unwind_chain chains[UNWIND_CHAINS];
	struct sampler_snapshot snapshot;
	struct walk_stack other;
	struct andiron_walk walk;
} w;

static const uint8_t *slab(void *context, uint32_t number)
{
	return number == 0 ? w.slab : NULL;
}

static uint32_t put(const void *bytes, size_t n)
{
	uint32_t at = w.at;

	expect(at + n <= UNWIND_SLAB_BYTES);
	memcpy(&w.slab[at], bytes, n);
	w.at += (uint32_t)(n + 7) / 8 * 8;
	return unwind_ref(0, at);
}

static int32_t number(void *context, uint64_t rule, uint64_t aux)
{
	for (uint32_t i = 1; i < w.n_rules; i++)
		if (w.rules[i].rule == rule && w.rules[i].aux == aux)
			return (int32_t)i;
	expect(w.n_rules < 64);
	w.rules[w.n_rules] = (struct unwind_entry){rule, aux};
	return (int32_t)w.n_rules++;
}

static int page(void *context, uint32_t n, const void *bytes, size_t size, const uint16_t *rules,
		size_t n_rules)
{
	uint32_t ref = put(bytes, size);

	expect_eq(n, 0);
	memcpy(context, &ref, sizeof(ref));
	return 0;
}

struct two_mappings {
	uint64_t starts[2];
	struct unwind_mapping mappings[2];
};

/* A file with these rows up to `end`, mapped at CODE; a claim's slot is `kind` from bit 8 on. */
static void map_rows(const struct elf_row *rows, size_t n, uint64_t end, uint16_t kind)
{
	struct {
		uint64_t start;
		struct unwind_mapping mapping;
	} mappings = {CODE, {.end = end, .kind = kind & 0xff, .slot = kind >> 8}};
	struct pages_maker *m;
	uint64_t base;
	uint32_t ref = 0;

	memset(&w, 0, sizeof(w));
	w.at = 8;
	w.n_rules = 1;
	m = pages_new(number, page, &ref);
	for (size_t i = 0; i < n; i++)
		expect_eq(pages_add(m, &rows[i]), 0);
	expect_eq(pages_finish(m, &base), 0);
	pages_free(m);
	mappings.mapping.bias = base;
	mappings.mapping.pages = put(&ref, sizeof(ref));
	w.word = unwind_space_word(put(&mappings, sizeof(mappings)), 1, 1);
	w.snapshot.regs[SP] = STACK;
	w.snapshot.known = ~0u;
	w.snapshot.exact = 1;
	w.snapshot.n = SAMPLER_SNAPSHOT_BYTES;
}

/* A file whose n functions, SLOT bytes each, have these rules. */
static void map_file(const struct unwind_entry *rules, size_t n, uint16_t kind)
{
	struct elf_row rows[64];

	expect(n <= sizeof(rows) / sizeof(rows[0]));
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct elf_row){CODE + i * SLOT, rules[i].rule, rules[i].aux};
	map_rows(rows, n, CODE + n * SLOT, kind);
}

static void word_at(uint64_t offset, uint64_t value)
{
	memcpy(&w.snapshot.stack[offset], &value, sizeof(value));
}

static uint64_t in(uint32_t function)
{
	return CODE + function * SLOT + 8;
}

static uint32_t walk_with(struct unwind_set *rows, struct unwind_chain *chains)
{
	struct walk_tables tables = {NULL, slab, w.rules, 64, ~0ull, rows, chains};
	const struct walk_stack stacks[SAMPLER_COPIES] = {
		[SAMPLER_COPY_STACK] = {w.snapshot.stack, w.snapshot.n,
					sampler_snapshot_start(w.snapshot.regs[SP])},
		[SAMPLER_COPY_OTHER] = w.other};

	walk_snapshot(&tables, &w.snapshot, stacks, w.word, &w.walk);
	return w.walk.end;
}

static uint32_t walk(uint32_t function)
{
	w.snapshot.pc = in(function);
	return walk_with(w.rows, w.chains);
}

static uint64_t reg(uint32_t base, int32_t fp, int32_t offset)
{
	return unwind_rule(base, UNWIND_CFA_REG, RA, fp, offset);
}

static const uint64_t END = UNWIND_CFA_END << 5;
static const int32_t OWN_FP = RA == UNWIND_RA_FP ? -2 : UNWIND_FP_SAME;

/* The simplest: frames by the stack pointer, return addresses moved back into the call. */
TEST(frames_by_stack_pointer)
{
	struct unwind_entry rules[] = {{reg(SP, OWN_FP, 32), 0}, {END, 0}};

	map_file(rules, 2, UNWIND_KIND_TABLE);
	word_at(24, in(0));
	word_at(56, in(1));
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 3);
	expect_eq(w.walk.frames[0], in(0));
	expect_eq(w.walk.frames[1], in(0) - 1);
	expect_eq(w.walk.frames[2], in(1) - 1);
	expect_eq(w.walk.regs[SP], STACK + 64);
}

/* A frame pointer is restored from where the rule says, and serves the next frame. */
TEST(frame_pointers_are_restored)
{
	struct unwind_entry rules[] = {{reg(SP, -2, 32), 0}, {reg(FP, -2, 16), 0}, {END, 0}};

	map_file(rules, 3, UNWIND_KIND_TABLE);
	word_at(16, STACK + 0x100);
	word_at(24, in(1));
	word_at(0x100, STACK + 0x500);
	word_at(0x108, in(2));
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 3);
	expect_eq(w.walk.regs[FP], STACK + 0x500);
	expect_eq(w.walk.regs[SP], STACK + 0x110);
}

#if !defined(__aarch64__)
/* Behind the system call that makes a thread: one goes on to its caller, one has none. */
TEST(new_threads_end_where_they_begin)
{
	struct unwind_entry rules[] = {
		{unwind_rule(SP, UNWIND_CFA_CHILD, UNWIND_RA_CFA, UNWIND_FP_SAME, 8), 0}, {END, 0}};

	map_file(rules, 2, UNWIND_KIND_TABLE);
	word_at(0, in(1));
	w.snapshot.regs[0] = 0;
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 1);
	w.snapshot.regs[0] = (uint64_t)-38;
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 2);
}

/* What realigned stacks, hand-written code, PLTs and vfork need. */
TEST(unusual_rules)
{
	/* clang-format off */
	struct unwind_entry rules[] = {
		{unwind_rule_more(unwind_rule(FP, UNWIND_CFA_DEREF, UNWIND_RA_CFA, 0, -8),
				  1, 0, 0), 0}, /* CFA = *(rbp - 8), rbp saved at *(rbp + 0) */
		/* CFA = *(rsp + 8 r9 + 16) + 8 */
		{unwind_rule_more(unwind_rule(SP, UNWIND_CFA_INDEX, UNWIND_RA_CFA, UNWIND_FP_SAME,
					      16), 0, 9, 8), 0},
		{unwind_rule_more(unwind_rule(SP, UNWIND_CFA_PLT, UNWIND_RA_CFA, UNWIND_FP_SAME, 8),
				  0, 0, 11), 0},
		/* the return address is in rdi */
		{unwind_rule_more(unwind_rule(SP, UNWIND_CFA_REG, UNWIND_RA_REGISTER,
					      UNWIND_FP_SAME, 0), 0, UNWIND_X86_RDI, 0), 0},
		{END, 0},
	};
	/* clang-format on */

	map_file(rules, 5, UNWIND_KIND_TABLE);
	w.snapshot.regs[FP] = STACK + 0x40;
	word_at(0x38, STACK + 0x80);
	word_at(0x40, 77);
	word_at(0x78, in(4));
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.regs[SP], STACK + 0x80);
	expect_eq(w.walk.regs[FP], 77);

	w.snapshot.regs[9] = 2;
	word_at(32, STACK + 0xf8);
	word_at(0xf8, in(4));
	expect_eq(walk(1), UNWIND_END_COMPLETE);
	expect_eq(w.walk.regs[SP], STACK + 0x100);

	word_at(0, in(4));
	expect_eq(walk(2), UNWIND_END_COMPLETE);
	expect_eq(w.walk.regs[SP], STACK + 8);

	w.snapshot.regs[UNWIND_X86_RDI] = in(4);
	expect_eq(walk(3), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 2);
	w.snapshot.known &= ~(1u << UNWIND_X86_RDI);
	expect_eq(walk(3), UNWIND_END_REGISTER);
}

/* The registers that a signal interrupted, among them another stack's pointer. */
TEST(signal_frames)
{
	struct unwind_entry rules[] = {
		{reg(SP, UNWIND_FP_SAME, 8), 0},
		{unwind_rule(SP, UNWIND_CFA_SIGNAL, UNWIND_RA_CFA, UNWIND_FP_SAME, 40), 0},
		{reg(10, UNWIND_FP_SAME, 0), 0}, /* the interrupted function knows its r10 */
		{END, 0}};

	map_file(rules, 4, UNWIND_KIND_TABLE);
	word_at(0, in(1));
	word_at(8 + 40 + 8 * 2, STACK + 0x400); /* r10 */
	word_at(8 + 40 + 8 * UNWIND_SIGNAL_X86_RSP, STACK + 0x300);
	word_at(8 + 40 + 8 * UNWIND_SIGNAL_X86_RIP, in(2));
	word_at(0x3f8, in(3));
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 4);
	expect_eq(w.walk.frames[1], in(1) - 1);
	expect_eq(w.walk.frames[2], in(2)); /* interrupted there, not called from there */
	expect_eq(w.walk.frames[3], in(3) - 1);
}
#endif

/* Other preserved registers, where the file's rules say where they are. */
TEST(preserved_registers)
{
#if defined(__aarch64__)
	uint64_t aux = 4; /* x19 at CFA - 32 */
#else
	uint64_t aux = (uint64_t)-4 & 0x7ff; /* rbx at CFA - 32 */
#endif
	struct unwind_entry rules[] = {{reg(SP, -2, 64), aux}, {reg(KEEP, -2, 16), 0}, {END, 0}};

	map_file(rules, 3, UNWIND_KIND_AUX);
	word_at(32, STACK + 0x200);
	word_at(56, in(1));
	word_at(0x208, in(2));
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.regs[SP], STACK + 0x210);
	/* Of a file without such words nobody knows what a callee has done to it. */
	map_file(rules, 3, UNWIND_KIND_TABLE);
	word_at(32, STACK + 0x200);
	word_at(56, in(1));
	expect_eq(walk(0), UNWIND_END_REGISTER);
	expect_eq(w.walk.n_words, 2);
}

/* They are got when a rule asks for one, and only then. */
TEST(registers_are_got_when_they_are_asked_for)
{
#if defined(__aarch64__)
	uint64_t aux = 4;
#else
	uint64_t aux = (uint64_t)-4 & 0x7ff;
#endif
	struct unwind_entry rules[] = {
		{reg(SP, -2, 64), aux}, {reg(SP, -2, 32), 0}, {reg(KEEP, -2, 16), 0}, {END, 0}};

	map_file(rules, 4, UNWIND_KIND_AUX);
	word_at(24, in(0));
	word_at(32 + 32, STACK + 0x200);
	word_at(32 + 56, in(1));
	word_at(96 + 24, in(2));
	word_at(0x208, in(3));
	for (int i = 0; i < 3; i++) {
		expect_eq(walk(1), UNWIND_END_COMPLETE);
		expect_eq(w.walk.n_words, 5);
		expect_eq(w.walk.frames[4], in(3) - 1);
		expect_eq(w.walk.regs[SP], STACK + 0x210);
		expect(w.walk.careful);
	}
	word_at(96 + 24, in(3));
	expect_eq(walk(1), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 4);
	expect(!w.walk.careful);
	/* Asked for, and lost: all frames up to there, once. */
	rules[0].aux = unwind_aux_lost(RA == UNWIND_RA_CFA);
	map_file(rules, 4, UNWIND_KIND_AUX);
	word_at(24, in(0));
	word_at(32 + 56, in(1));
	word_at(96 + 24, in(2));
	expect_eq(walk(1), UNWIND_END_REGISTER);
	expect_eq(w.walk.n_words, 4);
}

/* Each way of ending has its name, and the frame where it ended is written down. */
TEST(ends_are_named)
{
	struct unwind_entry rules[] = {{reg(SP, -2, 32), 0}, {0, 0}, {reg(SP, -2, 0), 0}, {END, 0}};

	map_file(rules, 4, UNWIND_KIND_TABLE);
	word_at(24, in(1));
	expect_eq(walk(0), UNWIND_END_NO_INFO);
	expect_eq(w.walk.n_words, 2);
	word_at(24, 0x123456789);
	expect_eq(walk(0), UNWIND_END_NO_MAPPING);
	expect_eq(w.walk.n_words, 2);
	w.snapshot.n = 24;
	expect_eq(walk(0), UNWIND_END_CUT);
	expect_eq(w.walk.n_words, 1);
	w.snapshot.n = SAMPLER_SNAPSHOT_BYTES;
	word_at(24, 0); /* by convention the outermost frame */
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	for (uint64_t i = 0; i < SAMPLER_SNAPSHOT_BYTES; i += 8)
		word_at(i, in(0));
	expect_eq(walk(0), UNWIND_END_CUT);
	expect_eq(w.walk.n_words, SAMPLER_SNAPSHOT_BYTES / 32 + 1);
	map_file(rules, 4, UNWIND_KIND_UNKNOWN);
	expect_eq(walk(0), UNWIND_END_NEW);
	map_file(rules, 4, 3 << 8 | UNWIND_KIND_TABLE); /* claimed */
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	word_at(24, 0x123456789);
	expect_eq(walk(0), UNWIND_END_RUNTIME);
	w.word = 0;
	expect_eq(walk(0), UNWIND_END_NO_MAPPING);
}

/* A chain of frame pointers that leads in a circle, and one that leads downwards. */
TEST(circles_are_broken)
{
	map_file(&(struct unwind_entry){END, 0}, 1, UNWIND_KIND_FRAMES);
	w.snapshot.regs[FP] = STACK + 0x100;
	word_at(0x100, STACK + 0x100);
	word_at(0x108, in(0));
	expect_eq(walk(0), UNWIND_END_BROKEN);
	expect(w.walk.n_words <= ANDIRON_WALK_SWITCHES + 3);
	word_at(0x100, STACK + 0x80);
	word_at(0x80, STACK + 0x100);
	word_at(0x88, in(0));
	expect_eq(walk(0), UNWIND_END_BROKEN);
}

/* The highest address of a process on x86-64 is one of the kernel's half. */
TEST(mappings_in_the_upper_half)
{
	struct two_mappings two = {{CODE, 0xffffffffff600000},
				   {{.end = CODE + SLOT, .kind = UNWIND_KIND_FRAMES},
				    {.end = 0xffffffffff601000, .kind = UNWIND_KIND_UNKNOWN}}};

	map_file(&(struct unwind_entry){END, 0}, 1, UNWIND_KIND_TABLE);
	w.word = unwind_space_word(put(&two, sizeof(two)), 2, 1);
	w.snapshot.regs[FP] = STACK + 0x100;
	word_at(0x100, 0);
	word_at(0x108, 0xffffffffff600010);
	expect_eq(walk(0), UNWIND_END_NEW);
	expect_eq(w.walk.n_words, 2);
}

/* A row that goes on into what a runtime has claimed is its own up to there. */
TEST(a_row_ends_where_a_claim_begins)
{
	struct unwind_entry rules[] = {{reg(SP, OWN_FP, 32), 0}, {reg(SP, OWN_FP, 32), 0}};
	struct two_mappings two = {{CODE, CODE + SLOT}};

	map_file(rules, 2, UNWIND_KIND_TABLE);
	for (size_t i = 0; i < 2; i++)
		memcpy(&two.mappings[i], &w.slab[unwind_ref_offset((uint32_t)w.word) + 8],
		       sizeof(two.mappings[i]));
	two.mappings[0].end = CODE + SLOT;
	two.mappings[1].slot = 3;
	w.word = unwind_space_word(put(&two, sizeof(two)), 2, 1);
	word_at(24, 0x123456789);
	expect_eq(walk(0), UNWIND_END_NO_MAPPING);
	expect_eq(walk(1), UNWIND_END_RUNTIME);
}

/* Code without tables goes by frame pointers. */
TEST(frames_without_tables)
{
	map_file(&(struct unwind_entry){END, 0}, 1, UNWIND_KIND_FRAMES);
	w.snapshot.regs[FP] = STACK + 0x100;
	word_at(0x100, STACK + 0x200);
	word_at(0x108, in(0));
	word_at(0x200, 0);
	word_at(0x208, 0);
	expect_eq(walk(0), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 2);
}

/* One that a file might have, or anything; every fourth is an end. */
static struct unwind_entry likely_rule(size_t k)
{
	uint32_t base = k % 2 ? SP : k % 3 ? FP : (uint32_t)random_word() % 32;

	if (k % 4 == 3)
		return (struct unwind_entry){END, 0};
	if (k % 8 == 0)
		return (struct unwind_entry){random_word(), random_word()};
	return (struct unwind_entry){
		unwind_rule_more(unwind_rule(base, any(8), any(4), (int32_t)any(16) - 8,
					     (int32_t)any(64) * 8),
				 random_word() & 1, random_word() & 31, 0),
		random_word() & -(random_word() & 1)};
}

/* A stack and registers that may lead anywhere, every other time with a broken table. */
static void spoil_world(size_t i)
{
	for (uint64_t k = 0; k < SAMPLER_SNAPSHOT_BYTES; k += 8)
		word_at(k, random_word() % 2 ? STACK + random_word() % 0x4000
					     : CODE + random_word() % (8 * SLOT));
	for (size_t k = 0; k < 32; k++)
		w.snapshot.regs[k] = STACK + random_word() % 0x4000;
	w.snapshot.n = (uint32_t)random_word() % (SAMPLER_SNAPSHOT_BYTES + 1);
	w.snapshot.known = (uint32_t)(random_word() | random_word());
	w.other = (struct walk_stack){
		w.snapshot.stack + 512, random_word() % (SAMPLER_SNAPSHOT_BYTES - 511),
		random_word() % 2 ? STACK + random_word() % 0x4000 : random_word()};
	if (i % 2)
		spoil(w.slab, w.at, 8);
	if (i % 4 == 3)
		spoil(&w.word, sizeof(w.word), 2);
}

#define N_ROWS 400

/* Rows of all lengths, some above a granule of the cache, some with auxiliary words. */
static uint64_t map_random_rows(uint16_t kind)
{
	struct elf_row rows[N_ROWS];
	uint64_t at = CODE;

	for (size_t i = 0; i < N_ROWS; i++) {
		uint64_t aux = kind == UNWIND_KIND_AUX ? random_word() % 3 : 0;

		rows[i] = (struct elf_row){at, reg(SP, OWN_FP, 16 + 8 * (int32_t)any(2)), aux};
		at += random_word() % 16 == 0 ? 1 + random_word() % 2000 : 1 + random_word() % 24;
	}
	map_rows(rows, N_ROWS, at, kind);
	return at - CODE;
}

/* The stack of the snapshot is walked to the same end with the caches as without. */
static void expect_caches_agree(void)
{
	struct andiron_walk cold;

	walk_with(NULL, NULL);
	cold = w.walk;
	walk_with(w.rows, w.chains);
	expect_eq(cold.n_words, w.walk.n_words);
	expect(memcmp(cold.frames, w.walk.frames, cold.n_words * sizeof(uint64_t)) == 0);
	expect_eq(cold.end, w.walk.end);
	expect(memcmp(cold.regs, w.walk.regs, sizeof(cold.regs)) == 0);
	expect_eq(cold.known, w.walk.known);
}

/* The cache of rows says what the table says, whatever was met before, and answers most. */
TEST(the_cache_says_what_the_table_says)
{
	uint64_t n_kept = 0;

	for (int i = 0; i < 40; i++) {
		uint64_t bytes = map_random_rows(i % 2 ? UNWIND_KIND_AUX : UNWIND_KIND_TABLE);

		for (int k = 0; k < 20; k++) {
			for (uint64_t at = 0; at < SAMPLER_SNAPSHOT_BYTES; at += 8)
				word_at(at, CODE + 1 + random_word() % bytes);
			w.snapshot.pc = CODE + random_word() % bytes;
			expect_caches_agree();
		}
		for (size_t k = 0; k < UNWIND_SETS; k++)
			for (int way = 0; way < UNWIND_WAYS; way++)
				n_kept += (w.rows[k].check[way] | w.rows[k].rule[way]) != 0;
	}
	expect(n_kept > 40 * 20);
}

/* Nor do chains, where a few functions call each other every which way. */
TEST(chains_say_what_the_table_says)
{
	for (int i = 0; i < 200; i++) {
		struct unwind_entry rules[8];
		uint64_t aux = random_word() % 3;

		for (size_t k = 0; k < 8; k++)
			rules[k] = likely_rule(k);
		rules[1] = (struct unwind_entry){reg(SP, -2, 16 + 8 * (int32_t)any(40)), aux};
		rules[2] = (struct unwind_entry){reg(FP, -2 - (int32_t)any(3), 32), aux};
		rules[3] = (struct unwind_entry){reg(SP, -3, 24), 0};
		map_file(rules, 8, aux ? UNWIND_KIND_AUX : UNWIND_KIND_TABLE);
		for (int k = 0; k < 50; k++) {
			for (uint64_t at = 0; at < SAMPLER_SNAPSHOT_BYTES; at += 8)
				word_at(at, any(4)   ? in(1 + any(3))
					    : any(4) ? STACK + at + any(64) * 8
						     : in(any(8)));
			w.snapshot.regs[FP] = STACK + random_word() % 64 * 8;
			w.snapshot.pc = in(any(8));
			w.snapshot.exact = (uint32_t)k % 2;
			expect_caches_agree();
		}
	}
}

/* Forty frames, of four functions that call each other in turn. */
static void stack_forty(void)
{
	struct unwind_entry rules[5] = {[4] = {END, 0}};

	for (size_t i = 0; i < 4; i++)
		rules[i] = (struct unwind_entry){reg(SP, -2, 32), 0};
	map_file(rules, 5, UNWIND_KIND_TABLE);
	w.snapshot.exact = 0;
	for (uint32_t i = 0; i < 40; i++)
		word_at(i * 32 + 24, in(i < 39 ? i % 4 : 4));
}

/* A stack is walked again without tables, in its address space only, as far as it is the same. */
TEST(chains_stand_for_tables)
{
	stack_forty();
	expect_eq(walk(3), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 41);
	memset(w.rows, 0, sizeof(w.rows));
	memset(w.slab, 0, sizeof(w.slab));
	expect_eq(walk(3), UNWIND_END_COMPLETE);
	expect_eq(w.walk.n_words, 41);
	word_at(20 * 32 + 24, CODE - 100);
	expect_eq(walk(3), UNWIND_END_NO_MAPPING);
	expect_eq(w.walk.n_words, 22);
	w.word = unwind_space_word((uint32_t)w.word, 1, 2);
	expect_eq(walk(3), UNWIND_END_NO_MAPPING);
	expect_eq(w.walk.n_words, 1);
}

/* Untrusted tables and stacks: every walk ends with a reason and reads nothing outside. */
TEST(hostile_tables_and_stacks)
{
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");
	size_t n = runs ? strtoul(runs, NULL, 10) : 20000;
	static const uint32_t met[] = {UNWIND_END_COMPLETE, UNWIND_END_NO_INFO, UNWIND_END_CUT,
				       UNWIND_END_BROKEN, UNWIND_END_REGISTER};
	uint64_t ends[UNWIND_ENDS] = {0};

	for (size_t i = 0; i < n; i++) {
		struct unwind_entry rules[8];

		for (size_t k = 0; k < 8; k++)
			rules[k] = likely_rule(k);
		if (i % 16 == 0)
			map_file(rules, 8, random_word() % 2 ? UNWIND_KIND_AUX : UNWIND_KIND_TABLE);
		spoil_world(i);
		expect(walk(any(8)) < UNWIND_ENDS);
		expect(w.walk.end != 0 && w.walk.n_words <= ANDIRON_WALK_WORDS);
		ends[w.walk.end]++;
	}
	for (size_t i = 0; i < sizeof(met) / sizeof(met[0]); i++)
		expect(ends[met[i]] > 0);
}
