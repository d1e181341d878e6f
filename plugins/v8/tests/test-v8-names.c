/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that keep what was read: ends of lines, names, and a process's code; and texts. */
#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

#include "v8/lines.h"
#include "v8/mappings.h"
#include "v8/names.h"
#include "v8/v8-heap.h"

/* Each position is in the line that it was put into, whatever lengths lines have. */
TEST(positions_have_their_lines)
{
	struct lines l = {0};
	uint32_t ends[1000], end = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		end += i % 7 == 0 ? 100000 : 1 + i % 200;
		ends[i] = end;
		expect(lines_add(&l, end));
	}
	lines_trim(&l);
	expect_eq(lines_find(&l, 0), 1);
	for (uint32_t i = 0; i < 1000; i++) {
		expect_eq(lines_find(&l, ends[i]), i + 1);
		expect_eq(lines_find(&l, ends[i] + 1), i < 999 ? i + 2 : 0);
	}
	expect(lines_bytes(&l) < 2500);
	lines_fini(&l);
}

/* A script of nothing but line feeds costs no more than any other. */
TEST(lines_are_bounded)
{
	struct lines l = {0};
	uint32_t n = 0;

	while (n < (64u << 20) && lines_add(&l, n))
		n++;
	expect(n < (1u << 20));
	expect(lines_bytes(&l) <= LINES_BYTES);
	lines_fini(&l);
}

static void put_of(struct names *n, uint64_t process_id, uint64_t id, size_t n_name)
{
	struct names_function *f = calloc(1, sizeof(*f));

	expect(f);
	f->entry.id = id;
	f->entry.process_id = process_id;
	f->name = malloc(n_name + 1);
	expect(f->name);
	memset(f->name, 'a', n_name);
	f->name[n_name] = '\0';
	names_put_function(n, f);
}

static void put_function(struct names *n, uint64_t id, size_t n_name)
{
	put_of(n, 0, id, n_name);
}

static void put_code(struct names *n, uint64_t process_id, uint64_t start, uint64_t end,
		     uint64_t compilation)
{
	struct names_code *c = calloc(1, sizeof(*c));

	expect(c);
	c->entry.id = v8_mix(process_id, start);
	c->process_id = process_id;
	c->code = (struct code){.start = start, .end = end, .compilation = compilation};
	names_put_code(n, c);
}

/* All bytes are counted, and what was used last stays. */
TEST(names_are_bounded_and_the_used_ones_stay)
{
	struct names *n = names_new();

	expect(n);
	for (uint64_t id = 1; id < 200000; id++) {
		put_function(n, id, id % 200);
		put_code(n, id % 3, id * 64, id * 64 + 32, 1);
		expect(n->bytes <= NAMES_BYTES + sizeof(void *) * NAMES_CODES);
		expect(names_function(n, 1));
	}
	expect(n->n_evicted > 100000);
	expect(!names_function(n, 2));
	names_free(n);
}

/* A process that fills the cache has all of it while it is alone, and loses its own then. */
TEST(process_loses_its_own)
{
	struct names *n = names_new();

	expect(n);
	for (uint64_t id = 1; id < 1000; id++) {
		put_of(n, 1, id, 100000);
		expect(names_function(n, id));
		for (uint64_t k = 0; id == 500 && k < 100; k++)
			put_of(n, 2, 10000 + k, 100);
	}
	expect(n->bytes > NAMES_BYTES - 200000);
	for (uint64_t k = 0; k < 100; k++)
		expect(names_function(n, 10000 + k));
	names_free(n);
}

/* An entry that is put again is counted once. */
TEST(a_name_that_is_read_again_costs_nothing)
{
	struct names *n = names_new();
	uint64_t bytes;

	expect(n);
	put_function(n, 7, 100);
	bytes = n->bytes;
	for (int i = 0; i < 100; i++)
		put_function(n, 7, 100);
	expect_eq(n->bytes, bytes);
	names_free(n);
}

/* Code is found by its addresses in its own process, and other code there takes its place. */
TEST(code_replaces_what_was_there)
{
	struct names *n = names_new();
	struct names_code *c;

	expect(n);
	put_code(n, 1, 0x1000, 0x1100, 5);
	put_code(n, 1, 0x1200, 0x1300, 6);
	put_code(n, 2, 0x1000, 0x1800, 7);
	c = names_code(n, 1, 0x1080);
	expect(c && c->code.compilation == 5 && !c->replaced);
	expect(!names_code(n, 1, 0x1180));
	expect(!names_code(n, 3, 0x1080));
	put_code(n, 1, 0x10c0, 0x1240, 8);
	c = names_code(n, 1, 0x10c0);
	expect(c && c->code.compilation == 8 && c->replaced);
	expect(!names_code(n, 1, 0x1010));
	expect_eq(n->n_codes, 2);
	names_free(n);
}

/* Code with a table, to which objects belong that the collector moves. */
static void put_moved(struct names *n, uint64_t compilation, uint8_t table)
{
	struct names_code *c = calloc(1, sizeof(*c));

	expect(c);
	c->entry.id = c->process_id = 1;
	c->code = (struct code){.start = 0x1000, .end = 0x1100, .compilation = compilation};
	c->code.positions = calloc(1, 1);
	expect(c->code.positions);
	c->code.positions[0] = table;
	c->code.n_positions = 1;
	names_put_code(n, c);
}

/* Samples of code are its own also where what it has was moved several times before they are
 * named; those of other code at its addresses are not. */
TEST(code_is_known_though_it_moves)
{
	struct names *n = names_new();
	struct names_code *c;

	expect(n);
	for (uint64_t i = 1; i <= NAMES_MOVES + 2; i++)
		put_moved(n, i, 7);
	put_moved(n, NAMES_MOVES + 2, 7);
	c = names_code(n, 1, 0x1080);
	expect(c && !c->replaced && !names_code_has(c, 1));
	for (uint64_t i = 2; i <= NAMES_MOVES + 2; i++)
		expect(names_code_has(c, i));
	put_moved(n, 100, 8);
	c = names_code(n, 1, 0x1080);
	expect(c && c->replaced && names_code_has(c, 100) && !names_code_has(c, NAMES_MOVES + 2));
	names_free(n);
}

static uint32_t segment_of(const struct v8_process *p, uint64_t pc)
{
	uint32_t at = 0;

	while (at + 1 < V8_SEGMENTS && p->segments[at + 1] >> 8 <= pc)
		at++;
	return (uint32_t)(p->segments[at] & 7);
}

/* Thirty isolates, each with a copy of the builtins in its region, are all code. */
TEST(regions_of_many_threads_are_segments)
{
	struct v8_binary b = {.blob = 0x10000, .blob_bytes = 0x2000};
	struct andiron_runtime_mapping list[100] = {{0x10000, 0x14000, 0x10000, 1}};
	struct mappings m = {0};
	struct v8_process p;
	uint64_t n = 1;

	for (uint64_t i = 1; i <= 30; i++) {
		uint64_t from = i << 32;

		list[n++] = (struct andiron_runtime_mapping){from, from + 0x1000, from, 0};
		list[n++] =
			(struct andiron_runtime_mapping){from + 0x1000, from + 0x3000, 0x10000, 1};
		list[n++] = (struct andiron_runtime_mapping){from + 0x3000, from + 0x4000,
							     from + 0x3000, 0};
	}
	expect(!mappings_update(&m, &b, 1, list, n));
	for (uint32_t i = 1; i <= 30; i++)
		m.code[m.n_code++] =
			(struct v8_range){(uint64_t)i << 32, ((uint64_t)i << 32) + 0x8000};
	expect(mappings_update(&m, &b, 1, list, n));
	mappings_add_rest(&m, list, n);
	mappings_segments(&m, &p);
	expect_eq(m.n_code, 30);
	expect_eq(m.n_blobs, 31);
	for (uint64_t i = 1; i <= 30; i++) {
		expect_eq(segment_of(&p, (i << 32) - 1), V8_IN_NONE);
		expect_eq(segment_of(&p, (i << 32) + 0xfff), V8_IN_CODE);
		expect_eq(segment_of(&p, (i << 32) + 0x2fff), V8_IN_BLOB);
		expect_eq(segment_of(&p, (i << 32) + 0x3000), V8_IN_CODE);
		expect_eq(segment_of(&p, (i << 32) + 0x8000), V8_IN_NONE);
	}
	expect_eq(segment_of(&p, 0x11fff), V8_IN_BLOB);
	expect_eq(segment_of(&p, 0x12000), V8_IN_NONE);
	/* An isolate that ended: samples of its builtins are still named. */
	expect(mappings_update(&m, &b, 1, list, n - 3));
	mappings_segments(&m, &p);
	expect_eq(m.n_code, 29);
	expect_eq(m.n_blobs, 31);
	expect_eq(m.n_gone, 1);
	expect_eq(m.blobs[30].from, (30ull << 32) + 0x1000);
	expect_eq(segment_of(&p, (30ull << 32) + 0x1fff), V8_IN_NONE);
	/* Something else is in its place. */
	list[n - 3].limit = list[n - 3].start + 0x2000;
	expect(!mappings_update(&m, &b, 1, list, n - 2));
	expect_eq(m.n_blobs, 30);
	expect_eq(m.n_gone, 0);
}

/* A heap of some words from address 0x1000 on. */
static uint64_t words[64];

static bool words_read(void *context, uint64_t address, void *ret, size_t n)
{
	uint64_t at = address - 0x1000;

	if (at > sizeof(words) || n > sizeof(words) - at)
		return false;
	memcpy(ret, (const char *)words + at, n);
	return true;
}

/* A string of this type with `n` characters at the word `at`; its pointer. */
static uint64_t put_string(uint32_t at, uint16_t type, uint32_t n, const void *rest, size_t bytes)
{
	uint32_t map = at + 8;

	words[at] = 0x1000 + 8 * map + 1;
	words[at + 1] = (uint64_t)n << 32;
	memcpy(&words[at + 2], rest, bytes);
	memcpy((char *)&words[map] + 12, &type, sizeof(type));
	return 0x1000 + 8 * at + 1;
}

/* Lines end at "\n", "\r\n" and "\r", also where a text's parts divide them. */
TEST(lines_end_at_their_characters)
{
	static const char text[] = "a\nbb\r\ncc\rd\te", line_of[] = "112222333444";
	struct v8_memory memory = {words_read, NULL, NULL, 1000};
	struct v8_binary binary = {.layout.map_type = 12};
	struct heap h = {&memory, &binary};
	uint32_t n = sizeof(text) - 1;

	for (uint32_t cut = 0; cut <= n; cut++) {
		uint64_t parts[2] = {put_string(0, 8, cut, text, cut),
				     put_string(10, 8, n - cut, text + cut, n - cut)};
		struct lines l;

		expect(heap_lines(&h, put_string(20, 1, n, parts, sizeof(parts)), &l));
		for (uint32_t at = 0; at < n; at++)
			expect_eq(lines_find(&l, at), line_of[at] - '0');
		lines_fini(&l);
	}
}

/* A text is the same whatever it is made of: parts of one or two bytes, also where they divide a
 * character. What is too long ends in "…", between characters. */
TEST(strings_are_text)
{
	static const uint16_t high[] = {0x20ac, 0xd83d}, low[] = {0xde00, 0xd800, 0};
	struct v8_memory memory = {words_read, NULL, NULL, 1000};
	struct v8_binary binary = {.layout.map_type = 12};
	struct heap h = {&memory, &binary};
	uint64_t parts[2], inner[2];
	char text[32];
	size_t n;

	parts[0] = put_string(0, 0, 2, high, sizeof(high));
	inner[0] = put_string(10, 0, 3, low, sizeof(low));
	inner[1] = put_string(20, 8, 2, "z\xe9", 2);
	parts[1] = put_string(30, 1, 5, inner, sizeof(inner));
	expect(heap_name(&h, put_string(40, 1, 7, parts, sizeof(parts)), text, sizeof(text), &n));
	text[n] = '\0';
	expect(strcmp(text, "\u20ac\U0001f600\ufffd\ufffdz\u00e9") == 0);
	expect(heap_name(&h, 0x1000 + 8 * 40 + 1, text, 12, &n));
	text[n] = '\0';
	expect(strcmp(text, "\u20ac\U0001f600\u2026") == 0);
}

/* Where the collector has moved a part of a text there is no name, and not an empty one. */
TEST(texts_that_move_are_not_empty)
{
	struct v8_memory memory = {words_read, NULL, NULL, 1000};
	struct v8_binary binary = {.layout.map_type = 12};
	struct heap h = {&memory, &binary};
	uint64_t parts[2] = {put_string(0, 8, 2, "ab", 2), put_string(10, 8, 2, "cd", 2)};
	uint64_t both = put_string(20, 1, 4, parts, sizeof(parts));
	char text[32];
	size_t n;

	expect(heap_name(&h, both, text, sizeof(text), &n) && n == 4);
	expect(heap_name(&h, 0, text, sizeof(text), &n) && n == 0);
	words[10] = 0x2000;
	expect(!heap_name(&h, both, text, sizeof(text), &n) && n == 0);
	words[20] = 0x2000;
	expect(!heap_name(&h, both, text, sizeof(text), &n) && n == 0);
}

static bool read_types(void *context, uint64_t address, void *ret, size_t n)
{
	uint64_t word = address == 0x100000 ? 0x203001 : 7; /* an object of a type, or the type */

	memcpy(ret, &word, n);
	return n <= sizeof(word);
}

static void tell(void *context, const uint64_t *at, uint32_t n)
{
	uint64_t *told = context;

	for (uint32_t i = 0; i < n; i++)
		told[i] = at[i];
}

/* What is announced brings the pages along in which the types are; each once. */
TEST(types_are_announced_with_objects)
{
	static const struct v8_binary binary;
	uint64_t told[MEMORY_TELL + MEMORY_MAPS + MEMORY_NEAR] = {0};
	struct v8_memory memory = {read_types, NULL, told, 100, tell, {0}};
	const struct heap h = {&memory, &binary};
	uint16_t type;

	for (int i = 0; i < 2; i++)
		expect(heap_type(&h, 0x100001, &type) && type == 7);
	memory_announce(&memory, (uint64_t[]){0x100001, 0x300001}, 2);
	expect_eq(told[0], 0x100001);
	expect_eq(told[1], 0x300001);
	expect_eq(told[2], 0x203000);
	expect_eq(told[3], 0);
	/* What describes code only with code. */
	memory_note_near(&memory, 0x405008);
	memory_announce(&memory, (uint64_t[]){0x100001}, 1);
	expect_eq(told[1], 0x203000);
	expect_eq(told[1 + MEMORY_MAPS], 0);
	memory_announce_code(&memory, (uint64_t[]){0x100001}, 1);
	expect_eq(told[1 + MEMORY_MAPS], 0x405000);
}

/* Of two codes of one place what is known of the one says nothing of the other, which is read soon,
 * but not at each sample where both are at work in turn. */
TEST(a_place_may_have_two_codes)
{
	const struct v8_place_state unread = {.again_ns = 5};
	const struct v8_place_state known = {V8_KNOWN_NS, 0x1000, 7, 0x1040, 0x1200};
	const struct v8_place_state torn = {.again_ns = V8_AGAIN_NS, .header = 0x1000};

	expect(v8_place_has(&known, 0x1040) && v8_place_has(&known, 0x1200));
	expect(!v8_place_has(&known, 0x103f) && !v8_place_has(&known, 0x1201));
	expect(v8_place_has(&unread, 0x1201));
	expect(v8_place_is_new(&known, V8_OTHER_NS - 1) && !v8_place_is_new(&known, V8_OTHER_NS));
	expect(v8_place_is_new(&torn, V8_OTHER_NS - 1) && !v8_place_is_new(&torn, V8_OTHER_NS));
	expect(!v8_place_is_new(&torn, V8_AGAIN_NS) && !v8_place_is_new(&unread, 0));
}
