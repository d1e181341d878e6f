/* SPDX-License-Identifier: Apache-2.0 */
/* The table of code has what a function's newest code is. Older code that still runs is in no
 * entry, so it has no name, and never another's.
 *
 * All that is read belongs to the process and may be forged: reads and loops are bounded. */
#include "v8/code/wasm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime-kit/text.h"

#define INSTANCE_BYTES 256u /* members that may lead to the module's object */
#define OBJECT_BYTES   64u
#define FOREIGN_DATA   8u  /* an object of V8's with an address */
#define MANAGED_SHARED 24u /* behind that: a shared_ptr */
#define NATIVE_WORDS   80u /* of a NativeModule */
#define CODE_WORDS     8u  /* of a WasmCode */
#define CODE_SIZE      (1u << 24)
#define FUNCTIONS      65536u
#define CODES          16384u /* that are looked at */
#define SURE           8u     /* so many that count up are enough */
#define MODULE_BYTES   (1u << 30)
#define SECTIONS       1000u
#define CHUNK          512u
#define NAME           256u

struct module {
	const struct heap *h;
	uint64_t native, words[NATIVE_WORDS];
	uint64_t bytes, n_bytes;
	uint32_t n_imported, n_functions;
	uint64_t exports, exports_end, names, names_end; /* from `bytes`; 0: there are none */
};

/* A member of an object that has this type. */
static bool member_find(const struct heap *h, uint64_t object, uint32_t bytes, uint16_t type,
			uint64_t *ret)
{
	uint64_t word;

	for (uint32_t at = 8; at < bytes; at += 8)
		if (heap_word(h, object, at, &word) && heap_is(h, word, type)) {
			*ret = word;
			return true;
		}
	return false;
}

/* The module's object. Since V8 12 a frame has what belongs to an instance in place of it. */
static bool module_object(const struct heap *h, uint64_t instance, uint64_t *ret)
{
	uint16_t type = h->binary->types.wasm_module;
	uint64_t word;

	if (member_find(h, instance, INSTANCE_BYTES, type, ret))
		return true;
	for (uint32_t at = 8; at < INSTANCE_BYTES; at += 8)
		if (heap_word(h, instance, at, &word) && heap_is_pointer(word) &&
		    member_find(h, word, OBJECT_BYTES, type, ret))
			return true;
	return false;
}

static bool is_place(uint64_t word)
{
	return word != 0 && (word & 7) == 0;
}

static bool module_native(struct module *m, uint64_t instance)
{
	const struct heap *h = m->h;
	uint64_t object, script, foreign, data, shared;

	return h->binary->types.has_wasm_module && h->binary->script_native != 0 &&
	       module_object(h, instance, &object) &&
	       member_find(h, object, OBJECT_BYTES, h->binary->types.script, &script) &&
	       heap_word(h, script, h->binary->script_native, &foreign) &&
	       heap_word(h, foreign, FOREIGN_DATA, &data) && is_place(data) &&
	       memory_word(h->memory, data + MANAGED_SHARED, &shared) && is_place(shared) &&
	       memory_word(h->memory, shared, &m->native) && is_place(m->native) &&
	       memory_read(h->memory, m->native, m->words, sizeof(m->words));
}

static bool module_bytes(struct module *m)
{
	static const char begin[8] = {'\0', 'a', 's', 'm', 1, 0, 0, 0};
	uint64_t slice[2];
	char bytes[sizeof(begin)];

	for (uint32_t i = 0; i < NATIVE_WORDS; i++) {
		if (!is_place(m->words[i]) ||
		    !memory_read(m->h->memory, m->words[i], slice, sizeof(slice)) ||
		    slice[1] < sizeof(begin) || slice[1] > MODULE_BYTES ||
		    !memory_read(m->h->memory, slice[0], bytes, sizeof(bytes)) ||
		    memcmp(bytes, begin, sizeof(begin)) != 0)
			continue;
		m->bytes = slice[0];
		m->n_bytes = slice[1];
		return true;
	}
	return false;
}

/* Bytes of the module in their order. What is not there is 0, and `is_bad` is set. */
struct cursor {
	const struct module *m;
	uint64_t at, end; /* from the module's first byte */
	uint64_t chunk;
	uint32_t n_chunk;
	bool is_bad;
	uint8_t bytes[CHUNK];
};

static void cursor_set(struct cursor *c, uint64_t at, uint64_t end)
{
	c->at = at;
	c->end = end;
	c->is_bad |= at > end || end > c->m->n_bytes;
}

static bool cursor_read(struct cursor *c, void *ret, size_t n)
{
	if (c->is_bad || n > c->end - c->at ||
	    !memory_read(c->m->h->memory, c->m->bytes + c->at, ret, n)) {
		c->is_bad = true;
		return false;
	}
	c->at += n;
	return true;
}

static uint8_t cursor_byte(struct cursor *c)
{
	uint64_t n;

	if (c->is_bad || c->at >= c->end) {
		c->is_bad = true;
		return 0;
	}
	if (c->n_chunk == 0 || c->at < c->chunk || c->at - c->chunk >= c->n_chunk) {
		n = c->m->n_bytes - c->at;
		c->chunk = c->at;
		c->n_chunk = n < CHUNK ? (uint32_t)n : CHUNK;
		if (!memory_read(c->m->h->memory, c->m->bytes + c->at, c->bytes, c->n_chunk)) {
			c->n_chunk = 0;
			c->is_bad = true;
			return 0;
		}
	}
	return c->bytes[c->at++ - c->chunk];
}

static uint64_t cursor_number(struct cursor *c)
{
	uint64_t value = 0;

	for (uint32_t shift = 0; shift < 70; shift += 7) {
		uint8_t byte = cursor_byte(c);

		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return value;
	}
	c->is_bad = true;
	return 0;
}

static void cursor_skip(struct cursor *c, uint64_t n)
{
	if (c->is_bad || n > c->end - c->at)
		c->is_bad = true;
	else
		c->at += n;
}

/* A type of values: some have a second part. */
static void skip_type(struct cursor *c)
{
	uint8_t byte = cursor_byte(c);

	if (byte == 0x63 || byte == 0x64)
		cursor_number(c);
}

static void skip_limits(struct cursor *c)
{
	uint8_t flags = cursor_byte(c);

	cursor_number(c);
	if (flags & 1)
		cursor_number(c);
	c->is_bad |= flags > 7; /* of proposals that have more behind them */
}

/* How many functions a module imports. */
static uint32_t imports_count(struct cursor *c)
{
	uint64_t n = cursor_number(c);
	uint32_t ret = 0;

	for (uint64_t i = 0; i < n && !c->is_bad; i++) {
		cursor_skip(c, cursor_number(c));
		cursor_skip(c, cursor_number(c));
		switch (cursor_byte(c)) {
		case 0:
			cursor_number(c);
			ret++;
			break;
		case 1:
			skip_type(c);
			skip_limits(c);
			break;
		case 2:
			skip_limits(c);
			break;
		case 3:
			skip_type(c);
			cursor_byte(c);
			break;
		case 4:
			cursor_byte(c);
			cursor_number(c);
			break;
		default:
			c->is_bad = true;
		}
	}
	return ret;
}

/* Whether a section of its own is the one with names. The cursor then stands behind its name. */
static bool is_name_section(struct cursor *c)
{
	char name[4];

	return cursor_number(c) == sizeof(name) && cursor_read(c, name, sizeof(name)) &&
	       memcmp(name, "name", sizeof(name)) == 0;
}

static bool module_sections(struct module *m)
{
	struct cursor c = {.m = m};
	uint64_t at = 8;

	for (uint32_t i = 0; i < SECTIONS && at < m->n_bytes; i++) {
		uint64_t end, size;
		uint8_t id;

		cursor_set(&c, at, m->n_bytes);
		id = cursor_byte(&c);
		size = cursor_number(&c);
		end = c.at + size;
		if (c.is_bad || size > m->n_bytes - c.at)
			return false;
		at = end;
		c.end = end;
		if (id == 0 && is_name_section(&c)) {
			m->names = c.at;
			m->names_end = end;
		} else if (id == 2) {
			m->n_imported = imports_count(&c);
		} else if (id == 3) {
			m->n_functions = (uint32_t)cursor_number(&c);
		} else if (id == 7) {
			m->exports = c.at;
			m->exports_end = end;
		}
		if (c.is_bad && id != 0)
			return false;
		c.is_bad = false;
	}
	return m->n_functions > 0 && m->n_functions <= FUNCTIONS && m->n_imported <= FUNCTIONS;
}

/* Takes so many bytes as a name. */
static bool cursor_name(struct cursor *c, uint64_t n, char *ret)
{
	char bytes[NAME];
	enum text_cut cut = n > sizeof(bytes) ? TEXT_CUT_END : TEXT_WHOLE;

	if (cut == TEXT_CUT_END)
		n = sizeof(bytes);
	if (n == 0 || !cursor_read(c, bytes, n))
		return false;
	ret[text_to_utf8(ret, NAME - 1, bytes, n, TEXT_UTF8, cut)] = '\0';
	return ret[0] != '\0';
}

/* The subsection of functions: each with its index, which rises. */
static bool name_of_names(const struct module *m, uint32_t index, char *ret)
{
	struct cursor c = {.m = m};
	uint64_t size, n, at;

	cursor_set(&c, m->names, m->names_end);
	while (cursor_byte(&c) != 1 && !c.is_bad)
		cursor_skip(&c, cursor_number(&c));
	size = cursor_number(&c);
	if (c.is_bad || size > c.end - c.at)
		return false;
	c.end = c.at + size;
	n = cursor_number(&c);
	for (uint64_t i = 0; i < n && !c.is_bad; i++) {
		at = cursor_number(&c);
		size = cursor_number(&c);
		if (!c.is_bad && at == index)
			return size <= c.end - c.at && cursor_name(&c, size, ret);
		cursor_skip(&c, size);
	}
	return false;
}

static bool name_of_exports(const struct module *m, uint32_t index, char *ret)
{
	struct cursor c = {.m = m}, name = {.m = m};
	uint64_t n, size, kind;

	cursor_set(&c, m->exports, m->exports_end);
	n = cursor_number(&c);
	for (uint64_t i = 0; i < n && !c.is_bad; i++) {
		size = cursor_number(&c);
		cursor_set(&name, c.at, m->exports_end);
		cursor_skip(&c, size);
		kind = cursor_byte(&c);
		if (cursor_number(&c) == index && kind == 0 && !c.is_bad)
			return cursor_name(&name, size, ret);
	}
	return false;
}

static void module_name(const struct module *m, uint32_t index, char *ret)
{
	if ((m->names != 0 && name_of_names(m, index, ret)) ||
	    (m->exports != 0 && name_of_exports(m, index, ret)))
		return;
	snprintf(ret, NAME, "wasm-function[%u]", index);
}

/* A function's code: a WasmCode. It has its NativeModule first, and in V8 8.1 as the seventh. */
static bool native_code(const struct module *m, const uint64_t *words, struct code *ret)
{
	uint64_t size = 0;

	if (words[0] != m->native) {
		ret->start = words[0];
		size = words[6] == m->native ? words[1] : 0;
	} else {
		ret->start = words[1];
		/* Behind one or two addresses: a number of 32 bits, and a small one. */
		for (uint32_t i = 3; i < 5 && size == 0; i++)
			if (words[i] >> 40 == 0 && (uint32_t)words[i] < CODE_SIZE)
				size = (uint32_t)words[i];
	}
	ret->end = ret->start + size - 1; /* code of the next function may follow */
	return size != 0 && size < CODE_SIZE && ret->end >= ret->start;
}

/* Which members of a WasmCode may be its function's index, as all code of a table has it. */
static uint32_t native_indexes(const uint64_t *words, uint32_t index)
{
	return (uint32_t)(words[5] >> 32 == index) | (uint32_t)((uint32_t)words[6] == index) << 1 |
	       (uint32_t)((uint32_t)words[7] == index) << 2;
}

struct table {
	struct code found;
	uint32_t index, n_codes, indexes;
	bool is_found, is_over;
};

/* Looks at an entry; false: it is no code, so the table is none. */
static bool table_entry(const struct module *m, uint64_t seed, uint64_t pc, uint64_t entry,
			uint32_t index, struct table *t)
{
	uint64_t words[CODE_WORDS];
	struct code code = {.header = entry};

	if (!is_place(entry) || !memory_read(m->h->memory, entry, words, sizeof(words)) ||
	    !native_code(m, words, &code))
		return false;
	t->indexes &= native_indexes(words, index);
	if (pc >= code.start && pc <= code.end) {
		t->found = code;
		t->found.compilation = v8_compilation(seed, (const __u64 *)words);
		t->index = index;
		t->is_found = true;
	}
	t->is_over = ++t->n_codes >= CODES || (t->is_found && t->n_codes >= SURE);
	return t->indexes != 0;
}

static bool table_read(const struct module *m, uint64_t seed, uint64_t pc, uint64_t place,
		       struct table *t)
{
	uint64_t entries[CHUNK];

	*t = (struct table){.indexes = ~0u};
	for (uint32_t at = 0; at < m->n_functions && !t->is_over; at += CHUNK) {
		uint32_t n = m->n_functions - at < CHUNK ? m->n_functions - at : CHUNK;

		if (!memory_read(m->h->memory, place + 8ull * at, entries, 8ull * n))
			return false;
		for (uint32_t i = 0; i < n && !t->is_over; i++)
			if (entries[i] != 0 &&
			    !table_entry(m, seed, pc, entries[i], m->n_imported + at + i, t))
				return false;
	}
	return t->is_found;
}

bool wasm_read(const struct heap *h, uint64_t seed, const struct v8_sighting *s, struct code *ret)
{
	struct module m = {.h = h};
	struct table t;
	char name[NAME];

	if (!module_native(&m, s->instance) || !module_bytes(&m) || !module_sections(&m))
		return false;
	for (uint32_t i = 0; i < NATIVE_WORDS; i++) {
		if (!is_place(m.words[i]) || !table_read(&m, seed, s->code, m.words[i], &t))
			continue;
		module_name(&m, t.index, name);
		*ret = t.found;
		ret->kind = CODE_WASM;
		ret->name = strdup(name);
		return ret->name != NULL;
	}
	return false;
}
