/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walker: ordinary C that goes from frame to frame over the tables of unwind-tables.h. It is
 * compiled into the BPF programs, and natively, where it completes stacks that were copied and runs
 * under the sanitizers; who includes it defines before:
 *
 *   UNWIND_INLINE, UNWIND_GLOBAL  how functions are declared
 *   unwind_env                    type of `e`: the context; in the kernel the number of this CPU
 *   h_walk_state(e)               struct andiron_walk * or NULL
 *   h_slab(e, i)                  const __u8 [UNWIND_SLAB_BYTES + UNWIND_SLAB_SPARE] or NULL
 *   h_entry(e, i)                 const struct unwind_entry * or NULL
 *   h_rows(e, i)                  struct unwind_set *, i below UNWIND_SETS, or NULL: no cache
 *   h_chain(e, i)                 struct unwind_chain *, i below UNWIND_CHAINS, or NULL: no cache
 *   h_read(e, to, n, address)     memory of the process; 0 or a reason of UNWIND_END_*
 *   h_pc_mask(e)                  bits of a return address that are address (arm64 signs it)
 *   UNWIND_FINDS, h_find(e, at, ret)  only natively: true where rules come from elsewhere than the
 *                                 tables; *ret is the rule, with w->own; or 0, and w->end why
 *
 * A frame is: write its address down, find its rule, compute the caller's registers. The caches are
 * cold when a sample comes, so the price is the lines that are touched: one of the stack, and one
 * for up to eight frames by a chain, or one a frame by the cache of rows; else those of address
 * space, mapping, page, block and rule.
 *
 * The functions that search take numbers only, and search without branches where it matters. So the
 * verifier walks each of them once, along one path. */
#pragma once

#include <andiron/bpf/walk.h>

#include "bpfwire/unwind-tables.h"

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define UNWIND_ARM 1
#define UNWIND_SP  UNWIND_ARM_SP
#define UNWIND_FP  UNWIND_ARM_FP
#else
#define UNWIND_ARM 0
#define UNWIND_SP  UNWIND_X86_RSP
#define UNWIND_FP  UNWIND_X86_RBP
#endif

/* What a frame that keeps a frame pointer looks like, for code without tables. */
#define UNWIND_BY_FRAMES                                                                           \
	(UNWIND_ARM ? unwind_rule(UNWIND_FP, UNWIND_CFA_REG, UNWIND_RA_FP, -2, 16)                 \
		    : unwind_rule(UNWIND_FP, UNWIND_CFA_REG, UNWIND_RA_CFA, -2, 16))

/* andiron_walk.own: the auxiliary word of the rule at hand, or that its file has none. */
#define UNWIND_NO_AUX (1ull << 63)

/* andiron_walk.end, between programs only: w->slot's program is to go on. */
#define UNWIND_END_HAND_OVER 255

_Static_assert(UNWIND_MAPPINGS_MAX < 1u << 14, "steps of unwind_search_mappings");

/* Of unwind_search_gaps: the row is its block's last. */
#define UNWIND_OPEN 0xffffull

/* Keeps the compiler from making a branch out of arithmetic. */
#define UNWIND_OPAQUE(x) asm volatile("" : "+r"(x))

UNWIND_INLINE __u64 unwind_u64(const __u8 *slab, __u32 offset)
{
	return *(const __u64 *)(const void *)&slab[offset & (UNWIND_SLAB_BYTES - 1)];
}

UNWIND_INLINE __u32 unwind_u32(const __u8 *slab, __u32 offset)
{
	return *(const __u32 *)(const void *)&slab[offset & (UNWIND_SLAB_BYTES - 1)];
}

UNWIND_INLINE __u32 unwind_u16(const __u8 *slab, __u32 offset)
{
	return *(const __u16 *)(const void *)&slab[offset & (UNWIND_SLAB_BYTES - 1)];
}

/* All ones if a < b, else 0; b is even. */
UNWIND_INLINE __u32 unwind_less(__u64 a, __u64 b)
{
	__u64 d = (a >> 1) - (b >> 1);

	UNWIND_OPAQUE(d);
	return (__u32)((__s64)d >> 63);
}

UNWIND_INLINE __u64 unwind_end(struct andiron_walk *w, __u32 reason)
{
	w->end = reason;
	return 0;
}

/* How many of the n addresses at `offset` are not above `at`. */
UNWIND_GLOBAL __u32 unwind_search_mappings(unwind_env e, __u32 slab_number, __u32 offset, __u32 n,
					   __u64 at)
{
	const __u8 *slab = h_slab(e, slab_number);
	__u32 low = 0, high = n, middle, above;

	if (!slab)
		return 0;
	for (int i = 0; i < 14 && low < high; i++) {
		middle = (low + high) / 2;
		above = unwind_less(at, unwind_u64(slab, offset + 8 * middle));
		high = (high & ~above) | (middle & above);
		low = (low & above) | ((middle + 1) & ~above);
	}
	return low;
}

/* How many of the n blocks at `offset` start at or below `at`. */
UNWIND_GLOBAL __u32 unwind_search_blocks(unwind_env e, __u32 slab_number, __u32 offset, __u32 n,
					 __u32 at)
{
	const __u8 *slab = h_slab(e, slab_number);
	__u32 low = 0, high = n, middle, above;

	if (!slab)
		return 0;
	for (int i = 0; i < 17 && low < high; i++) {
		middle = (low + high) / 2;
		above = unwind_less(2 * at, 2 * unwind_u16(slab, offset + 4 * middle));
		high = (high & ~above) | (middle & above);
		low = (low & above) | ((middle + 1) & ~above);
	}
	return low;
}

/* The row of n, whose gaps are at `offset`, that holds what lies `distance` behind the first: its
 * number, from bit 8 on where it begins, and from bit 32 on where the next one does; UNWIND_OPEN:
 * none does. */
UNWIND_GLOBAL __u64 unwind_search_gaps(unwind_env e, __u32 slab_number, __u32 offset, __u32 n,
				       __u32 distance)
{
	const __u8 *slab = h_slab(e, slab_number);
	__u32 sum = 0, start = 0, i;

	if (!slab)
		return 0;
	for (i = 1; i < UNWIND_BLOCK_ROWS && i < n; i++) {
		sum += slab[(offset + i) & (UNWIND_SLAB_BYTES - 1)];
		if (sum > distance)
			return (i - 1) | start << 8 | (__u64)sum << 32;
		start = sum;
	}
	return (i - 1) | start << 8 | UNWIND_OPEN << 32;
}

/* How much of its granule a row covers that begins `before` bytes before `at` and ends `after`
 * bytes after, as in a key of the cache of rows. */
UNWIND_INLINE __u64 unwind_row_range(__u64 at, __u64 before, __u64 after)
{
	__u32 here = at & (UNWIND_GRANULE - 1);
	__u64 first = here > before ? here - before : 0;
	__u64 last = after < UNWIND_GRANULE - here ? here + after - 1 : UNWIND_GRANULE - 1;

	return (first & 0xff) | (last & 0xff) << 8;
}

/* What two ranges have in common. */
UNWIND_INLINE __u64 unwind_row_common(__u64 a, __u64 b)
{
	__u64 first = (a & 0xff) > (b & 0xff) ? a & 0xff : b & 0xff;
	__u64 last = (a & 0xff00) < (b & 0xff00) ? a & 0xff00 : b & 0xff00;

	return first | last;
}

/* The number of the rule that the page at `ref` has for `at`, whose low bits are these there; 0:
 * none. w->row: how far it holds, within what it was before: code that a runtime has claimed begins
 * and ends in the middle of a row. */
UNWIND_INLINE __u32 unwind_in_page(unwind_env e, struct andiron_walk *w, __u32 ref, __u32 low,
				   __u64 at)
{
	__u32 number = unwind_ref_slab(ref), offset = unwind_ref_offset(ref);
	const __u8 *slab = h_slab(e, number);
	__u32 n_blocks, n_rules, n_rows, block, row, end, rows, start, i,
		next = 1u << UNWIND_PAGE_BITS;
	__u64 found;

	if (!slab)
		return 0;
	n_blocks = unwind_u16(slab, offset);
	n_rules = unwind_u16(slab, offset + 2);
	n_rows = unwind_u32(slab, offset + 4);
	offset += sizeof(struct unwind_page);
	block = unwind_search_blocks(e, number, offset, n_blocks, low);
	if (block == 0)
		return 0;
	block = offset + 4 * (block - 1);
	start = unwind_u16(slab, block);
	row = unwind_u16(slab, block + 2);
	offset += 4 * n_blocks;
	end = block + 4 < offset ? unwind_u16(slab, block + 6) : n_rows;
	if (block + 4 < offset)
		next = unwind_u16(slab, block + 4);
	rows = offset + 2 * n_rules + 2 * row;
	found = unwind_search_gaps(e, number, rows, end - row, low - start);
	if (found >> 32 != UNWIND_OPEN)
		next = start + (__u32)(found >> 32);
	w->row = unwind_row_common(
		w->row, unwind_row_range(at, low - start - ((__u32)found >> 8), next - low));
	i = found & 0xff;
	i = slab[(rows + (end - row) + i) & (UNWIND_SLAB_BYTES - 1)];
	return unwind_u16(slab, offset + 2 * i);
}

/* Where code is walked by a table: the rule, and w->own its auxiliary word. */
UNWIND_INLINE __u64 unwind_by_table(unwind_env e, struct andiron_walk *w, const __u8 *slab,
				    __u32 mapping, __u64 at, bool aux)
{
	__u64 relative = at - unwind_u64(slab, mapping + 8);
	__u32 pages = unwind_u32(slab, mapping + 16), page, number;
	const struct unwind_entry *entry;

	slab = h_slab(e, unwind_ref_slab(pages));
	if (!slab || pages == 0)
		return unwind_end(w, UNWIND_END_NO_INFO);
	page = unwind_u32(slab,
			  unwind_ref_offset(pages) + 4 * (__u32)(relative >> UNWIND_PAGE_BITS));
	if (page == 0)
		return unwind_end(w, UNWIND_END_NO_INFO);
	number = unwind_in_page(e, w, page, relative & ((1u << UNWIND_PAGE_BITS) - 1), at);
	entry = h_entry(e, number);
	if (!entry || number == 0)
		return unwind_end(w, UNWIND_END_NO_INFO);
	w->own = aux ? entry->aux : UNWIND_NO_AUX;
	return entry->rule;
}

/* The rule for an address by mapping and table, or 0 and w->end says why there is none. w->row: how
 * far it holds. */
UNWIND_GLOBAL __u64 unwind_find(unwind_env e, __u64 at)
{
	struct andiron_walk *w = h_walk_state(e);
	__u32 ref, n, offset, i, slot;
	const __u8 *slab;
	__u64 start, end;

	if (!w)
		return 0;
	ref = (__u32)w->space;
	n = w->space >> 32 & 0xffff;
	offset = unwind_ref_offset(ref);
	i = unwind_search_mappings(e, unwind_ref_slab(ref), offset, n, at);
	slab = h_slab(e, unwind_ref_slab(ref));
	if (i == 0 || !slab)
		return unwind_end(w, UNWIND_END_NO_MAPPING);
	start = unwind_u64(slab, offset + 8 * (i - 1));
	offset += 8 * n + (__u32)sizeof(struct unwind_mapping) * (i - 1);
	end = unwind_u64(slab, offset);
	if (at >= end)
		return unwind_end(w, UNWIND_END_NO_MAPPING);
	w->own = UNWIND_NO_AUX;
	w->row = unwind_row_range(at, at - start, end - at);
	slot = unwind_u16(slab, offset + 22);
	if (slot && !w->native)
		return unwind_rule_claimed(slot);
	switch (unwind_u16(slab, offset + 20)) {
	case UNWIND_KIND_TABLE:
		return unwind_by_table(e, w, slab, offset, at, false);
	case UNWIND_KIND_AUX:
		return unwind_by_table(e, w, slab, offset, at, true);
	case UNWIND_KIND_FRAMES:
		return UNWIND_BY_FRAMES;
	default:
		return unwind_end(w, UNWIND_END_NEW);
	}
}

/* Whether a way whose check and rule are these holds the row of `at`. */
UNWIND_INLINE bool unwind_row_holds(__u64 check, __u64 rule, __u64 key, __u64 at)
{
	__u64 rest = check ^ rule ^ key;

	return rest < 2 * UNWIND_ROW_AUX && (at & 0xff) >= (rest & 0xff) &&
	       (at & 0xff) <= (rest >> 8 & 0xff);
}

/* Keeps the rule that unwind_find has found. */
UNWIND_INLINE void unwind_remember(struct andiron_walk *w, struct unwind_set *set, __u64 key,
				   __u64 rule)
{
	__u32 way = (__u32)((w->row & 0xff) * 0x9e3779b1u >> 30) & (UNWIND_WAYS - 1);

	key |= w->row;
	if (!(w->own & UNWIND_NO_AUX)) {
		set->check[way ^ 1] = (key | UNWIND_ROW_WORD) ^ w->own;
		set->rule[way ^ 1] = w->own;
		key |= UNWIND_ROW_AUX;
	}
	set->check[way] = key ^ rule;
	set->rule[way] = rule;
}

/* The key of an address; what a runtime has claimed has two. Without a branch. */
UNWIND_INLINE __u64 unwind_key_at(const struct andiron_walk *w, __u64 at)
{
	return unwind_row_key(at, (__u32)(w->space >> 48)) |
	       (__u64)((w->native + 3) >> 2 & 1) * UNWIND_ROW_NATIVE;
}

/* The rule for an address: from the cache of rows, else found and remembered there. */
UNWIND_INLINE __u64 unwind_rule_at(unwind_env e, struct andiron_walk *w, __u64 at)
{
	__u64 key = unwind_key_at(w, at), rule, aux;
	struct unwind_set *set = h_rows(e, unwind_row_set(key, at));

#ifdef UNWIND_FINDS
	if (h_find(e, at, &rule))
		return rule;
#endif
	if (!set)
		return unwind_find(e, at);
	for (int i = 0; i < UNWIND_WAYS; i++) {
		rule = set->rule[i];
		if (rule == 0 || !unwind_row_holds(set->check[i], rule, key, at))
			continue;
		w->own = UNWIND_NO_AUX;
		aux = set->rule[i ^ 1];
		if ((set->check[i] ^ rule) & UNWIND_ROW_AUX) {
			if ((set->check[i ^ 1] ^ aux) !=
			    ((set->check[i] ^ rule ^ UNWIND_ROW_AUX) | UNWIND_ROW_WORD))
				break;
			w->own = aux;
		}
		return rule;
	}
	rule = unwind_find(e, at);
	if (rule != 0 && key >> 48 != 0)
		unwind_remember(w, set, key, rule);
	return rule;
}

/* The registers that a signal interrupted; `at` is where they stand. */
UNWIND_INLINE int unwind_signal(unwind_env e, struct andiron_walk *w, __u64 at)
{
	__u32 end;

#if UNWIND_ARM
	__u64 pc = 0;

	/* x0 … x30 and sp, by their DWARF numbers. */
	end = h_read(e, w->regs, sizeof(w->regs), at);
	if (end == 0)
		end = h_read(e, &pc, sizeof(pc), at + 8 * UNWIND_SIGNAL_ARM_PC);
	if (end != 0)
		return unwind_end(w, end), 1;
	w->pc = pc;
	w->known = ~0u;
#else
	__u64 r[17]; /* in the order of struct sigcontext */

	end = h_read(e, r, sizeof(r), at);
	if (end != 0)
		return unwind_end(w, end), 1;
	for (int i = 0; i < 8; i++)
		w->regs[8 + i] = r[i];
	w->regs[5] = r[8];
	w->regs[4] = r[9];
	w->regs[UNWIND_FP] = r[UNWIND_SIGNAL_X86_RBP];
	w->regs[UNWIND_X86_RBX] = r[UNWIND_SIGNAL_X86_RBX];
	w->regs[1] = r[12];
	w->regs[0] = r[13];
	w->regs[2] = r[14];
	w->regs[UNWIND_SP] = r[UNWIND_SIGNAL_X86_RSP];
	w->pc = r[UNWIND_SIGNAL_X86_RIP];
	w->known = 0xffff;
#endif
	w->exact = 1;
	return 0;
}

/* The registers of the caller that are known besides sp and fp, by the auxiliary word. `fp` is the
 * callee's. */
UNWIND_INLINE __u32 unwind_preserved(unwind_env e, struct andiron_walk *w, __u64 cfa, __u64 fp)
{
	__u64 aux = w->own, at, value;
	__u32 keep = 0;

#if UNWIND_ARM
	for (__u32 i = 0; i < UNWIND_PRESERVED_ARM; i++, aux >>= 6) {
		__u32 number = UNWIND_ARM_X19 + i, slot = aux & 63;
		bool lost = slot == UNWIND_AUX_ARM_LOST;

		at = cfa - 8 * (__u64)slot;
#else
	for (__u32 i = 0; i < UNWIND_PRESERVED_X86; i++, aux >>= 12) {
		__u32 number = i ? UNWIND_X86_R12 + i - 1 : UNWIND_X86_RBX, slot = aux & 0xfff;
		bool lost = slot == UNWIND_AUX_X86_LOST;

		at = slot & UNWIND_AUX_X86_FRAME ? fp : cfa;
		at += (__u64)((__s64)(aux << 53) >> 53) * 8;
#endif
		if (slot == 0) {
			keep |= w->known & 1u << number;
		} else if (!lost && h_read(e, &value, sizeof(value), at) == 0) {
			w->regs[number] = value;
			keep |= 1u << number;
		}
	}
	return keep;
}

/* The canonical frame address in *ret; 0, or the walk has ended. */
UNWIND_INLINE __u32 unwind_cfa(unwind_env e, struct andiron_walk *w, __u64 rule, __u64 *ret)
{
	__u32 type = unwind_rule_cfa(rule), other = unwind_rule_other(rule);
	__u64 cfa = w->regs[unwind_rule_base(rule)] + (__u64)unwind_rule_offset(rule);

	if (!(w->known >> unwind_rule_base(rule) & 1))
		return UNWIND_END_REGISTER;
	if (type == UNWIND_CFA_PLT)
		cfa += (__s64)(w->pc & 15) >= unwind_rule_extra(rule) ? 8 : 0;
	if (type == UNWIND_CFA_INDEX) {
		if (!(w->known >> other & 1))
			return UNWIND_END_REGISTER;
		cfa += 8 * w->regs[other];
	}
	if (type == UNWIND_CFA_INDEX || type == UNWIND_CFA_DEREF) {
		__u32 end = h_read(e, &cfa, sizeof(cfa), cfa);

		if (end != 0)
			return end;
		cfa += (__u64)unwind_rule_extra(rule);
	}
	*ret = cfa;
	return 0;
}

/* Frame pointer and return address of the caller. 0 or the reason of the end. One read where both
 * stand together, as they mostly do. */
UNWIND_INLINE __u32 unwind_saved(unwind_env e, const struct andiron_walk *w, __u64 rule, __u64 cfa,
				 __u64 *fp, __u64 *ra)
{
	__u64 base = unwind_rule_frame(rule) ? w->regs[UNWIND_FP] : cfa;
	__s64 slot = unwind_rule_fp(rule);
	__u32 kind = unwind_rule_ra(rule), other = unwind_rule_other(rule), end = 0;
	__u64 pair[2];

	if (kind == UNWIND_RA_REGISTER) {
		*ra = w->regs[other];
		if (!(w->known >> other & 1))
			return UNWIND_END_REGISTER;
	}
	if (kind == UNWIND_RA_ALONE)
		return h_read(e, ra, sizeof(*ra), cfa + (__u64)slot * 8);
	if (kind == UNWIND_RA_FP ||
	    (kind == UNWIND_RA_CFA && slot == -2 && !unwind_rule_frame(rule))) {
		end = h_read(e, pair, sizeof(pair), base + (__u64)slot * 8);
		*fp = pair[0];
		*ra = pair[1];
		return end;
	}
	if (kind == UNWIND_RA_CFA)
		end = h_read(e, ra, sizeof(*ra), cfa - 8);
	if (end == 0 && slot != UNWIND_FP_SAME)
		end = h_read(e, fp, sizeof(*fp), base + (__u64)slot * 8);
	return end;
}

/* A stack grows downwards, so a caller's frame is above; a leaf may have none of its own. Frame
 * pointers may also lead to another stack, as they do where Go's runtime changes stacks: some of
 * that is allowed in one walk. */
UNWIND_INLINE bool unwind_goes_up(struct andiron_walk *w, __u64 rule, __u64 cfa)
{
	__u64 sp = w->regs[UNWIND_SP];

	if (cfa > sp || (cfa == sp && w->exact))
		return true;
	if (unwind_rule_base(rule) == UNWIND_SP || w->switches >= ANDIRON_WALK_SWITCHES)
		return false;
	w->switches++;
	return cfa != sp;
}

/* Rules seldom need registers other than the frame pointer, and reading them would double the cost
 * of a frame. So they are read of the first frame only; where a rule needs one, the walk starts
 * again there, carefully. */
UNWIND_INLINE void unwind_mark(struct andiron_walk *w)
{
	w->mark[0] = w->pc;
	w->mark[1] = w->regs[UNWIND_SP];
	w->mark[2] = w->regs[UNWIND_FP];
	w->mark[3] = w->known;
	w->mark[4] = w->n_words | (__u64)(w->switches & 0xffff) << 32 | (__u64)w->native << 48;
}

/* 0, or 1 where that is of no use. */
UNWIND_INLINE int unwind_retry(struct andiron_walk *w)
{
	if (w->end != UNWIND_END_REGISTER || w->careful || w->exact)
		return 1;
	w->careful = 1;
	w->end = 0;
	w->pc = w->mark[0];
	w->regs[UNWIND_SP] = w->mark[1];
	w->regs[UNWIND_FP] = w->mark[2];
	w->known = (__u32)w->mark[3];
	w->n_words = (__u32)w->mark[4];
	w->switches = (__u32)(w->mark[4] >> 32) & 0xffff;
	w->native = (__u32)(w->mark[4] >> 48);
	return 0;
}

/* Moves to the caller's frame by the rule; 0, or 1 and the walk has ended. */
UNWIND_INLINE int unwind_apply(unwind_env e, struct andiron_walk *w, __u64 rule)
{
	__u64 cfa = 0, fp = w->regs[UNWIND_FP], ra = 0;
	__u32 end, keep = 0, exact = w->exact;

	/* Register 0 is where system calls leave their result, on both machines. */
	if (unwind_rule_cfa(rule) == UNWIND_CFA_END ||
	    (unwind_rule_cfa(rule) == UNWIND_CFA_CHILD && (w->known & 1) && w->regs[0] == 0))
		return unwind_end(w, UNWIND_END_COMPLETE), 1;
	end = unwind_cfa(e, w, rule, &cfa);
	if (end == 0 && unwind_rule_cfa(rule) == UNWIND_CFA_SIGNAL)
		return unwind_signal(e, w, cfa);
	if (end == 0)
		end = unwind_saved(e, w, rule, cfa, &fp, &ra);
	if (end == 0 && !unwind_goes_up(w, rule, cfa))
		end = UNWIND_END_BROKEN;
	/* An outermost frame without call-frame information, by both ABIs' convention. */
	ra &= h_pc_mask(e);
	if (end == 0 && ra == 0)
		end = UNWIND_END_COMPLETE;
	if (end != 0)
		return unwind_end(w, end), 1;
	if (!(w->own & UNWIND_NO_AUX) && (exact || w->careful))
		keep = unwind_preserved(e, w, cfa, w->regs[UNWIND_FP]);
	w->known = keep | 1u << UNWIND_SP | 1u << UNWIND_FP;
	w->regs[UNWIND_SP] = cfa;
	w->regs[UNWIND_FP] = fp;
	w->pc = ra;
	w->exact = 0;
	if (exact)
		unwind_mark(w);
	return 0;
}

#include "unwinder/frame-chains.h"

/* Whether the frame at `at` found no room; one that a runtime's own stand for is not written. */
UNWIND_INLINE bool unwind_is_full(struct andiron_walk *w, __u32 native, __u64 at)
{
	return native != ANDIRON_WALK_LEAVE && andiron_walk_word(w, at) != 0;
}

/* One frame, or as many as a chain has. 0, or 1 when w->end says what is to be done. */
UNWIND_GLOBAL int unwind_step(unwind_env e)
{
	struct andiron_walk *w = h_walk_state(e);
	__u32 native, slot;
	__u64 at, rule;

	if (!w)
		return 1;
	native = w->native;
	if (!w->exact && !w->careful && !native && unwind_follow(e) != 0)
		return w->end != 0;
	at = w->exact ? w->pc : w->pc - 1;
	rule = unwind_rule_at(e, w, at);
	w->native = native == ANDIRON_WALK_REST ? native : 0;
	slot = unwind_rule_slot(rule);
	if (!slot && unwind_is_full(w, native, at)) {
		w->end = UNWIND_END_TRUNCATED;
		return 1;
	}
	if (w->end != 0 || rule == 0) {
		if (w->end == 0)
			w->end = UNWIND_END_NO_INFO;
		return 1;
	}
	if (native)
		w->n_chain = 0;
	else
		unwind_chain(e, w, at, rule);
	if (slot)
		return unwind_hand_over(w, slot);
	return unwind_apply(e, w, rule) && unwind_retry(w);
}
