/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a Method * to the id of its name, which is reported when the method is met for the first
 * time, or again after the plugin has forgotten it. A pointer that is no method is found out here:
 * what it leads to does not fit together. */
#pragma once

#include "jvm/walk/state.h"

/* A Symbol's text is appended to the name's, at *at; how long it is there, 0: there is none. `max`
 * is at most 512. */
JVM_INLINE __u16 symbol_add(struct jvm_state *s, __u64 symbol, __u32 max, __u32 *at, __u32 bit)
{
	__u16 bytes = 0;
	__u32 n, to = *at;

	if (!user_address(symbol) || to > JVM_TEXT_BYTES - JVM_CLASS_BYTES ||
	    h_read(&bytes, sizeof(bytes), symbol + s->process.at.symbol_length) != 0)
		return 0;
	n = bytes;
	if (n > max) {
		n = max;
		s->name.head.cut |= bit;
	}
	if (n == 0 || h_read(s->name.text + to, n, symbol + s->process.at.symbol_body) != 0)
		return 0;
	*at = to + n;
	return (__u16)n;
}

/* The Symbol at an index of a constant pool, 0: none. */
JVM_INLINE __u64 pool_symbol(const struct jvm_state *s, __u64 pool, __u32 index)
{
	return index ? word_at(pool + s->process.at.pool_bytes + 8ull * index) & ~1ull : 0;
}

JVM_INLINE __u64 source_symbol(const struct jvm_state *s, __u64 pool, __u64 klass)
{
	__u16 index = 0;
	__u64 from = s->process.at.pool_source != JVM_NONE ? pool + s->process.at.pool_source
							   : klass + s->process.at.klass_source;

	if (h_read(&index, sizeof(index), from) != 0)
		return 0;
	return pool_symbol(s, pool, index);
}

/* The bytes of the line number table stand behind the bytecode, and end before the method does. */
JVM_INLINE __u16 lines_add(struct jvm_state *s, __u64 const_method, __u32 to)
{
	const struct jvm_offsets *at = &s->process.at;
	__u32 words = at32(s->const_method, at->const_size & 63);
	__u32 flags = at32(s->const_method, at->const_flags & 63);
	__u64 from = s->bytecode + s->bytecode_size, limit = const_method + 8ull * words;
	__u32 n;

	if (!(flags & at->flag_lines) || words > 1u << 20 || limit <= from ||
	    to > JVM_TEXT_BYTES - JVM_LINE_BYTES)
		return 0;
	n = limit - from > JVM_LINE_BYTES ? JVM_LINE_BYTES : (__u32)(limit - from);
	if (n > JVM_LINE_BYTES || h_read(s->name.text + to, n, from) != 0)
		return 0;
	return (__u16)n;
}

JVM_INLINE void name_report(struct jvm_state *s, __u32 text_bytes)
{
	s->name.head.kind = JVM_REPORT_NAME;
	s->name.head.process = s->process.id;
	s->name.head.id = s->id;
	s->name.no_zero_bytes = (s->process.at.flags & JVM_NO_ZERO_BYTES) != 0;
	s->name.reserved = 0;
	if (text_bytes <= JVM_TEXT_BYTES)
		h_report(&s->name.head, (__u32)(sizeof(s->name) - JVM_TEXT_BYTES) + text_bytes);
}

JVM_INLINE void name_learn(struct jvm_state *s, __u64 klass_name, __u64 name, __u64 source,
			   __u64 const_method)
{
	__u32 at = 0;

	s->reads += 10;
	s->name.head.cut = 0;
	s->name.class_bytes = symbol_add(s, klass_name, JVM_CLASS_BYTES, &at, 1);
	s->name.method_bytes = symbol_add(s, name, JVM_METHOD_BYTES, &at, 2);
	s->name.file_bytes = symbol_add(s, source, JVM_FILE_BYTES, &at, 4);
	s->name.line_bytes = lines_add(s, const_method, at);
	if (s->name.class_bytes && s->name.method_bytes)
		name_report(s, at + s->name.line_bytes);
}

/* `id` and n bytes at an address, of which there are at most 32. */
JVM_INLINE __u64 bytes_mix(struct jvm_state *s, __u64 id, __u64 address, __u32 n)
{
	__builtin_memset(s->told, 0, sizeof(s->told));
	asm volatile("" : "+r"(n)); /* else the bound that follows is left out, as known */
	if (n > sizeof(s->told) || h_read(s->told, n, address) != 0)
		return id;
	return mix(mix(mix(mix(mix(id, n), s->told[0]), s->told[1]), s->told[2]), s->told[3]);
}

/* `id` and what tells s->method from one that was there before. A class that is unloaded leaves all
 * of its addresses to the next one of its shape, its name's too; the names of generated classes
 * differ at their end. A class that is redefined leaves them to itself, with other lines. */
JVM_INLINE __u64 method_mix(struct jvm_state *s, __u64 id, __u64 const_method, __u64 klass_name)
{
	__u64 lines = s->bytecode + s->bytecode_size;
	__u32 words = at32(s->const_method, s->process.at.const_size & 63);
	__u64 rest = const_method + 8ull * words - lines;
	__u16 bytes = 0;
	__u32 n;

	h_read(&bytes, sizeof(bytes), klass_name + s->process.at.symbol_length);
	n = bytes < sizeof(s->told) ? bytes : (__u32)sizeof(s->told);
	id = mix(id, (__u64)words << 32 | (__u64)bytes << 16 | s->bytecode_size);
	id = bytes_mix(s, id, klass_name + s->process.at.symbol_body + bytes - n, n);
	n = rest < sizeof(s->told) ? (__u32)rest : (__u32)sizeof(s->told);
	return bytes_mix(s, id, lines, words > 1u << 20 ? 0 : n);
}

/* s->method → s->id, s->bytecode and s->bytecode_size. Not 0: it is no method. */
JVM_GLOBAL int jvm_method_know(__u32 cpu)
{
	struct jvm_state *s = h_state(cpu);
	__u64 method, const_method, pool, holder, klass_name, name;
	const struct jvm_offsets *at;
	struct jvm_memo *memo;
	__u32 code_size;

	if (!s)
		return 1;
	at = &s->process.at;
	method = s->method;
	memo = &s->memos[method >> 4 & (JVM_MEMOS - 1)];
	if (memo->epoch == s->epoch && memo->method == method) {
		s->id = memo->id;
		s->bytecode = memo->code;
		s->bytecode_size = memo->code_size;
		return 0;
	}
	if (!user_address(method) || method & 7)
		return 1;
	const_method = word_at(method + at->method_const);
	if (!user_address(const_method) || const_method & 7 ||
	    h_read(s->const_method, 64, const_method) != 0)
		return 1;
	pool = (__u64)at32(s->const_method, at->const_pool & 31) |
	       (__u64)at32(s->const_method, (at->const_pool & 31) + 4) << 32;
	code_size = at16(s->const_method, at->const_code_size & 63);
	if (!user_address(pool) || pool & 7)
		return 1;
	holder = word_at(pool + at->pool_holder);
	name = pool_symbol(s, pool, at16(s->const_method, at->const_name & 63));
	if (!user_address(holder) || !user_address(name))
		return 1;
	klass_name = word_at(holder + at->klass_name);
	if (!user_address(klass_name))
		return 1;
	s->bytecode = const_method + at->const_bytes;
	s->bytecode_size = code_size;
	s->id = mix(mix(mix(mix(mix(s->process.seed, method), const_method), pool), klass_name),
		    name);
	s->id = method_mix(s, s->id, const_method, klass_name) | 1;
	s->reads += 11;
	if (!h_reported(s->id))
		name_learn(s, klass_name, name, source_symbol(s, pool, holder), const_method);
	*memo = (struct jvm_memo){method, s->id, s->bytecode, code_size, s->epoch};
	return 0;
}

/* A stub by its blob's name, whose id is then s->id. */
JVM_INLINE int stub_know(struct jvm_state *s)
{
	__u64 name = header64(s, s->process.at.blob_name);

	if (!user_address(name))
		return 1;
	s->id = mix(mix(s->process.seed, name), s->blob) | 1;
	if (h_reported(s->id))
		return 0;
	s->name.head.cut = 0;
	s->name.class_bytes = s->name.file_bytes = s->name.line_bytes = 0;
	s->name.method_bytes = 96;
	/* It ends by itself; near the end of what is mapped, less of it must do. */
	if (h_read(s->name.text, 96, name) != 0) {
		s->name.method_bytes = 16;
		if (h_read(s->name.text, 16, name) != 0)
			return 1;
	}
	name_report(s, s->name.method_bytes);
	return 0;
}
