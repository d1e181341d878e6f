/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of the walker (native-stack.h, which includes it) that follows chains: lines of the
 * cache of chains in unwind-tables.h. A walk follows chains as far as they lead, and takes a single
 * step where none does. From there on it makes a chain of what it finds, in other chains or in the
 * tables. A chain that the stack does not agree with stays as it is: it is some other stack's. Of
 * the chain that is being made the walk keeps the slot and the number of words. */
#pragma once

/* Appends to the chain that is being made. */
UNWIND_GLOBAL int unwind_chain_append(unwind_env e, __u64 word)
{
	struct andiron_walk *w = h_walk_state(e);
	struct unwind_chain *chain;
	__u32 n;

	if (!w)
		return 0;
	n = w->n_chain;
	chain = h_chain(e, w->chain & (UNWIND_CHAINS - 1));
	if (!chain || n >= UNWIND_CHAIN_WORDS)
		return 0;
	chain->words[n] = word;
	w->n_chain = (__u16)((n + 1) % UNWIND_CHAIN_WORDS);
	return 0;
}

/* 1: the program in a slot is to go on. What comes behind its frames is another chain. */
UNWIND_INLINE int unwind_hand_over(struct andiron_walk *w, __u32 slot)
{
	w->slot = slot;
	w->end = UNWIND_END_HAND_OVER;
	w->n_chain = 0;
	return 1;
}

/* Goes along the chain that begins with this return address, as far as the stack agrees. 0 if it
 * does not at all. What a chain cannot say, and whatever is wrong with the stack, is left to
 * unwind_step. */
UNWIND_GLOBAL int unwind_follow(unwind_env e)
{
	struct andiron_walk *w = h_walk_state(e);
	__u64 sp, fp, ra, cfa, at, word = 0, seal, pair[2];
	const struct unwind_chain *chain;
	__u32 brief = 0, n, frames = 0;

	if (!w)
		return 0;
	seal = unwind_chain_seal((__u32)(w->space >> 48));
	at = w->pc - 1;
	chain = h_chain(e, unwind_chain_slot(at, seal));
	if (!chain)
		return 0;
	sp = w->regs[UNWIND_SP];
	fp = w->regs[UNWIND_FP];
	for (int i = 0; i < UNWIND_CHAIN_WORDS; i++) {
		word = chain->words[i] ^ seal;
		if ((word ^ at) << 16 != 0)
			break;
		brief = (__u32)(word >> 48);
		if (brief == UNWIND_BRIEF_END) {
			if (andiron_walk_word(w, at) == 0)
				w->end = UNWIND_END_COMPLETE;
			break;
		}
		n = brief >> UNWIND_BRIEF_SHIFT;
		cfa = (brief & 1 ? fp : sp) + (brief >> 1 & 0x3ff) * 8;
		if (cfa <= sp)
			break;
		if (UNWIND_ARM || n == 2) {
			if (h_read(e, pair, sizeof(pair), cfa - 8 * (__u64)n) != 0)
				break;
			ra = pair[1];
		} else {
			if (h_read(e, &ra, sizeof(ra), cfa - 8) != 0)
				break;
			pair[0] = fp;
			if (n && h_read(e, pair, sizeof(pair[0]), cfa - 8 * (__u64)n) != 0)
				break;
		}
		ra &= h_pc_mask(e);
		if (ra == 0 || andiron_walk_word(w, at) != 0)
			break;
		if (w->n_chain)
			unwind_chain_append(e, word ^ seal);
		at = ra - 1;
		sp = cfa;
		fp = pair[0];
		frames++;
	}
	/* What a runtime claims has no offset, so the loop has ended there. */
	n = brief & ((1u << UNWIND_BRIEF_SHIFT) - 1) ? 0 : brief >> UNWIND_BRIEF_SHIFT;
	if (n && w->n_chain)
		unwind_chain_append(e, word ^ seal);
	if (n)
		unwind_hand_over(w, n);
	if (frames == 0)
		return w->end != 0;
	w->regs[UNWIND_SP] = sp;
	w->regs[UNWIND_FP] = fp;
	w->known = 1u << UNWIND_SP | 1u << UNWIND_FP;
	w->pc = at + 1;
	return 1;
}

/* Puts the frame at hand into the chain that is being made, or begins one with it. */
UNWIND_INLINE void unwind_chain(unwind_env e, struct andiron_walk *w, __u64 at, __u64 rule)
{
	__u32 brief = unwind_brief(rule, UNWIND_ARM);
	__u64 seal = unwind_chain_seal((__u32)(w->space >> 48));

	if (brief == UNWIND_BRIEF_NONE || w->exact || w->careful || at >> 48 != 0) {
		w->n_chain = 0;
		return;
	}
	if (w->n_chain == 0)
		w->chain = unwind_chain_slot(at, seal);
	unwind_chain_append(e, (at | (__u64)brief << 48) ^ seal);
}
