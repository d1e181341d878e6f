/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of code that Maglev, V8's middle compiler, has made: which function stands where at each.
 *
 * Its table of positions cannot be believed: the second round of a loop that was peeled, or entered
 * in its middle, has the position of the loop's end throughout, and what is seldom done stands
 * behind the last node and has that node's. So a call is looked up as V8 does it for its own
 * stacks. The code's table of safepoints has the return address, with the number of an entry of its
 * deoptimization data; that has the translation of the frame into the interpreter's: for the
 * function and each one that it has inlined there, its bytecodes and the offset in them.
 *
 * What is read is the same from V8 13.6 to 14.6 (src/codegen/maglev-safepoint-table.h,
 * src/objects/deoptimization-data.h, src/deoptimizer/translation-opcode.h), and each part is held
 * against another: a safepoint's exit is its entry's, a translation has as many frames as it says,
 * the innermost frame's offset is the entry's, the outermost function the code's. */
#include "v8/code/code.h"

#include <stdlib.h>
#include <string.h>

#define SAFEPOINTS 16384u
#define ENTRIES    32768u
#define CALLS      4096u
#define PLACES     16384u /* of all calls */
#define DEPTH      64u

#define TABLES 128u
#define ASIDE  (256u << 10) /* bytes of code that are read for what stands behind it */
#define STEPS  1000000u     /* instructions of all translations */

/* Deoptimization data: the table behind the inlining positions, after three numbers; its entries
 * are a bytecode offset, a translation, and where its exit is. */
#define FIRST_ENTRY 4u
#define ENTRY       3u
/* The literals that are protected, bytecodes, stand before the others. */
#define LITERALS 3u

/* Instructions of translations: first frames of JavaScript, then other frames, then values. What is
 * above them repeats so many instructions of an earlier translation. */
#define OPERANDS       6u
#define INTERPRETED    1u /* and the one below it */
#define LAST_FRAME     10u
#define BEGIN          14u
#define BEGIN_FEEDBACK 15u
#define REPEAT         44u

struct reading {
	const struct heap *h;
	struct code *c;
	uint64_t literals, bytecodes; /* arrays */
	uint8_t *safepoints, *bytes;  /* bytes: translations */
	uint64_t *entries;
	uint32_t n_safepoints, n_bytes, n_entries, steps;
	uint32_t pc_size, index_size, size; /* of a safepoint */
	struct {
		uint64_t bytecodes;
		uint8_t *bytes;
		uint32_t n;
	} tables[TABLES];
	uint32_t n_tables;
};

struct instruction {
	uint32_t code, operands[OPERANDS];
};

/* A translation: `at` is the next byte, `basis` the next one of what may be repeated, `behind` how
 * many instructions it is behind, `left` how many more are repeated. */
struct translation {
	struct reading *r;
	uint32_t at, basis, behind, left;
};

const struct code_call *calls_find(const struct code *c, uint32_t offset)
{
	uint32_t low = 0, high = c->n_calls;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (c->calls[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->n_calls && c->calls[low].offset == offset ? &c->calls[low] : NULL;
}

bool calls_doubt(const struct code *c, uint64_t shared, int32_t at)
{
	for (uint32_t i = 0; i < c->n_doubts; i++)
		if (c->doubts[i].shared == shared && c->doubts[i].at == at)
			return true;
	return false;
}

uint32_t calls_belongs(const struct code *c, uint32_t offset)
{
	/* One may stand aside of another. */
	for (uint32_t i = c->n_asides; i-- > 0;)
		if (offset >= c->asides[i].from && offset < c->asides[i].to)
			offset = c->asides[i].back;
	return offset;
}

static uint32_t little(const uint8_t *p, uint32_t n)
{
	uint32_t value = 0;

	for (uint32_t i = 0; i < n; i++)
		value |= (uint32_t)p[i] << (8 * i);
	return value;
}

/* Safepoints have a deoptimization entry and its exit, each plus one, or zeros. */
static uint32_t safepoint_pc(const struct reading *r, uint32_t i)
{
	return little(r->safepoints + (size_t)i * r->size, r->pc_size);
}

static uint32_t safepoint_entry(const struct reading *r, uint32_t i)
{
	return little(r->safepoints + (size_t)i * r->size + r->pc_size, r->index_size) - 1;
}

static int32_t entry_number(const struct reading *r, uint32_t i, uint32_t which)
{
	return (int32_t)(r->entries[ENTRY * i + which] >> 32);
}

/* Whether it is the table that goes with these entries. */
static bool safepoints_fit(const struct reading *r)
{
	uint32_t before = 0, n = 0;

	for (uint32_t i = 0; i < r->n_safepoints; i++) {
		uint32_t pc = safepoint_pc(r, i), entry = safepoint_entry(r, i);

		if (pc <= before || pc > r->c->end - r->c->start)
			return false;
		before = pc;
		if (entry == UINT32_MAX)
			continue;
		if (entry >= r->n_entries ||
		    little(r->safepoints + (size_t)i * r->size + r->pc_size + r->index_size,
			   r->pc_size) != (uint32_t)entry_number(r, entry, 2) + 1)
			return false;
		n++;
	}
	return n > 0;
}

/* Behind the code: slots, number, sizes, tagged slots, then the safepoints. */
static bool safepoints_read(struct reading *r)
{
	uint32_t head[4], sizes;
	size_t n;

	if (!memory_read(r->h->memory, r->c->end, head, sizeof(head)) || head[1] == 0 ||
	    head[1] > SAFEPOINTS)
		return false;
	sizes = head[2];
	r->n_safepoints = head[1];
	r->pc_size = sizes >> 4 & 7;
	r->index_size = sizes >> 7 & 7;
	r->size = 2 * r->pc_size + r->index_size + 1 + (sizes >> 1 & 7);
	if ((sizes & 1) == 0 || r->pc_size == 0 || r->pc_size > 4 || r->index_size == 0 ||
	    r->index_size > 4)
		return false;
	n = (size_t)r->n_safepoints * r->size;
	r->safepoints = malloc(n);
	return r->safepoints &&
	       memory_read(r->h->memory, r->c->end + sizeof(head), r->safepoints, n) &&
	       safepoints_fit(r);
}

static bool entries_read(struct reading *r, uint64_t deopt)
{
	uint32_t first = r->h->binary->deopt_inlining + FIRST_ENTRY;
	uint64_t n;

	if (!heap_word(r->h, deopt, 8, &n) || !heap_is_small(n))
		return false;
	n >>= 32;
	if (n < first + ENTRY || (n - first) / ENTRY > ENTRIES)
		return false;
	r->n_entries = (uint32_t)(n - first) / ENTRY;
	r->entries = malloc(8ull * ENTRY * r->n_entries);
	return r->entries && memory_read(r->h->memory, (deopt & ~3ull) + 16 + 8ull * first,
					 r->entries, 8ull * ENTRY * r->n_entries);
}

static uint32_t operands_of(uint32_t code)
{
	static const uint8_t first[] = {6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3};

	if (code < sizeof(first))
		return first[code];
	/* A concatenated string and a value that is optimized out; an update of feedback. */
	return code == 19 || code == 37 ? 0 : code == 43 ? 2 : 1;
}

/* The instruction at a place, which moves behind it. */
static bool instruction_at(struct reading *r, uint32_t *at, struct instruction *ret)
{
	if (*at >= r->n_bytes || r->bytes[*at] > REPEAT || r->steps++ > STEPS)
		return false;
	ret->code = r->bytes[(*at)++];
	for (uint32_t i = 0; i < operands_of(ret->code); i++) {
		uint32_t value = 0, shift = 0;

		do {
			if (*at >= r->n_bytes || shift > 28)
				return false;
			value |= (uint32_t)(r->bytes[*at] & 127) << shift;
			shift += 7;
		} while (r->bytes[(*at)++] & 128);
		ret->operands[i] = value;
	}
	return true;
}

static bool translation_repeat(struct translation *t, struct instruction *ret)
{
	uint32_t n = t->r->bytes[t->at] - (REPEAT + 1u);

	if (t->r->bytes[t->at] > REPEAT)
		t->at++;
	else if (instruction_at(t->r, &t->at, ret))
		n = ret->operands[0];
	else
		return false;
	for (; t->behind > 0; t->behind--)
		if (!instruction_at(t->r, &t->basis, ret))
			return false;
	t->left = n - 1;
	return n > 0 && instruction_at(t->r, &t->basis, ret);
}

static bool translation_next(struct translation *t, struct instruction *ret)
{
	if (t->left > 0) {
		t->left--;
		return instruction_at(t->r, &t->basis, ret);
	}
	if (t->at < t->r->n_bytes && t->r->bytes[t->at] >= REPEAT)
		return translation_repeat(t, ret);
	t->behind++;
	return instruction_at(t->r, &t->at, ret);
}

/* Begins with how far the translation is back that it repeats, and numbers of frames. */
static bool translation_begin(struct translation *t, uint32_t at, uint32_t *ret_frames)
{
	struct instruction first;

	t->at = at;
	if (!translation_next(t, &first) || (first.code != BEGIN && first.code != BEGIN_FEEDBACK) ||
	    first.operands[0] > at)
		return false;
	t->basis = at - first.operands[0];
	*ret_frames = first.operands[1] >> 1;
	return *ret_frames > 0 && *ret_frames <= DEPTH;
}

static int32_t signed_operand(uint32_t value)
{
	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* The position of an offset in bytecodes; -1: not known. */
static int32_t bytecodes_position(struct reading *r, uint64_t bytecodes, int32_t offset)
{
	struct position p = {-1, -1};
	uint64_t table, length;
	uint32_t i = 0;

	while (i < r->n_tables && r->tables[i].bytecodes != bytecodes)
		i++;
	if (i == r->n_tables) {
		if (i == TABLES || !heap_is(r->h, bytecodes, r->h->binary->types.bytecodes) ||
		    !heap_word(r->h, bytecodes, r->h->binary->bytecode_positions, &table) ||
		    !heap_word(r->h, bytecodes, 8, &length))
			return -1;
		r->tables[i].bytecodes = bytecodes;
		r->tables[i].bytes = heap_bytes(r->h, table, &r->tables[i].n);
		r->n_tables++;
		if (r->tables[i].bytes &&
		    !positions_fit(r->tables[i].bytes, r->tables[i].n, r->h->binary, length >> 32))
			r->tables[i].n = 0;
	}
	if (r->tables[i].bytes)
		positions_find(r->tables[i].bytes, r->tables[i].n, r->h->binary, offset, &p);
	return p.at;
}

/* The place in `callees` of a function; UINT32_MAX: it is none, or there is no room. */
static uint32_t callee_of(struct reading *r, uint64_t shared)
{
	struct code *c = r->c;
	uint32_t i = 0;

	shared &= ~2ull;
	while (i < c->n_callees && c->callees[i].shared != shared)
		i++;
	if (i < c->n_callees)
		return i;
	if (i == CODE_INLINED || !heap_is(r->h, shared, r->h->binary->types.shared))
		return UINT32_MAX;
	c->callees[c->n_callees++].shared = shared;
	return i;
}

/* Appends the place that an interpreted frame is in. */
static bool place_add(struct reading *r, const struct instruction *frame)
{
	struct code *c = r->c;
	uint64_t shared, bytecodes;
	uint32_t callee;

	if (c->n_places == PLACES ||
	    !heap_element(r->h, r->literals, frame->operands[1] >> 1, &shared) ||
	    !heap_element(r->h, r->bytecodes, frame->operands[2] >> 1, &bytecodes))
		return false;
	callee = callee_of(r, shared);
	if (callee == UINT32_MAX)
		return false;
	c->places[c->n_places++] = (struct code_place){
		callee, bytecodes_position(r, bytecodes, signed_operand(frame->operands[0]))};
	return true;
}

/* Appends the places of a call, the outermost first. */
static bool places_add(struct reading *r, uint32_t entry)
{
	struct translation t = {.r = r};
	struct instruction i = {0};
	uint32_t n, first = r->c->n_places;

	if (!translation_begin(&t, (uint32_t)entry_number(r, entry, 1), &n))
		return false;
	while (n > 0) {
		if (!translation_next(&t, &i) || i.code == BEGIN || i.code == BEGIN_FEEDBACK)
			return false;
		n -= i.code <= LAST_FRAME;
		if (i.code <= INTERPRETED && !place_add(r, &i))
			return false;
	}
	/* What is continued by a builtin has its number in place of an offset. */
	return r->c->n_places > first &&
	       (i.code > INTERPRETED ||
		signed_operand(i.operands[0]) == entry_number(r, entry, 0)) &&
	       r->c->callees[r->c->places[first].callee].shared == r->c->shared;
}

/* What the code's own table says of a call, held against its places: the same functions, and
 * where its positions are others they are no longer believed. */
static void doubts_add(struct code *c, const struct v8_binary *b, const struct code_call *call)
{
	struct position p = {-1, -1};
	struct code_inlined *inlined;

	positions_find(c->positions, c->n_positions, b, calls_belongs(c, call->offset - 1), &p);
	for (uint32_t i = call->n; i-- > 0;) {
		const struct code_place *place = &c->places[call->first + i];
		uint64_t shared = c->callees[place->callee].shared;

		if (p.inlined >= 0 &&
		    ((uint32_t)p.inlined >= c->n_inlined || c->inlined[p.inlined].shared != shared))
			return;
		if (p.at != place->at && place->at >= 0 && c->n_doubts < CODE_DOUBTS &&
		    !calls_doubt(c, shared, p.at))
			c->doubts[c->n_doubts++] = (struct code_doubt){shared, p.at};
		if (p.inlined < 0 || i == 0)
			return;
		inlined = &c->inlined[p.inlined];
		p = inlined->position;
		if (place[-1].at >= 0) {
			inlined->is_sure = true;
			inlined->position.at = p.at = place[-1].at;
		}
	}
}

static void calls_add(struct reading *r)
{
	struct code *c = r->c;

	for (uint32_t i = 0; i < r->n_safepoints && c->n_calls < CALLS; i++) {
		uint32_t entry = safepoint_entry(r, i), first = c->n_places;

		if (entry == UINT32_MAX)
			continue;
		if (!places_add(r, entry)) {
			c->n_places = first;
			continue;
		}
		c->calls[c->n_calls] =
			(struct code_call){safepoint_pc(r, i), first, c->n_places - first};
		doubts_add(c, r->h->binary, &c->calls[c->n_calls++]);
	}
}

/* x86: what stands aside ends in a jump back, or a call that does not return, and int3. Whether
 * code ends so; where it goes back to, else `at`. */
static bool is_aside_end(const uint8_t *end, uint32_t at, uint32_t *ret_back)
{
	*ret_back = at;
	if (end[0] != 0xcc)
		return false;
	if (end[-5] == 0xe9)
		*ret_back = at + little(end - 4, 4);
	else if (end[-2] == 0xeb && end[-1] >= 128)
		*ret_back = at + end[-1] - 256u; /* a negative number */
	return end[-5] == 0xe9 || end[-2] == 0xeb || end[-5] == 0xe8;
}

/* Where the first one begins is not known. */
static void asides_read(struct reading *r)
{
	uint32_t n = (uint32_t)(r->c->end - r->c->start), from = 0, back, last;
	uint8_t *code = n <= ASIDE ? malloc(n) : NULL;
	struct code *c = r->c;

	if (code && memory_read(r->h->memory, c->start, code, n) &&
	    positions_last(c->positions, c->n_positions, r->h->binary, &last))
		for (uint32_t at = last + 5; at < n && c->n_asides < CODE_ASIDES; at++) {
			if (!is_aside_end(code + at, at, &back))
				continue;
			if (from != 0 && back > 0 && back < at)
				c->asides[c->n_asides++] = (struct code_aside){from, at, back - 1};
			from = at + 1;
		}
	free(code);
}

static bool arrays_read(struct reading *r, uint64_t deopt)
{
	uint64_t translations;

	if (r->h->binary->deopt_literals != LITERALS || !entries_read(r, deopt) ||
	    !safepoints_read(r) || !heap_element(r->h, deopt, LITERALS, &r->literals) ||
	    !heap_element(r->h, deopt, LITERALS - 1, &r->bytecodes) ||
	    !heap_element(r->h, deopt, 0, &translations))
		return false;
	r->bytes = heap_bytes(r->h, translations, &r->n_bytes);
	return r->bytes != NULL;
}

void calls_read(const struct heap *h, uint64_t deopt, struct code *c)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->h = h;
	r->c = c;
	if (arrays_read(r, deopt)) {
		c->calls = calloc(CALLS, sizeof(*c->calls));
		c->places = calloc(PLACES, sizeof(*c->places));
		c->callees = calloc(CODE_INLINED, sizeof(*c->callees));
		c->doubts = calloc(CODE_DOUBTS, sizeof(*c->doubts));
		c->asides = calloc(CODE_ASIDES, sizeof(*c->asides));
		if (c->asides)
			asides_read(r);
		if (c->calls && c->places && c->callees && c->doubts)
			calls_add(r);
	}
	for (uint32_t i = 0; i < r->n_tables; i++)
		free(r->tables[i].bytes);
	free(r->safepoints);
	free(r->entries);
	free(r->bytes);
	free(r);
}
