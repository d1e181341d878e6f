/* SPDX-License-Identifier: Apache-2.0 */
/* Walks recorded states of V8 (state.h) as they were walked when they were recorded, and damages
 * them: whatever registers and memory say, walks end, reads stay in bounds and names have a
 * terminator. */
#include "state.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <zstd.h>

#include "testing/test.h"

#define UNPACKED (256u << 20)
#define EDGES    64u

static struct image {
	const struct state_range *ranges;
	uint32_t n_ranges;
	const uint8_t *bytes;
	uint64_t damage; /* 0: none. Else the state of a generator of random numbers */
	uint32_t reads;
	uint64_t edges[EDGES]; /* nothing behind them is read together with what is before */
	uint32_t n_edges;
	uint64_t moving; /* an object that the collector moves: its first word says where to */
} image;

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Now and then a word is another, small, an address near it, or one from elsewhere. */
static void damage(uint8_t *bytes, size_t n)
{
	uint64_t r = random_next(&image.damage), word, i;

	if (r % 16 != 0 || n < 8)
		return;
	i = (r >> 8) % (n / 8);
	memcpy(&word, bytes + 8 * i, 8);
	switch (r >> 4 & 7) {
	case 0:
		word ^= 1ull << (r >> 40 & 63);
		break;
	case 1:
		word += (r >> 40 & 255) - 128;
		break;
	case 2:
		word = r;
		break;
	case 3:
		word = r << 32;
		break;
	case 4:
		word = image.ranges[r % image.n_ranges].start | 1;
		break;
	default:
		word = ~0ull >> (r >> 40 & 63);
	}
	memcpy(bytes + 8 * i, &word, 8);
}

static void image_refresh(void *context)
{
}

static bool image_read(void *context, uint64_t address, void *ret, size_t n)
{
	image.reads++;
	for (uint32_t i = 0; i < image.n_edges; i++)
		if (address < image.edges[i] && image.edges[i] - address < n)
			return false;
	for (uint32_t i = 0; i < image.n_ranges; i++) {
		const struct state_range *r = &image.ranges[i];

		if (address < r->start || address - r->start > r->n ||
		    n > r->n - (address - r->start))
			continue;
		memcpy(ret, image.bytes + r->at + (address - r->start), n);
		if (image.moving >= address && image.moving - address < n)
			memset((char *)ret + (image.moving - address), 0, 1); /* no pointer's tag */
		if (image.damage)
			damage(ret, n);
		return true;
	}
	return false;
}

struct state {
	struct state_head head;
	const struct state_range *ranges;
	const uint8_t *bytes;
	const char *text;
};

struct states {
	char *data;
	size_t n;
	struct v8_binary binary;
	struct state *states;
	uint32_t n_states;
};

static char *file_read(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rbe");
	char *packed = malloc(UNPACKED / 8), *data;
	size_t n, size;

	expect(f && packed);
	n = fread(packed, 1, UNPACKED / 8, f);
	fclose(f);
	size = (size_t)ZSTD_getFrameContentSize(packed, n);
	expect(size > sizeof(struct state_file) && size < UNPACKED);
	data = malloc(size);
	expect(data && ZSTD_decompress(data, size, packed, n) == size);
	free(packed);
	*ret_n = size;
	return data;
}

static void states_read(struct states *s, const char *path)
{
	struct state_file head;
	const char *p;

	*s = (struct states){.data = file_read(path, &s->n)};
	p = s->data;
	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	expect_eq(head.magic, STATE_MAGIC);
	s->binary = head.binary;
	if (head.n_sizes > 0) {
		s->binary.sizes = malloc(3ull * head.n_sizes);
		expect(s->binary.sizes);
		memcpy(s->binary.sizes, p, 3ull * head.n_sizes);
	}
	p += 3ull * head.n_sizes;
	s->n_states = head.n_states;
	s->states = calloc(head.n_states, sizeof(*s->states));
	expect(s->states);
	for (uint32_t i = 0; i < s->n_states; i++) {
		struct state *state = &s->states[i];
		struct state_range *ranges;

		memcpy(&state->head, p, sizeof(state->head));
		p += sizeof(state->head);
		/* Texts before have any length: nothing is aligned. */
		ranges = calloc(state->head.n_ranges, sizeof(*ranges));
		expect(ranges);
		memcpy(ranges, p, state->head.n_ranges * sizeof(*ranges));
		state->ranges = ranges;
		p += state->head.n_ranges * sizeof(*ranges);
		state->bytes = (const uint8_t *)p;
		p += state->head.n_bytes;
		state->text = p;
		p += state->head.n_text;
	}
}

static void states_free(struct states *s)
{
	for (uint32_t i = 0; i < s->n_states; i++)
		free((void *)(uintptr_t)s->states[i].ranges);
	free(s->states);
	free(s->data);
	binary_fini(&s->binary);
}

static bool state_replay(const struct states *s, const struct state *state, char *text)
{
	struct v8_memory memory = {image_read, image_refresh, NULL, ~0ull};

	image.ranges = state->ranges;
	image.n_ranges = state->head.n_ranges;
	image.bytes = state->bytes;
	image.reads = 0;
	return state_walk(&s->binary, &state->head, &memory, text, STATE_TEXT);
}

static uint32_t states_each(void (*each)(const struct states *s, const char *name))
{
	const char *folder = getenv("V8_STATES");
	struct states s;
	struct dirent *e;
	uint32_t n = 0;
	char path[512];
	DIR *d;

	expect(folder);
	d = opendir(folder);
	expect(d);
	while ((e = readdir(d)) != NULL) {
		if (!strstr(e->d_name, ".states"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		states_read(&s, path);
		each(&s, e->d_name);
		n += s.n_states;
		states_free(&s);
	}
	closedir(d);
	return n;
}

static void expect_text(const struct states *s, uint32_t i, const char *name)
{
	const struct state *state = &s->states[i];
	static char text[STATE_TEXT];

	expect(state_replay(s, state, text));
	if (strlen(text) != state->head.n_text || memcmp(text, state->text, state->head.n_text))
		test_fail(__FILE__, __LINE__, "%s, state %u:\n%s\nexpected\n%.*s", name, i, text,
			  (int)state->head.n_text, state->text);
}

static void expect_replayed(const struct states *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_states; i++)
		expect_text(s, i, name);
}

/* A state is walked, and its frames are named, as on the day when it was recorded. */
TEST(recorded_states_have_their_frames)
{
	expect(states_each(expect_replayed) >= 60);
}

/* The same, where each function's object is the last one of its page. */
static void expect_replayed_at_edges(const struct states *s, const char *name)
{
	uint32_t end = s->binary.layout.shared_flags + 8 - 1;

	for (uint32_t i = 0; i < s->n_states; i++) {
		expect_text(s, i, name);
		for (uint32_t k = 0; k < native.n_sightings && k < EDGES; k++)
			image.edges[image.n_edges++] = native.sightings[k].key.shared + end;
		expect(image.n_edges > 0);
		expect_text(s, i, name);
		image.n_edges = 0;
	}
}

/* No more of an object is read than there is. */
TEST(functions_may_end_their_page)
{
	expect(states_each(expect_replayed_at_edges) >= 60);
}

static uint32_t n_renamed; /* functions with a line in baseline code */

static void expect_renamed(const struct states *s, const struct state *state)
{
	struct v8_memory memory = {image_read, image_refresh, NULL, ~0ull};
	struct mappings mappings = state->head.mappings;
	struct frames_process process = {1, &s->binary, mappings.blobs, mappings.n_blobs};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct learning l = {names_new(), &lock, {&memory, &s->binary}, 1, 42};
	char first[1024], then[1024];
	struct v8_place_state place;

	for (uint32_t i = 0; i < native.n_sightings; i++) {
		struct v8_sighting *seen = &native.sightings[i];
		uint64_t where = V8_ADDRESS(seen->code);
		const struct names_code *code;

		learn(&l, seen, &place);
		code = names_code(l.names, 1, seen->code);
		if (!code || code->code.kind != CODE_BASELINE)
			continue;
		state_frames(l.names, &process,
			     V8_WHAT(V8_COMPILED, v8_function_id(42, &seen->key)), where, first,
			     sizeof(first));
		seen->key.flags ^= 1;
		learn(&l, seen, &place);
		state_frames(l.names, &process,
			     V8_WHAT(V8_COMPILED, v8_function_id(42, &seen->key)), where, then,
			     sizeof(then));
		expect(strcmp(first, then) == 0);
		n_renamed += strstr(first, ":0:") == NULL;
	}
	names_free(l.names);
}

static void expect_all_renamed(const struct states *s, const char *name)
{
	static char text[STATE_TEXT];

	for (uint32_t i = 0; i < s->n_states; i++) {
		expect(state_replay(s, &s->states[i], text));
		expect_renamed(s, &s->states[i]);
	}
}

/* A function has another id once one of its flags has changed, and its lines all the same. */
TEST(a_changed_flag_costs_no_lines)
{
	states_each(expect_all_renamed);
	expect(n_renamed > 0);
}

static uint32_t n_counted;

/* malloc may give a few bytes more than it was asked for. */
static void expect_code_counted(const struct code *c)
{
	void *const all[] = {c->positions, c->inlined, c->calls, c->places, c->callees,
			     c->doubts,    c->asides,  c->steps, c->name};
	size_t n = sizeof(all) / sizeof(*all), bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += malloc_usable_size(all[i]);
	expect(bytes <= code_bytes(c) + 24 * n);
	n_counted++;
}

static void expect_counted(const struct states *s, const char *name)
{
	struct v8_memory memory = {image_read, image_refresh, NULL, ~0ull};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct v8_place_state place;
	static char text[STATE_TEXT];

	for (uint32_t i = 0; i < s->n_states; i++) {
		expect(state_replay(s, &s->states[i], text));
		for (uint64_t round = 0; round < 10; round++) {
			struct learning l = {names_new(), &lock, {&memory, &s->binary}, 1, 42};

			image.damage = round * 0x9e3779b97f4a7c15ull;
			for (uint32_t k = 0; k < native.n_sightings; k++)
				learn(&l, &native.sightings[k], &place);
			for (uint32_t k = 0; k < l.names->n_codes; k++)
				expect_code_counted(&l.names->codes[k]->code);
			names_free(l.names);
		}
		image.damage = 0;
	}
}

/* What is kept of code is counted, also where little of it can be read. */
TEST(code_is_counted)
{
	states_each(expect_counted);
	expect(n_counted > 500);
}

static uint32_t n_moving[2];

static void expect_moving(const struct states *s, const struct v8_sighting *seen)
{
	struct v8_memory memory = {image_read, image_refresh, NULL, ~0ull};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct learning l = {names_new(), &lock, {&memory, &s->binary}, 1, 42};
	struct v8_place_state place;
	uint64_t script = names_script_id(42, seen->key.script, seen->key.script_id), source = 0;
	const struct names_script *found;

	image.moving = heap_is_pointer(seen->key.name) ? seen->key.name & ~3ull : 0;
	if (image.moving != 0) {
		learn(&l, seen, &place);
		expect(!names_function(l.names, seen->function));
		n_moving[0]++;
	}
	image.moving = 0;
	l.now_ns = 1ull << 32;
	if (heap_word(&l.heap, seen->key.script, 8, &source) && heap_is_pointer(source)) {
		image.moving = source & ~3ull;
		learn(&l, seen, &place);
		found = names_script(l.names, script);
		expect(!found || (found->n_torn == 1 && found->lines.n == 0));
		image.moving = 0;
		l.now_ns *= 2;
		learn(&l, seen, &place);
		found = names_script(l.names, script);
		expect(!found || found->n_torn == 0);
		n_moving[1] += found && found->lines.n > 0;
	}
	names_free(l.names);
}

static void expect_all_moving(const struct states *s, const char *name)
{
	static struct v8_sighting seen[NATIVE_SIGHTINGS];
	static char text[STATE_TEXT];

	for (uint32_t i = 0; i < s->n_states; i++) {
		expect(state_replay(s, &s->states[i], text));
		memcpy(seen, native.sightings, sizeof(seen));
		for (uint32_t k = 0; k < native.n_sightings; k++)
			if (seen[k].instance == 0)
				expect_moving(s, &seen[k]);
	}
}

/* What the collector is moving is not taken for what has no name or no lines, and is read again. */
TEST(what_moves_is_read_again)
{
	states_each(expect_all_moving);
	expect(n_moving[0] > 100 && n_moving[1] > 100);
}

#define DEEP      UINT64_C(0x7f0000000000) /* where frames of one function follow each other */
#define DEEP_SIZE UINT64_C(1 << 20)

static uint64_t deep_words[8]; /* of a frame, from 48 bytes below its frame pointer on */
static uint64_t deep_other;    /* in what the return address of every other frame differs */
static uint32_t n_deep, n_beside;

static bool deep_read(void *context, uint64_t address, void *ret, size_t n)
{
	uint64_t at = address - (DEEP - 48);

	if (at >= DEEP_SIZE)
		return image_read(context, address, ret, n);
	for (uint64_t i = at; i < at + n; i++) {
		uint64_t word = deep_words[i / 8 % 8];

		if (i / 8 % 8 == 6) /* the caller's frame pointer */
			word = DEEP - 48 + i / 8 * 8 + 16 + 48;
		if (i / 8 % 8 == 7 && i / 64 % 2 == 1)
			word ^= deep_other;
		((uint8_t *)ret)[i - at] = (uint8_t)(word >> i % 8 * 8);
	}
	return true;
}

/* Walks a recursion of the function whose frame a state stands in, if V8 has called it. */
static bool deep_walk(const struct states *s, uint32_t i, struct v8_memory *memory)
{
	const struct state_head *head = &s->states[i].head;
	static char text[STATE_TEXT];

	expect(state_replay(s, &s->states[i], text));
	if (!image_read(NULL, head->regs[V8_FP] - 48, deep_words, sizeof(deep_words)) ||
	    !(deep_words[5] & 1) || v8_where(&native.scratch, deep_words[7]) == V8_IN_NONE)
		return false;
	native.memory = memory;
	native.walk = (struct andiron_walk){.pid = 1, .known = ~0u, .pc = deep_words[7]};
	native.walk.regs[V8_FP] = DEEP;
	native.walk.regs[V8_SP] = DEEP - 48;
	v8_walk(0, &native.walk);
	return true;
}

static void expect_deep(const struct states *s, const char *name)
{
	struct v8_memory memory = {deep_read, image_refresh, NULL, ~0ull};

	for (uint32_t i = 0; i < s->n_states; i++) {
		if (!deep_walk(s, i, &memory))
			continue;
		n_deep++;
		expect(native.walk.n_words + 2 > ANDIRON_WALK_WORDS);
	}
}

/* A recursion of any depth is walked until the stack has no more room, which its end then says. */
TEST(deep_recursions_fill_a_stack)
{
	states_each(expect_deep);
	expect(n_deep >= 20);
}

/* Frames of each half of the place that they return to, which is known to have two codes. */
static void expect_beside(const struct states *s, const char *name)
{
	struct v8_memory memory = {deep_read, image_refresh, NULL, ~0ull};
	const struct andiron_walk *w = &native.walk;

	deep_other = 1u << (V8_PAGE - 1);
	for (uint32_t i = 0; i < s->n_states; i++) {
		uint64_t at;

		if (!deep_walk(s, i, &memory) ||
		    v8_where(&native.scratch, deep_words[7]) != V8_IN_CODE)
			continue;
		at = deep_words[7] & ~((1ull << V8_PAGE) - 1);
		native.known[0] = (struct v8_place_state){0, 1, 5, at, at + deep_other - 1};
		native.known[1] =
			(struct v8_place_state){0, 1, 6, at + deep_other, at + 2 * deep_other - 1};
		deep_walk(s, i, &memory);
		for (uint32_t k = 0; k < w->n_words; k += 2)
			if (V8_KIND(w->frames[k]) == V8_COMPILED) {
				expect_eq(V8_COMPILATION(w->frames[k + 1]),
					  w->frames[k + 1] & deep_other ? 6 : 5);
				n_beside++;
			}
		memset(native.known, 0, sizeof(native.known));
	}
	deep_other = 0;
}

/* A recursion may run in code of one function that stands beside what it replaces: each frame says
 * which it is in. */
TEST(codes_of_a_place_are_told_apart_in_a_stack)
{
	states_each(expect_beside);
	expect(n_beside >= 1000);
}

#define ROUNDS 100

static void survive_damage(const struct states *s, const char *name)
{
	static char text[STATE_TEXT];

	for (uint32_t i = 0; i < s->n_states; i++)
		for (uint64_t round = 1; round <= ROUNDS; round++) {
			struct state state = s->states[i];
			uint64_t r;

			image.damage = round * 0x9e3779b97f4a7c15ull + i;
			r = random_next(&image.damage);
			if (round % 4 == 0)
				state.head.regs[r & 7] ^= 1ull << (r >> 8 & 47);
			if (round % 6 == 0)
				state.head.pc += (r >> 16 & 255) - 128;
			state_replay(s, &state, text);
			expect(image.reads < 20000000);
		}
	image.damage = 0;
}

/* Whatever memory says, a walk ends and touches nothing but what it was given. */
TEST(damaged_states_do_no_harm)
{
	states_each(survive_damage);
}
