/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code is found by its header, backwards from an address in it, some KiB at a time. */
#include "v8/code/code.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 32u /* of first instructions, in all versions */
#define FARTHEST  (1u << 20)
#define PIECE     4096u
/* Places that look like a header, for which other objects have to be read. */
#define CANDIDATES 256u

/* The object that describes the code whose header stands at an address; 0: there is no such
 * header. */
static uint64_t code_object(const struct heap *h, uint64_t header, const __u64 *words)
{
	const struct v8_binary *b = h->binary;
	uint64_t object = words[b->stream_code / 8], start;

	if (b->stream_code == 0) {
		for (int i = 1; i < 4; i++)
			if ((words[i] & 3) != 1)
				return 0;
		return heap_is(h, header + 1, b->types.code) ? header + 1 : 0;
	}
	if ((object & 3) != 1 || !heap_is(h, header + 1, b->types.stream) ||
	    !heap_is(h, object, b->types.code) || !heap_word(h, object, b->code_start, &start))
		return 0;
	return start == header + b->code_header ? object : 0;
}

struct search {
	const struct heap *h;
	uint64_t seed, pc;
	uint32_t n_candidates;
};

/* One header that covers pc, among those that begin in [from, from + PIECE). 1, 0: none, or -1:
 * there is one, of other code, or the search has lasted long enough. */
static int code_in_piece(struct search *s, uint64_t from, struct code *ret, uint64_t *ret_object)
{
	const struct heap *h = s->h;
	__u64 words[(PIECE + 64) / 8];
	uint32_t header = h->binary->code_header, size;

	if (!memory_read(h->memory, from, words, PIECE))
		return -1;
	memset(words + PIECE / 8, 0, 64);
	for (uint64_t at = PIECE; at >= 8; at -= 8) {
		uint64_t address = from + at - 8, object;

		if (address + header > s->pc || (address + header) % ALIGNMENT != 0 ||
		    (words[(at - 8) / 8] & 3) != 1)
			continue;
		if (++s->n_candidates > CANDIDATES)
			return -1;
		object = code_object(h, address, words + (at - 8) / 8);
		if (object == 0)
			continue;
		if (!memory_read(h->memory, (object & ~3ull) + h->binary->code_size, &size, 4) ||
		    s->pc - (address + header) > size)
			return -1;
		ret->header = address;
		ret->start = address + header;
		ret->end = ret->start + size;
		if (!memory_read(h->memory, address, words, 8 * V8_HEADER))
			return -1;
		ret->compilation = v8_compilation(s->seed, words);
		*ret_object = object;
		return 1;
	}
	return 0;
}

static bool code_find(const struct heap *h, uint64_t seed, uint64_t pc, struct code *ret,
		      uint64_t *ret_object)
{
	struct search s = {h, seed, pc, 0};
	uint64_t from = pc & ~(uint64_t)(PIECE - 1);

	for (uint32_t back = 0; back < FARTHEST; back += PIECE, from -= PIECE) {
		int r = code_in_piece(&s, from, ret, ret_object);

		if (r != 0)
			return r > 0;
	}
	return false;
}

/* The table that a word refers to, of what has so many bytes. */
static void code_read_positions(const struct heap *h, uint64_t table, uint64_t bytes,
				struct code *c)
{
	memory_note_near(h->memory, table);
	c->positions = heap_bytes(h, table, &c->n_positions);
	if (c->positions && !positions_fit(c->positions, c->n_positions, h->binary, bytes)) {
		free(c->positions);
		c->positions = NULL;
		c->n_positions = 0;
	}
}

static void code_read_baseline(const struct heap *h, uint64_t object, struct code *c)
{
	const struct v8_binary *b = h->binary;
	uint64_t table, length, positions;
	uint32_t n_sizes, n;
	uint8_t *sizes, *bytes;

	if (!heap_word(h, object, b->code_positions, &table) ||
	    !heap_word(h, c->bytecodes, 8, &length) || !heap_is_small(length) ||
	    length >> 32 == 0 || length >> 32 > HEAP_BYTES)
		return;
	n = (uint32_t)(length >> 32);
	if (heap_word(h, c->bytecodes, b->bytecode_positions, &positions))
		code_read_positions(h, positions, n, c);
	sizes = heap_bytes(h, table, &n_sizes);
	bytes = malloc(n);
	if (sizes && bytes &&
	    memory_read(h->memory, (c->bytecodes & ~3ull) + b->bytecode_data, bytes, n))
		c->steps = baseline_steps(b, sizes, n_sizes, bytes, n, &c->n_steps);
	free(bytes);
	free(sizes);
}

static void code_read_inlined(const struct heap *h, uint64_t deopt, struct code *c)
{
	const struct v8_binary *b = h->binary;
	uint64_t array, literals, shared;
	uint32_t n;
	uint8_t *bytes;

	if (!heap_element(h, deopt, b->deopt_inlining, &array) ||
	    !heap_element(h, deopt, b->deopt_literals, &literals))
		return;
	memory_note_near(h->memory, array);
	bytes = heap_bytes(h, array, &n);
	n = bytes ? n / 16 : 0;
	if (n > CODE_INLINED)
		n = CODE_INLINED;
	c->inlined = n > 0 ? calloc(n, sizeof(*c->inlined)) : NULL;
	for (uint32_t i = 0; c->inlined && i < n; i++) {
		uint64_t word;
		int32_t function;

		memcpy(&word, bytes + 16ull * i, 8);
		memcpy(&function, bytes + 16ull * i + 8, 4);
		c->inlined[i].position = position_of(word);
		if (function >= 0 && heap_element(h, literals, (uint32_t)function, &shared) &&
		    heap_is(h, shared, b->types.shared))
			c->inlined[i].shared = shared & ~2ull;
		c->n_inlined = i + 1;
	}
	free(bytes);
}

static void code_read_optimized(const struct heap *h, uint64_t object, uint64_t deopt,
				struct code *c)
{
	const struct v8_binary *b = h->binary;
	uint64_t shared, table, script, flags;

	if (!heap_element(h, deopt, b->deopt_shared, &shared))
		return;
	if (b->types.has_shared_wrapper && heap_is(h, shared, b->types.shared_wrapper) &&
	    !heap_word(h, shared, 8, &shared))
		return;
	if (!heap_is(h, shared, b->types.shared) ||
	    !heap_word(h, shared, b->layout.shared_script, &script) ||
	    !heap_word(h, script, b->layout.script_id, &c->script_id) ||
	    !heap_word(h, shared, b->layout.shared_flags, &flags))
		return;
	c->literal = (uint32_t)(flags >> 32);
	c->kind = CODE_OPTIMIZED;
	c->shared = shared & ~2ull;
	if (heap_word(h, object, b->code_positions, &table))
		code_read_positions(h, table, c->end - c->start, c);
	code_read_inlined(h, deopt, c);
	calls_read(h, deopt, c);
}

/* V8 9.x: the bytecodes of baseline code are in what its function has as its code. */
static bool baseline_data(const struct heap *h, uint64_t shared, uint64_t object, uint64_t *ret)
{
	uint64_t data, code;

	return heap_word(h, shared, h->binary->layout.shared_data, &data) &&
	       heap_word(h, data, 8, &code) && code == object && heap_word(h, data, 16, ret) &&
	       (heap_is(h, *ret, h->binary->types.bytecodes) ||
		heap_is(h, *ret, h->binary->types.interpreter_data));
}

/* Gives back what is not used of an array. */
static void *trimmed(void *array, size_t bytes)
{
	void *kept;

	if (bytes == 0) {
		free(array);
		return NULL;
	}
	kept = realloc(array, bytes);
	return kept ? kept : array;
}

static void code_trim(struct code *c)
{
	c->calls = trimmed(c->calls, c->n_calls * sizeof(*c->calls));
	c->places = trimmed(c->places, c->n_places * sizeof(*c->places));
	c->callees = trimmed(c->callees, c->n_callees * sizeof(*c->callees));
	c->doubts = trimmed(c->doubts, c->n_doubts * sizeof(*c->doubts));
	c->asides = trimmed(c->asides, c->n_asides * sizeof(*c->asides));
	c->steps = trimmed(c->steps, c->n_steps * sizeof(*c->steps));
}

bool code_read(const struct heap *h, uint64_t seed, const struct v8_sighting *s, struct code *ret)
{
	const struct v8_binary *b = h->binary;
	uint64_t object, data;

	*ret = (struct code){0};
	if (!code_find(h, seed, s->code, ret, &object))
		return false;
	if (!baseline_data(h, s->key.shared, object, &data) &&
	    !heap_word(h, object, b->code_deopt, &data))
		return true;
	memory_note_near(h->memory, object);
	memory_note_near(h->memory, data);
	if (heap_is(h, data, b->types.interpreter_data)) {
		if (!heap_word(h, data, 8, &data))
			return true;
	}
	if (heap_is(h, data, b->types.bytecodes)) {
		ret->kind = CODE_BASELINE;
		ret->bytecodes = data;
		ret->script_id = s->key.script_id;
		ret->literal = (uint32_t)(s->key.flags >> 32);
		code_read_baseline(h, object, ret);
	} else {
		code_read_optimized(h, object, data, ret);
	}
	code_trim(ret);
	return true;
}

size_t code_bytes(const struct code *c)
{
	return c->n_positions + c->n_inlined * sizeof(*c->inlined) +
	       c->n_calls * sizeof(*c->calls) + c->n_places * sizeof(*c->places) +
	       c->n_callees * sizeof(*c->callees) + c->n_asides * sizeof(*c->asides) +
	       c->n_doubts * sizeof(*c->doubts) + c->n_steps * sizeof(*c->steps) +
	       (c->name ? strlen(c->name) + 1 : 0);
}

void code_fini(struct code *c)
{
	free(c->positions);
	free(c->inlined);
	free(c->calls);
	free(c->places);
	free(c->callees);
	free(c->doubts);
	free(c->asides);
	free(c->steps);
	free(c->name);
	*c = (struct code){0};
}
