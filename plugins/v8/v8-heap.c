/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of all shapes are read as runs of characters, parts on a stack of bounded depth. */
#include "v8/v8-heap.h"

#include <stdlib.h>
#include <string.h>

#include "runtime-kit/text.h"

/* Places that all versions share, and parts of a string's type. */
#define STRING_LENGTH  12
#define STRING_CHARS   16
#define STRING_FIRST   16 /* of a cons string; of what a thin or sliced string stands for */
#define STRING_SECOND  24 /* of a cons string; offset of a sliced one; data of an external one */
#define NOT_STRING     0xff80u
#define SHAPE          7u
#define SEQUENTIAL     0u
#define CONS           1u
#define EXTERNAL       2u
#define SLICED         3u
#define THIN           5u
#define ONE_BYTE       8u
#define UNCACHED       16u
#define SHARED         64u /* by isolates; in versions before it is no string at all */
#define ARRAY_LENGTH   8
#define ARRAY_ELEMENTS 16

#define STRING_PARTS  4096u
#define STRING_DEPTH  32
#define LOCALS        65536u
#define INLINE_LOCALS 75u
#define UNITS         1024u /* of a text that is a name */

bool heap_word(const struct heap *h, uint64_t object, uint32_t offset, uint64_t *ret)
{
	return heap_is_pointer(object) && memory_word(h->memory, (object & ~3ull) + offset, ret);
}

bool heap_type(const struct heap *h, uint64_t object, uint16_t *ret)
{
	uint64_t map;

	if (!heap_word(h, object, 0, &map) || !heap_is_pointer(map))
		return false;
	if (!memory_read(h->memory, (map & ~3ull) + h->binary->layout.map_type, ret, sizeof(*ret)))
		return false;
	memory_note_map(h->memory, map);
	return true;
}

bool heap_is(const struct heap *h, uint64_t object, uint16_t type)
{
	uint16_t found;

	return heap_type(h, object, &found) && found == type;
}

bool heap_is_string(const struct heap *h, uint64_t object)
{
	uint16_t type;

	return heap_type(h, object, &type) && (type & NOT_STRING) == 0;
}

bool heap_element(const struct heap *h, uint64_t array, uint32_t index, uint64_t *ret)
{
	uint64_t n;

	return heap_word(h, array, ARRAY_LENGTH, &n) && heap_is_small(n) && index < n >> 32 &&
	       memory_word(h->memory, (array & ~3ull) + ARRAY_ELEMENTS + 8ull * index, ret);
}

static bool is_bytes(const struct heap *h, uint16_t type)
{
	const struct v8_types *t = &h->binary->types;

	return type == t->bytes || (t->has_trusted_bytes && type == t->trusted_bytes);
}

bool heap_has_no_bytes(const struct heap *h, uint64_t object)
{
	uint16_t type;
	uint64_t n;

	return heap_type(h, object, &type) &&
	       (!is_bytes(h, type) || (heap_word(h, object, ARRAY_LENGTH, &n) && n >> 32 == 0));
}

uint8_t *heap_bytes(const struct heap *h, uint64_t object, uint32_t *ret_n)
{
	uint16_t type;
	uint64_t n;
	uint8_t *bytes;

	if (!heap_type(h, object, &type) || !is_bytes(h, type) ||
	    !heap_word(h, object, ARRAY_LENGTH, &n) || !heap_is_small(n))
		return NULL;
	n >>= 32;
	if (n == 0 || n > HEAP_BYTES)
		return NULL;
	bytes = malloc(n);
	if (bytes && !memory_read(h->memory, (object & ~3ull) + ARRAY_ELEMENTS, bytes, n)) {
		free(bytes);
		return NULL;
	}
	*ret_n = (uint32_t)n;
	return bytes;
}

/* A run of characters of a string whose parts may lie in several objects. */
struct run {
	uint64_t address;
	uint32_t n;
	bool wide;
};

struct pending {
	uint64_t string;
	uint32_t from, n;
};

struct runs {
	const struct heap *h;
	struct pending stack[STRING_DEPTH];
	uint32_t depth, parts;
	bool refused; /* it was there, but it is of a shape that is not read */
};

static bool runs_begin(struct runs *r, const struct heap *h, uint64_t string, uint32_t *ret_n)
{
	uint32_t n;

	if (!heap_is_string(h, string) ||
	    !memory_read(h->memory, (string & ~3ull) + STRING_LENGTH, &n, sizeof(n)) ||
	    n > HEAP_SOURCE)
		return false;
	*r = (struct runs){.h = h, .stack = {{string, 0, n}}, .depth = 1};
	*ret_n = n;
	return true;
}

static bool runs_push(struct runs *r, uint64_t string, uint32_t from, uint32_t n)
{
	if (n == 0)
		return true;
	if (r->depth == STRING_DEPTH) {
		r->refused = true;
		return false;
	}
	r->stack[r->depth++] = (struct pending){string, from, n};
	return true;
}

/* Both parts of a cons string, the first on top. */
static bool runs_cons(struct runs *r, const struct pending *p)
{
	uint64_t first, second;
	uint32_t n, from_second = 0, n_first = 0;

	if (!heap_word(r->h, p->string, STRING_FIRST, &first) || !heap_is_pointer(first) ||
	    !memory_read(r->h->memory, (first & ~3ull) + STRING_LENGTH, &n, sizeof(n)) ||
	    !heap_word(r->h, p->string, STRING_SECOND, &second))
		return false;
	if (p->from < n)
		n_first = p->n < n - p->from ? p->n : n - p->from;
	else
		from_second = p->from - n;
	return runs_push(r, second, from_second, p->n - n_first) &&
	       runs_push(r, first, p->from, n_first);
}

/* The type of what is pending; false: it is no string that has so many characters. */
static bool runs_type(const struct runs *r, const struct pending *p, uint16_t *ret)
{
	uint32_t n;

	return heap_type(r->h, p->string, ret) && (*ret & NOT_STRING) == 0 &&
	       memory_read(r->h->memory, (p->string & ~3ull) + STRING_LENGTH, &n, sizeof(n)) &&
	       p->from <= n && p->n <= n - p->from;
}

/* Characters that stand in the object, or in memory of the embedder's. */
static bool runs_flat(struct runs *r, const struct pending *p, uint16_t type, struct run *ret)
{
	ret->wide = (type & ONE_BYTE) == 0;
	ret->n = p->n;
	ret->address = (p->string & ~3ull) + STRING_CHARS;
	r->refused = (type & SHAPE) == EXTERNAL && (type & UNCACHED);
	if ((type & SHAPE) == EXTERNAL &&
	    (r->refused || !heap_word(r->h, p->string, STRING_SECOND, &ret->address)))
		return false;
	ret->address += (uint64_t)p->from << ret->wide;
	return true;
}

/* What a thin or a sliced string stands for. */
static bool runs_through(struct runs *r, const struct pending *p, uint16_t type)
{
	uint64_t offset = 0, word;

	if ((type & SHAPE) == SLICED &&
	    (!heap_word(r->h, p->string, STRING_SECOND, &offset) || !heap_is_small(offset)))
		return false;
	return ((type & SHAPE) == SLICED || (type & SHAPE) == THIN) &&
	       heap_word(r->h, p->string, STRING_FIRST, &word) &&
	       runs_push(r, word, p->from + (uint32_t)(offset >> 32), p->n);
}

/* The next run; 0: there is none, 1, or -1: the string is not to be read. */
static int runs_next(struct runs *r, struct run *ret)
{
	while (r->depth > 0) {
		struct pending p = r->stack[--r->depth];
		uint16_t type;

		r->refused = ++r->parts > STRING_PARTS;
		if (r->refused || !runs_type(r, &p, &type))
			return -1;
		if ((type & SHAPE) == SEQUENTIAL || (type & SHAPE) == EXTERNAL)
			return runs_flat(r, &p, type, ret) ? 1 : -1;
		if (!((type & SHAPE) == CONS ? runs_cons(r, &p) : runs_through(r, &p, type)))
			return -1;
	}
	return 0;
}

static uint32_t character(const uint8_t *bytes, uint32_t i, bool wide)
{
	return wide ? (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8 : bytes[i];
}

/* Appends to units[*n … UNITS) what finds room there. */
static bool units_add(const struct heap *h, const struct run *run, uint16_t *units, uint32_t *n)
{
	uint8_t bytes[2 * UNITS];
	uint32_t k = run->n < UNITS - *n ? run->n : UNITS - *n;

	if (!memory_read(h->memory, run->address, bytes, (size_t)k << run->wide))
		return false;
	for (uint32_t i = 0; i < k; i++)
		units[(*n)++] = (uint16_t)character(bytes, i, run->wide);
	return true;
}

/* No character has fewer bytes than units, so what finds no room here finds none in the result. */
bool heap_name(const struct heap *h, uint64_t object, char *ret, size_t max, size_t *ret_n)
{
	uint16_t units[UNITS], type;
	struct runs runs;
	struct run run;
	uint32_t total, n = 0;
	int r = 1;

	*ret_n = 0;
	if (!heap_is_pointer(object))
		return true;
	if (!heap_type(h, object, &type))
		return false;
	if ((type & NOT_STRING) != 0)
		return true;
	if (!runs_begin(&runs, h, object, &total))
		return (type & SHARED) != 0;
	while (n < UNITS && r > 0) {
		r = runs_next(&runs, &run);
		if (r > 0 && !units_add(h, &run, units, &n))
			r = -1;
	}
	if (r < 0)
		return runs.refused || (type & SHARED) != 0;
	*ret_n = text_to_utf8(ret, max < UNITS ? max : UNITS, units, 2ull * n, TEXT_UTF16,
			      n < total ? TEXT_CUT_END : TEXT_WHOLE);
	return true;
}

#define PIECE 65536u

/* The next character from i on that may end a line. */
static uint32_t lines_skip(const uint8_t *piece, uint32_t i, uint32_t n)
{
	while (i < n && piece[i] > '\r')
		i++;
	return i;
}

/* A carriage return that a line feed follows ends no line of its own. */
static bool lines_scan(struct lines *l, const struct heap *h, const struct run *run,
		       uint32_t position, uint8_t *piece, bool *carriage)
{
	for (uint32_t done = 0; done < run->n;) {
		uint32_t k = run->n - done;

		if (k > PIECE >> run->wide)
			k = PIECE >> run->wide;
		if (!memory_read(h->memory, run->address + ((uint64_t)done << run->wide), piece,
				 (size_t)k << run->wide))
			return false;
		for (uint32_t i = 0; i < k; i++) {
			uint32_t c, at;

			if (!run->wide && !*carriage && (i = lines_skip(piece, i, k)) == k)
				break;
			c = character(piece, i, run->wide);
			at = position + done + i;
			if (*carriage && c != '\n' && !lines_add(l, at - 1))
				return false;
			*carriage = c == '\r';
			if ((c == '\n' || c == 0x2028 || c == 0x2029) && !lines_add(l, at))
				return false;
		}
		done += k;
	}
	return true;
}

bool heap_lines(const struct heap *h, uint64_t string, struct lines *ret)
{
	struct lines lines = {0};
	struct runs runs;
	struct run run;
	uint32_t total, position = 0;
	bool carriage = false;
	uint8_t *piece;
	int r = 0;

	if (!runs_begin(&runs, h, string, &total))
		return false;
	piece = malloc(PIECE);
	while (piece && (r = runs_next(&runs, &run)) > 0) {
		if (!lines_scan(&lines, h, &run, position, piece, &carriage)) {
			r = -1;
			break;
		}
		position += run.n;
	}
	free(piece);
	if (!piece || r < 0 || position != total || !lines_add(&lines, total)) {
		lines_fini(&lines);
		return false;
	}
	lines_trim(&lines);
	*ret = lines;
	return true;
}

/* Flags of a ScopeInfo since it is an object of its own. */
#define SCOPE_CLASS    (1u << 10) /* a word for a class's variable */
#define SCOPE_FUNCTION (3u << 12) /* two words: name and slot of the function's variable */
#define SCOPE_INFERRED (1u << 14) /* a word: the name that V8 has inferred */

#define SCOPE_WORDS 8

struct scope {
	const struct heap *h;
	uint64_t object;
	uint64_t words[SCOPE_WORDS]; /* behind its locals */
	uint32_t n;
	uint32_t flags;
};

/* Where its words behind the locals begin; 0: it is not to be read. Each local has its name and a
 * small integer; many locals keep their names in one table. */
static uint32_t scope_first(const struct scope *s)
{
	const struct heap *h = s->h;
	uint32_t first = h->binary->scope_first, base = h->binary->scope_base;
	uint64_t locals, word;

	if (!heap_word(h, s->object, base + 16, &locals) || !heap_is_small(locals))
		return 0;
	locals >>= 32;
	if (locals > LOCALS)
		return 0;
	if (locals == 0)
		return first;
	if (!heap_word(h, s->object, base + 8 * first, &word))
		return 0;
	if (heap_is_small(word)) { /* how many variables a module has */
		first++;
		if (!heap_word(h, s->object, base + 8 * first, &word))
			return 0;
	}
	if (locals >= INLINE_LOCALS && !heap_is_string(h, word))
		return first + 1 + (uint32_t)locals;
	return first + 2 * (uint32_t)locals;
}

static bool scope_read(struct scope *s)
{
	uint32_t first = scope_first(s), base = s->h->binary->scope_base, room = SCOPE_WORDS;
	uint64_t word;

	if (first == 0 || !heap_word(s->h, s->object, base, &word))
		return false;
	/* A small integer, or 32 bits. */
	s->flags = (uint32_t)(heap_is_small(word) ? word >> 32 : word);
	if (base == ARRAY_ELEMENTS) { /* it is an array and knows its length */
		if (!heap_word(s->h, s->object, ARRAY_LENGTH, &word) || word >> 32 < first)
			return false;
		if ((word >> 32) - first < room)
			room = (uint32_t)(word >> 32) - first;
	}
	/* It may be the last object of its page. */
	for (s->n = 0; s->n < room; s->n++)
		if (!heap_word(s->h, s->object, base + 8 * (first + s->n), &s->words[s->n]))
			break;
	return true;
}

static bool scope_is_range(const struct scope *s, uint32_t at)
{
	return at + 1 < s->n && heap_is_small(s->words[at]) && heap_is_small(s->words[at + 1]) &&
	       (int64_t)s->words[at] >= 0 && s->words[at] <= s->words[at + 1] &&
	       s->words[at + 1] >> 32 <= HEAP_SOURCE;
}

static void scope_name(const struct scope *s, uint32_t at, struct heap_scope *ret)
{
	if (ret->n_name == 0 && at < s->n &&
	    !heap_name(s->h, s->words[at], ret->name, sizeof(ret->name), &ret->n_name))
		ret->torn = true;
}

/* Name, inferred name and range from where they are if `at` is the first of them. */
static bool scope_take(const struct scope *s, uint32_t at, struct heap_scope *ret)
{
	bool named = (s->flags & SCOPE_FUNCTION) != 0, inferred = (s->flags & SCOPE_INFERRED) != 0;
	uint32_t range = at + 2u * named + inferred;

	if (ret->start < 0) {
		if (!scope_is_range(s, range))
			return false;
		ret->start = (int32_t)(s->words[range] >> 32);
		ret->end = (int32_t)(s->words[range + 1] >> 32);
	}
	if (named)
		scope_name(s, at, ret);
	if (inferred)
		scope_name(s, at + 2u * named, ret);
	return true;
}

/* Before 9, where the flags are others: the first string, and the first range behind it. */
static void scope_scan(const struct scope *s, struct heap_scope *ret)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (ret->start < 0 && s->words[i] != 0 && scope_is_range(s, i)) {
			ret->start = (int32_t)(s->words[i] >> 32);
			ret->end = (int32_t)(s->words[i + 1] >> 32);
			return;
		}
		if (!heap_is_small(s->words[i]))
			scope_name(s, i, ret);
	}
}

bool heap_scope(const struct heap *h, uint64_t name_or_scope, struct heap_scope *ret)
{
	struct scope s = {.h = h, .object = name_or_scope};
	const struct v8_binary *b = h->binary;
	uint32_t at;
	uint64_t range[2];

	ret->n_name = 0;
	ret->torn = false;
	ret->start = ret->end = -1;
	if (!heap_is(h, name_or_scope, b->types.scope))
		return heap_name(h, name_or_scope, ret->name, sizeof(ret->name), &ret->n_name);
	if (!scope_read(&s))
		return false;
	if (b->scope_base == ARRAY_ELEMENTS) {
		scope_scan(&s, ret);
		return !ret->torn;
	}
	if (b->scope_first >= 5 && heap_word(h, name_or_scope, b->scope_base + 24, &range[0]) &&
	    heap_word(h, name_or_scope, b->scope_base + 32, &range[1])) {
		ret->start = (int32_t)(range[0] >> 32);
		ret->end = (int32_t)(range[1] >> 32);
	}
	at = (s.flags & SCOPE_CLASS) ? 1 : 0;
	/* Some versions have a word more, for the receiver. */
	if (!scope_take(&s, at, ret))
		scope_take(&s, at + 1, ret);
	return !ret->torn;
}
