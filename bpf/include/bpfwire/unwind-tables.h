/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables by which stacks are walked without frame pointers. User space writes them; the walker
 * (native-stack.h) reads them, in the kernel and natively.
 *
 *   process ─▶ address space ─▶ mappings, by address ─▶ pages of the file's text ─▶ rows ─▶ rule
 *
 * A row says which rule holds from its address up to the next row's. Rows lie in pages of 64 KiB of
 * a file's own addresses, so all processes that map the file share them. A row takes two bytes: its
 * distance to the row before, and a page-local number of its rule. The rules, a few thousand for a
 * machine, are stored once.
 *
 * Pages and mapping tables lie in slabs, in chunks that never change once they can be found. A
 * chunk is replaced by writing the new one, then the word that leads to it; the old one is freed
 * when no program runs that may have read the former word. Should a reader meet a torn table all
 * the same, it computes nonsense, but never reads outside of a slab nor loops longer than the
 * bounds given here. */
#pragma once

#ifndef KERNEL_TYPES_H
#include <linux/types.h>
#include <stdbool.h>
#endif

/* A rule: how the caller's registers follow from the callee's, in one word.
 *
 *   bits  0..4   base   register, by its DWARF number
 *   bits  5..7   cfa    how the canonical frame address (CFA) follows: UNWIND_CFA_*
 *   bits  8..9   ra     where the return address is: UNWIND_RA_*
 *   bit   10     frame  `fp` counts from the frame pointer, not from the CFA
 *   bits 11..15  other  second register: index of UNWIND_CFA_INDEX, or that of UNWIND_RA_REGISTER
 *   bits 16..23  extra  signed
 *   bits 24..39  fp     where the frame pointer is saved, signed, in units of 8 bytes from the CFA;
 *                       UNWIND_FP_SAME: it is not saved
 *   bits 40..63  offset signed, bytes
 *
 * All zero is "nothing is known here". Where nothing but `extra` is set, a runtime claims the code
 * (unwind_rule_claimed). */
#define UNWIND_CFA_NONE  0 /* no rule */
#define UNWIND_CFA_END   1 /* the outermost frame of a thread: no return address */
#define UNWIND_CFA_REG   2 /* base + offset */
#define UNWIND_CFA_DEREF 3 /* *(base + offset) + extra */
#define UNWIND_CFA_INDEX 4 /* *(base + 8 other + offset) + extra */
#define UNWIND_CFA_PLT   5 /* stubs of 16 bytes: base + offset, and 8 if (pc & 15) >= extra */
/* base + offset; but the end where clone() has returned 0, in a new thread */
#define UNWIND_CFA_CHILD 7
/* a signal handler's frame: all registers stand at base + offset (UNWIND_SIGNAL_*) */
#define UNWIND_CFA_SIGNAL 6

/* Where UNWIND_CFA_SIGNAL finds them, in words: x86-64 from r8 of struct sigcontext on, arm64 from
 * its regs[0]. */
#define UNWIND_SIGNAL_X86_R12 4
#define UNWIND_SIGNAL_X86_RBP 10
#define UNWIND_SIGNAL_X86_RBX 11
#define UNWIND_SIGNAL_X86_RSP 15
#define UNWIND_SIGNAL_X86_RIP 16
#define UNWIND_SIGNAL_ARM_SP  31
#define UNWIND_SIGNAL_ARM_PC  32

#define UNWIND_RA_CFA      0 /* at CFA - 8 */
#define UNWIND_RA_FP       1 /* 8 bytes behind the saved frame pointer */
#define UNWIND_RA_ALONE    2 /* at CFA + 8 fp, and the frame pointer is not saved */
#define UNWIND_RA_REGISTER 3 /* in `other`; true of a leaf, and of what a signal interrupted */

#define UNWIND_FP_SAME (-32768)

static inline __u64 unwind_rule(__u32 base, __u32 cfa, __u32 ra, __s32 fp, __s32 offset)
{
	return (__u64)(base & 31) | (__u64)(cfa & 7) << 5 | (__u64)(ra & 3) << 8 |
	       (__u64)(fp & 0xffff) << 24 | (__u64)offset << 40;
}

static inline __u64 unwind_rule_more(__u64 rule, __u32 frame, __u32 other, __s32 extra)
{
	return rule | (__u64)(frame & 1) << 10 | (__u64)(other & 31) << 11 |
	       (__u64)(extra & 0xff) << 16;
}

static inline __u32 unwind_rule_base(__u64 rule)
{
	return rule & 31;
}

static inline __u32 unwind_rule_cfa(__u64 rule)
{
	return rule >> 5 & 7;
}

static inline __u32 unwind_rule_ra(__u64 rule)
{
	return rule >> 8 & 3;
}

static inline __u32 unwind_rule_frame(__u64 rule)
{
	return rule >> 10 & 1;
}

static inline __u32 unwind_rule_other(__u64 rule)
{
	return rule >> 11 & 31;
}

static inline __s64 unwind_rule_extra(__u64 rule)
{
	return (__s64)(rule << 40) >> 56;
}

static inline __s64 unwind_rule_fp(__u64 rule)
{
	return (__s64)(rule << 24) >> 48;
}

static inline __s64 unwind_rule_offset(__u64 rule)
{
	return (__s64)rule >> 40;
}

/* What stands for a rule where the program of a runtime's slot walks the code. It is in the caches
 * only. */
static inline __u64 unwind_rule_claimed(__u32 slot)
{
	return (__u64)(slot & 31) << 16;
}

/* The slot, 0: it is a rule. */
static inline __u32 unwind_rule_slot(__u64 rule)
{
	return rule & 0xffff ? 0 : rule >> 16 & 31;
}

/* DWARF numbers: System V ABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, 4.1 */
#define UNWIND_X86_RBX 3
#define UNWIND_X86_RDI 5
#define UNWIND_X86_RBP 6
#define UNWIND_X86_RSP 7
#define UNWIND_X86_R12 12
#define UNWIND_X86_RA  16
#define UNWIND_ARM_X19 19
#define UNWIND_ARM_FP  29
#define UNWIND_ARM_LR  30
#define UNWIND_ARM_SP  31

/* The auxiliary word of a rule: where the other registers that a callee preserves are saved, 0 for
 * one that still holds its caller's value. A file has them if a rule's base is such a register, or
 * if a stack through it ended for lack of one.
 *   x86-64: rbx, r12 … r15, 12 bits each from bit 0 on: at CFA + 8 n, n being the low
 *           11 bits, signed; the high bit: at frame pointer + 8 n
 *   arm64:  x19 … x28, 6 bits each: at CFA - 8 n
 * One value of each says that the register's value is lost. */
#define UNWIND_PRESERVED_X86 5
#define UNWIND_PRESERVED_ARM 10
#define UNWIND_AUX_X86_FRAME 0x800u
#define UNWIND_AUX_X86_LOST  0x800u
#define UNWIND_AUX_ARM_LOST  63u

/* The word of who does not know where any of them is. */
static inline __u64 unwind_aux_lost(bool x86)
{
	__u64 word = 0;

	if (x86)
		for (__u32 i = 0; i < UNWIND_PRESERVED_X86; i++)
			word |= (__u64)UNWIND_AUX_X86_LOST << (12 * i);
	else
		for (__u32 i = 0; i < UNWIND_PRESERVED_ARM; i++)
			word |= (__u64)UNWIND_AUX_ARM_LOST << (6 * i);
	return word;
}

/* The 16 bytes of a rule with its auxiliary word, in `rules`. Rule 0 is all zero. */
struct unwind_entry {
	__u64 rule;
	__u64 aux;
};

#define UNWIND_RULES_MAX 16383u

/* A reference to a chunk: its slab's number times 2^17, plus its offset in the slab in units of 8
 * bytes. 0 leads nowhere. */
#define UNWIND_SLAB_BYTES (1u << 20)
/* behind it, zero: who reads a few bytes past a chunk reads these */
#define UNWIND_SLAB_SPARE 4096u
#define UNWIND_SLABS_MAX  128u

static inline __u32 unwind_ref(__u32 slab, __u32 offset)
{
	return slab << 17 | offset >> 3;
}

static inline __u32 unwind_ref_slab(__u32 ref)
{
	return ref >> 17;
}

static inline __u32 unwind_ref_offset(__u32 ref)
{
	return (ref & 0x1ffff) << 3;
}

/* A page of text: this head, then
 *   struct unwind_block [n_blocks]   ascending; the first starts at 0
 *   __u16 [n_rules]                  the rules used here, by their number in `rules`
 *   __u8 [2 n_rows]                  block by block: n gaps, then n numbers of rules
 * A gap is the distance to the row before in the same block; the first of a block is 0. A row whose
 * distance is above 255 begins a block, or stands behind one that repeats the rule before. */
#define UNWIND_PAGE_BITS  16
#define UNWIND_BLOCK_ROWS 64
#define UNWIND_PAGE_RULES 256u

struct unwind_page {
	__u16 n_blocks; /* at most 65535 */
	__u16 n_rules;  /* at most UNWIND_PAGE_RULES */
	__u32 n_rows;
};

struct unwind_block {
	__u16 start; /* low bits of the address of its first row */
	__u16 row;   /* number of its first row; its gaps begin at byte 2 row of the rows */
};

/* How code in a mapping is walked. */
#define UNWIND_KIND_UNKNOWN 0 /* its file has not been read yet: UNWIND_END_NEW */
#define UNWIND_KIND_TABLE   1
#define UNWIND_KIND_FRAMES  2 /* by frame pointers: code made at run time, files without tables */
#define UNWIND_KIND_AUX     3 /* as UNWIND_KIND_TABLE, of a file whose rules have auxiliary words */

/* The mappings of a process that hold code: a chunk of
 *   __u64 [n]                     start addresses, ascending
 *   struct unwind_mapping [n] */
struct unwind_mapping {
	__u64 end;
	__u64 bias;  /* of pages: page (pc - bias) >> 16 of the file's table holds pc */
	__u32 pages; /* chunk of __u32 [pages]: a reference to each page, 0 where it has no rows */
	__u16 kind;  /* alone changes in place: to one without a table, before that goes */
	__u16 slot;  /* of the runtime's program that walks it; 0: none does */
};

#define UNWIND_MAPPINGS_MAX 16383u

/* An address space: the mappings of one process at one moment. Address spaces are a hash table by
 * unwind_space_hash(start_ns, tgid), each in one of UNWIND_PROBES slots, those of
 * unwind_space_slot. These are two groups; a new entry takes the emptier one, so that all find a
 * slot until the table is half full. `generation` (unwind_generation) differs between program
 * images and is the same in a forked child, which may use its parent's entry. Where `exec_pages` is
 * no longer the process's, an address in no mapping may be in a new one.
 *
 * `word` is written last and at once; 0: free. `id` names the address space in the caches of rows
 * and chains. It changes when a mapped address is mapped otherwise or no more, and is reused after
 * the caches have been cleared of it. Never 0. */
struct unwind_space {
	__u64 start_ns;
	__u64 generation;
	__u64 word; /* unwind_space_word(mappings, n, id) */
	__u32 tgid;
	__u32 exec_pages; /* executable and not writable: mm_struct.exec_vm */
};

#define UNWIND_SPACES 16384u /* a power of two */
#define UNWIND_PROBES 8      /* half of them here, half there */

static inline __u64 unwind_space_word(__u32 mappings, __u32 n, __u32 id)
{
	return (__u64)mappings | (__u64)(n & 0xffff) << 32 | (__u64)(id & 0xffff) << 48;
}

static inline __u32 unwind_space_hash(__u64 start_ns, __u32 tgid)
{
	return (__u32)((start_ns ^ (__u64)tgid << 20) * 0x9e3779b97f4a7c15ull >> 40);
}

/* Of the hash's 24 bits, 12 say where the first half is and 12 where the second. */
static inline __u32 unwind_space_slot(__u32 hash, __u32 probe)
{
	__u32 half = UNWIND_PROBES / 2;

	return ((probe < half ? hash : hash >> 12) * half + probe % half) & (UNWIND_SPACES - 1);
}

/* From start_code, arg_start and start_stack of the process's mm_struct. Never 0. */
static inline __u64 unwind_generation(__u64 start_code, __u64 arg_start, __u64 start_stack)
{
	__u64 h = (start_code ^ arg_start << 7) * 0x9e3779b97f4a7c15ull;

	return ((h ^ h >> 31 ^ start_stack) * 0xbf58476d1ce4e5b9ull) | 1;
}

/* The cache of rows: what an address in an address space led to the last time, and how far around
 * it that holds, within UNWIND_GRANULE bytes: so a loop is found wherever in it execution was.
 *
 * One set is one cache line. Its number says what of the granule's address is not in the key, and
 * neighbouring granules have neighbouring sets. A row is a way; one with an auxiliary word is two,
 * the second of which holds that word. CPUs write without a lock: `check` is key ^ rule, so a way
 * torn between two is none. Cleared by zeros.
 *
 *   key: bits  0..7  first byte of the granule that the row covers
 *        bits  8..15 last one
 *        bit   16    UNWIND_ROW_AUX: way ^ 1 has the auxiliary word, its key UNWIND_ROW_WORD
 *        bit   18    UNWIND_ROW_NATIVE: how code is left that a runtime has claimed
 *        bits 21..47 of the address
 *        bits 48..63 id of the address space */
#define UNWIND_WAYS 4
#define UNWIND_SETS 8192u /* a power of two, as many granules as bits 8..20 tell apart */

#define UNWIND_GRANULE    256u
#define UNWIND_ROW_AUX    (1ull << 16)
#define UNWIND_ROW_WORD   (1ull << 17)
#define UNWIND_ROW_NATIVE (1ull << 18)

struct unwind_set {
	__u64 check[UNWIND_WAYS];
	__u64 rule[UNWIND_WAYS];
};

/* The key of an address, without what depends on its row. 0: the address is too high for it. */
static inline __u64 unwind_row_key(__u64 at, __u32 space)
{
	return at >> 48 ? 0 : (at & ~0x1fffffull) | (__u64)space << 48;
}

static inline __u32 unwind_row_set(__u64 key, __u64 at)
{
	return ((__u32)(at >> 8) ^ (__u32)(key * 0x9e3779b97f4a7c15ull >> 40)) & (UNWIND_SETS - 1);
}

/* The cache of chains: where a return address led to the last time, frame by frame outwards. Most
 * functions are called from where they were called before: the walker reads one cache line for up
 * to eight frames, and checks that the stack leads to the same addresses. Where it does not, the
 * chain ends and that address may begin another.
 *
 * Each word is true by itself: it says which rule holds at an address, whatever chain it is in. So
 * CPUs write without a lock. A word is sealed with its address space, and is another address in any
 * other. Cleared by zeros.
 *
 *   bits  0..47  address, as it is looked up: within the call
 *   bits 48..63  its rule, in brief; all of it ^ unwind_chain_seal()
 *
 * In brief can be said what most rules are:
 *   bit   0      the CFA is frame pointer + 8 offset, not stack pointer + 8 offset
 *   bits  1..10  offset; UNWIND_BRIEF_END: the outermost frame
 *   bits 11..15  the frame pointer is saved at CFA - 8 n; 0: it is not saved
 * or, where the others are 0, the slot of the runtime whose program walks the code.
 * The return address is at CFA - 8, on arm64 behind the frame pointer. */
#define UNWIND_CHAIN_WORDS 8
#define UNWIND_CHAINS_BITS 13
#define UNWIND_CHAINS      (1u << UNWIND_CHAINS_BITS)

#define UNWIND_BRIEF_NONE  0u
#define UNWIND_BRIEF_END   1u
#define UNWIND_BRIEF_SHIFT 11

struct unwind_chain {
	__u64 words[UNWIND_CHAIN_WORDS];
};

static inline __u64 unwind_chain_seal(__u32 space)
{
	return space * 0x9e3779b97f4a7c15ull;
}

/* The chain that begins with that address. */
static inline __u32 unwind_chain_slot(__u64 at, __u64 seal)
{
	return (__u32)((at ^ seal) * 0xbf58476d1ce4e5b9ull >> (64 - UNWIND_CHAINS_BITS));
}

/* A rule in brief, without its auxiliary word, or UNWIND_BRIEF_NONE. */
static inline __u32 unwind_brief(__u64 rule, bool arm)
{
	__u32 base = unwind_rule_base(rule), frame = arm ? UNWIND_ARM_FP : UNWIND_X86_RBP;
	__s64 offset = unwind_rule_offset(rule), fp = unwind_rule_fp(rule);

	if (unwind_rule_slot(rule))
		return unwind_rule_slot(rule) << UNWIND_BRIEF_SHIFT;
	if (unwind_rule_cfa(rule) == UNWIND_CFA_END)
		return UNWIND_BRIEF_END;
	if (unwind_rule_cfa(rule) != UNWIND_CFA_REG || unwind_rule_frame(rule) ||
	    unwind_rule_ra(rule) != (arm ? UNWIND_RA_FP : UNWIND_RA_CFA) ||
	    (base != frame && base != (arm ? UNWIND_ARM_SP : UNWIND_X86_RSP)))
		return UNWIND_BRIEF_NONE;
	if (offset <= 0 || offset > 8 * 1023 || offset % 8 != 0)
		return UNWIND_BRIEF_NONE;
	if (fp == UNWIND_FP_SAME && !arm)
		fp = 0;
	else if (fp < -31 || fp > -2)
		return UNWIND_BRIEF_NONE;
	return (base == frame) | (__u32)offset >> 3 << 1 | (__u32)-fp << UNWIND_BRIEF_SHIFT;
}

/* What any walk needs besides slabs. */
struct unwind_common {
	struct unwind_space spaces[UNWIND_SPACES];
	struct unwind_set rows[UNWIND_SETS];
	struct unwind_chain chains[UNWIND_CHAINS];
	struct unwind_entry rules[UNWIND_RULES_MAX + 1];
};

/* Why a walk ended; 0 while it goes on. UNWIND_END_COMPLETE is a whole stack, UNWIND_END_NOTHING
 * none; each other one is a frame of the profile that says so. */
#define UNWIND_END_COMPLETE   1 /* reached the thread's entry */
#define UNWIND_END_TRUNCATED  2 /* more frames than fit */
#define UNWIND_END_NO_INFO    3 /* the file has no rule for the address */
#define UNWIND_END_NO_PAGE    4 /* memory of the stack was not there */
#define UNWIND_END_NO_MAPPING 5 /* the address lies in no mapping with code */
#define UNWIND_END_REGISTER   6 /* the rule needs a register whose value is not known */
#define UNWIND_END_BROKEN     7 /* the stack leads in a circle, or downwards */
/* the process, or the file, is not known yet: see SAMPLER_RECORD_SNAPSHOT */
#define UNWIND_END_NEW      8
#define UNWIND_END_COMPAT   9  /* a 32-bit task */
#define UNWIND_END_SWITCHES 10 /* more changes between runtimes than one walk may make */
#define UNWIND_END_RUNTIME  11 /* a runtime's program gave up, or there is none */
#define UNWIND_END_CUT      12 /* the copy of the stack ends here */
#define UNWIND_END_NOTHING  13 /* there is no user stack: a kernel thread, or no memory any more */
#define UNWIND_ENDS         14

_Static_assert((UNWIND_SETS & (UNWIND_SETS - 1)) == 0, "unwind_row_set masks");
_Static_assert((UNWIND_RULES_MAX & (UNWIND_RULES_MAX + 1)) == 0,
	       "the walker masks numbers of rules");
_Static_assert(UNWIND_SLAB_BYTES >> 3 == 1u << 17, "17 bits of a reference are the offset");
_Static_assert(sizeof(struct unwind_entry) == 16, "fixed");
_Static_assert(sizeof(struct unwind_page) == 8, "fixed");
_Static_assert(sizeof(struct unwind_block) == 4, "fixed");
_Static_assert(sizeof(struct unwind_mapping) == 24, "fixed");
_Static_assert(sizeof(struct unwind_space) == 32, "two in a cache line");
_Static_assert(UNWIND_SPACES == UNWIND_PROBES / 2 << 12, "12 bits of the hash say where a half is");
_Static_assert(sizeof(struct unwind_set) == 64, "one cache line");
_Static_assert(sizeof(struct unwind_chain) == 64, "one cache line");
