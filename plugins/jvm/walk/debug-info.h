/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which methods a place in compiled code is in: from its offset to the PcDesc that holds there (the
 * first one at or behind it, as for the JVM itself), from that to its scope, and from scope to
 * scope outwards. A call that cannot stop at a safepoint has no PcDesc: for such a return address
 * what the ones before and behind it have in common is told, since either may be of another method.
 * A scope begins with three compressed numbers: the offset of the next one outwards, the method's
 * index among the blob's metadata, and the bytecode's index plus one.
 *
 * The outermost scope is the blob's own method. If it is not, what was read is not believed. */
#pragma once

#include "jvm/walk/callers.h"

#define JVM_SEARCH 17 /* steps, for at most 64 K places */

#define JVM_PLACE_BETWEEN 0x80000000u /* of an offset: what the PcDescs around it have in common */

/* Where the blob at hand has its debug information. */
JVM_INLINE int debug_info_find(struct jvm_state *s)
{
	const struct jvm_offsets *at = &s->process.at;
	__u64 base = at->flags & JVM_IMMUTABLE ? header64(s, at->nmethod_immutable) : s->blob;
	__u32 pcs = header32(s, at->nmethod_scopes_pcs);
	__u32 limit = header32(s, at->nmethod_pcs_limit);

	if (limit <= pcs || limit - pcs > 16u << 16)
		return 1;
	s->pcs = base + pcs;
	s->n_pcs = (limit - pcs) / 16;
	s->scopes = at->flags & JVM_SCOPES_POINTER ? header64(s, at->nmethod_scopes_data)
						   : base + header32(s, at->nmethod_scopes_data);
	if (at->flags & JVM_MUTABLE)
		s->metadata = header64(s, at->blob_mutable) +
			      ((header32(s, at->blob_relocation_size) + 7) & ~7u);
	else if (at->flags & JVM_IMMUTABLE)
		s->metadata = s->blob + header32(s, at->blob_data) +
			      header32(s, at->nmethod_metadata);
	else
		s->metadata = s->blob + header32(s, at->nmethod_metadata);
	return !user_address(s->pcs) || !user_address(s->scopes) || !user_address(s->metadata);
}

/* The first PcDesc whose offset is s->offset or more; its index. */
JVM_INLINE __u32 place_search(const struct jvm_state *s)
{
	__u32 low = 0, high = s->n_pcs;

	for (int i = 0; i < JVM_SEARCH; i++) {
		__u32 middle = low + (high - low) / 2;
		__s32 offset = 0;

		if (low >= high)
			break;
		h_read(&offset, sizeof(offset), s->pcs + 16ull * middle);
		if (offset >= (__s32)s->offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* A compressed number at s->bytes[*at]; *at moves behind it. */
JVM_INLINE __u32 number_read(const struct jvm_state *s, __u32 *at)
{
	__u32 excluded = s->process.at.flags & JVM_NO_ZERO_BYTES ? 1 : 0, sum = 0;

	for (__u32 i = 0; i < 5; i++) {
		__u32 byte = s->bytes[*at & 31];

		*at += 1;
		sum += (byte - excluded) << (6 * i);
		if (byte < 192)
			break;
	}
	return sum;
}

/* The scope at s->scope is added to s->site, and s->scope is the one outwards, or 0. Not 0: what
 * stands there is no scope. */
JVM_GLOBAL int jvm_scope_learn(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	__u32 at = 0, outwards, index, bci, n;

	if (!s || h_read(s->bytes, 16, s->scopes + s->scope) != 0)
		return 1;
	outwards = number_read(s, &at);
	index = number_read(s, &at);
	bci = number_read(s, &at) - 1;
	if (index == 0 || index > 1u << 20 || outwards >= s->scope)
		return 1;
	s->method = word_at(s->metadata + 8ull * (index - 1));
	if (jvm_method_know(cpu) != 0)
		return 1;
	if (bci != ~0u && bci >= s->bytecode_size && bci != 0)
		return 1;
	n = s->site.n;
	if (n < JVM_INLINED) {
		s->site.methods[n] = s->id;
		s->site.bcis[n] = (__u16)bci;
		s->site.n = n + 1;
	}
	s->scope = outwards;
	return 0;
}

/* The PcDesc of an index → s->site, innermost method first; s->pc_offset is its offset. Not 0:
 * nothing that can be believed. */
JVM_GLOBAL int jvm_place_learn(__u32 cpu, __u32 index)
{
	struct jvm_state *s = h_state(cpu);

	if (!s || index >= s->n_pcs || h_read(s->bytes, 16, s->pcs + 16ull * index) != 0)
		return 1;
	s->site.n = 0;
	s->site.cut = 0;
	s->pc_offset = at32(s->bytes, 0);
	s->scope = at32(s->bytes, 4);
	if (s->scope == 0 || s->scope > 1u << 28)
		return 1;
	for (int i = 0; i < JVM_INLINED && s->scope != 0; i++)
		if (jvm_scope_learn(cpu) != 0)
			return 1;
	if (s->scope == 0)
		return s->method != header64(s, s->process.at.nmethod_method);
	/* The last one makes room for the blob's own. */
	s->method = header64(s, s->process.at.nmethod_method);
	if (jvm_method_know(cpu) != 0)
		return 1;
	s->site.methods[JVM_INLINED - 1] = s->id;
	s->site.bcis[JVM_INLINED - 1] = JVM_BCI_NONE;
	s->site.cut = 1;
	return 0;
}

/* Compares the i-th of the outermost methods of s->site and s->other. Not 0: they part, here or at
 * its bytecode. */
JVM_GLOBAL int jvm_meet_step(__u32 cpu, __u32 i)
{
	struct jvm_state *s = h_state(cpu);
	__u32 a, b;

	if (!s || i >= s->site.n || i >= s->other.n)
		return 1;
	a = (s->site.n - 1 - i) & (JVM_INLINED - 1);
	b = (s->other.n - 1 - i) & (JVM_INLINED - 1);
	if (s->site.methods[a] != s->other.methods[b])
		return 1;
	s->met = i + 1;
	s->met_whole = s->site.bcis[a] == s->other.bcis[b];
	return !s->met_whole;
}

/* s->site keeps those of its outermost methods that s->other has, too. */
JVM_INLINE void sites_meet(__u32 cpu, struct jvm_state *s)
{
	__u32 first;

	s->met = 0;
	s->met_whole = 1;
	for (__u32 i = 0; i < JVM_INLINED; i++)
		if (jvm_meet_step(cpu, i) != 0)
			break;
	if (s->met == 0 || s->met > s->site.n)
		return;
	first = s->site.n - s->met;
	for (__u32 i = 0; i < JVM_INLINED; i++) {
		s->site.methods[i] = s->site.methods[(first + i) & (JVM_INLINED - 1)];
		s->site.bcis[i] = s->site.bcis[(first + i) & (JVM_INLINED - 1)];
	}
	/* Where they part, the bytecode is not known. */
	if (!s->met_whole)
		s->site.bcis[0] = JVM_BCI_NONE;
	s->site.n = s->met;
}

JVM_GLOBAL int jvm_places_meet(__u32 cpu, __u32 index)
{
	struct jvm_state *s = h_state(cpu);

	if (!s)
		return 1;
	if (jvm_place_learn(cpu, index - 1) == 0) {
		s->other = s->site;
		if (jvm_place_learn(cpu, index) != 0)
			return 1;
		if (!s->site.cut && !s->other.cut)
			sites_meet(cpu, s);
	} else if (jvm_place_learn(cpu, index) != 0) {
		return 1;
	}
	s->pc_offset = s->offset | JVM_PLACE_BETWEEN;
	return 0;
}

/* The compilers put rare paths behind the method: what they have called, as a barrier of the
 * collector's, has no debug information, and they jump back to where they came from. There
 * s->offset goes; 0: there is no such jump. */
JVM_INLINE int jump_follow(__u32 cpu, struct jvm_state *s)
{
	__u64 from = s->offset + ((__u32)jvm_registers_kept(cpu, s->code + s->offset) & 0xff),
	      to = from;

	if (h_read(s->bytes, 8, s->code + from) != 0)
		return 0;
	if (s->bytes[0] == 0xe9) /* jmp, by 32 or 8 bits */
		to += 5 + (__u64)(__s64)(__s32)at32(s->bytes, 1);
	else if (s->bytes[0] == 0xeb)
		to += 2 + (__u64)(__s64)(signed char)s->bytes[1];
	if (to >= s->offset)
		return 0;
	s->offset = (__u32)to;
	return 1;
}

JVM_INLINE int site_scopes(__u32 cpu, struct jvm_state *s)
{
	__u32 index = place_search(s);
	int error = jvm_place_learn(cpu, index);

	if (!s->call || (error == 0 && s->pc_offset == s->offset))
		return error;
	if (jump_follow(cpu, s))
		return jvm_place_learn(cpu, place_search(s));
	if (error != 0 || index == 0)
		return error;
	return jvm_places_meet(cpu, index);
}

/* The site of the place at s->offset of the blob at hand is read; s->id is its id, and it is
 * reported if it is a new one. The method's entry, and what has no debug information, are places of
 * the blob's own method. */
JVM_GLOBAL int jvm_site_learn(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);

	if (!s)
		return 1;
	s->reads += 20;
	if (s->offset == 0 || debug_info_find(s) != 0 || site_scopes(cpu, s) != 0) {
		s->pc_offset = s->offset ? ~0u : 0;
		s->method = header64(s, s->process.at.nmethod_method);
		if (jvm_method_know(cpu) != 0)
			return 1;
		s->site.n = 1;
		s->site.cut = 0;
		s->site.methods[0] = s->id;
		s->site.bcis[0] = s->offset ? JVM_BCI_NONE : 0;
	}
	s->id = mix(mix(mix(s->process.seed, s->blob), s->compile_id), s->pc_offset) | 1;
	s->site.head.kind = JVM_REPORT_SITE;
	s->site.head.cut = 0;
	s->site.head.process = s->process.id;
	s->site.head.id = s->id;
	if (!h_reported(s->id))
		h_report(&s->site.head, sizeof(s->site));
	h_place_put(&s->place, &s->id);
	return 0;
}

/* Appends the compiled frame at an offset of the blob at hand. A site that the plugin has
 * forgotten is read and reported again, and so is a method of it. */
JVM_INLINE int compiled_push(__u32 cpu, struct jvm_state *s, struct andiron_walk *w, __u32 offset)
{
	const __u64 *id;

	s->offset = offset;
	s->call = !w->exact;
	if (s->site_id && s->place.nmethod == s->blob && s->place.offset == offset &&
	    s->place.call == s->call)
		return andiron_walk_push(w, JVM_WHAT(JVM_FRAME_SITE, 0), s->site_id);
	s->place.seed = s->process.seed;
	s->place.nmethod = s->blob;
	s->place.compile_id = s->compile_id;
	s->place.offset = offset;
	s->place.call = s->call;
	s->place.reserved = 0;
	id = h_place_find(&s->place);
	if (id && h_reported(*id))
		s->id = *id;
	else if (jvm_site_learn(cpu) != 0)
		return 1;
	s->site_id = s->id;
	return andiron_walk_push(w, JVM_WHAT(JVM_FRAME_SITE, 0), s->id);
}
