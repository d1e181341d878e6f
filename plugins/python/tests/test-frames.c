/* SPDX-License-Identifier: Apache-2.0 */
/* Replays recorded states of interpreters: registers, and the memory that a walk reads. Each state
 * has beside it what the interpreter said of its frames. Then the same over forged memory. */
#include "python/lines.h"
#include "python/names.h"

#include "python/tests/world.h"

#include "testing/test.h"

#include <dirent.h>
#include <stdio.h>
#include <zlib.h>

/* Any bytes, and in their places those of them that were recorded; 0: some were. */
static int read_around(unsigned char *to, size_t n, uint64_t at)
{
	int ret = 1;

	memset(to, 0xa5, n);
	for (uint32_t i = 0; i < world.state.n_chunks; i++) {
		const struct chunk *c = &world.chunks[i];
		uint64_t from = c->at > at ? c->at : at;
		uint64_t end = c->at + c->n < at + n ? c->at + c->n : at + n;

		if (from >= end)
			continue;
		memcpy(to + (from - at), world.bytes + c->offset + (from - c->at), end - from);
		ret = 0;
	}
	return ret;
}

/* The program may read at once what the recorder read in parts. */
static int world_read(void *to, size_t n, uint64_t at)
{
	size_t done = 0;

	world.n_reads++;
	for (uint32_t i = 0; i < world.state.n_chunks && done < n; i++) {
		const struct chunk *c = &world.chunks[i];
		uint64_t in = at + done - c->at;
		size_t some = in < c->n ? (size_t)(c->n - in) : 0;

		if (some == 0)
			continue;
		some = some < n - done ? some : n - done;
		memcpy((char *)to + done, world.bytes + c->offset + in, some);
		done += some;
		i = UINT32_MAX; /* what is behind it may stand before it in the list */
	}
	if (done == n)
		return 0;
	return world.fills && n > PYTHON_FRAME_SPAN ? read_around(to, n, at) : 1;
}

#define CUT 777777 /* the table had no more bytes */

/* The next state of the file, and what the interpreter said; false: there is none. */
static bool load(gzFile f, char *text, unsigned room)
{
	struct state *s = &world.state;
	int n = gzread(f, s, sizeof(*s));

	if (n == 0)
		return false;
	expect_eq(n, sizeof(*s));
	if (memcmp(s->magic, STATE_MAGIC_TASKS, 8) == 0)
		expect_eq(gzread(f, &world.tasks, sizeof(world.tasks)), sizeof(world.tasks));
	else
		expect(memcmp(s->magic, STATE_MAGIC, 8) == 0);
	expect(s->n_chunks <= WORLD_CHUNKS && s->n_activations <= 64 && s->n_text < room);
	free(world.bytes);
	world.bytes = malloc(s->n_bytes);
	n = (int)(s->n_chunks * sizeof(*world.chunks));
	expect_eq(gzread(f, world.chunks, (unsigned)n), n);
	expect_eq(gzread(f, world.bytes, s->n_bytes), s->n_bytes);
	expect_eq(gzread(f, text, s->n_text), s->n_text);
	text[s->n_text] = '\0';
	return true;
}

/* What was reported, as user space takes it. */
static void take_names(struct name_cache *names, bool forged)
{
	for (size_t at = 0; at < world.n_records;) {
		uint32_t n;

		memcpy(&n, world.records + at, sizeof(n));
		expect(names_add(names, world.records + at + 8, n, NULL) == 0 || forged);
		at += (8 + n + 7) & ~(size_t)7;
	}
}

/* The walk's frames, one a line, as states.py prints them. */
static void print_frames(struct name_cache *names, char *to, size_t room)
{
	size_t used = 0;

	to[0] = '\0';
	name_cache_begin(names);
	for (uint32_t i = 0; i + 2 <= world.walk.n_words; i += 2) {
		uint64_t what = world.walk.frames[i] & PYTHON_ID_MASK;
		struct line_table lines;
		struct name name;
		uint32_t line;

		expect_eq(world.walk.frames[i] >> 56, 3);
		if (what == PYTHON_WHAT_MARKER || !name_cache_find(names, what, &name)) {
			used += (size_t)snprintf(to + used, room - used, "[%d]\n",
						 (int)world.walk.frames[i + 1]);
			continue;
		}
		lines = names_lines(&name);
		line = line_at(&lines, world.walk.frames[i + 1]);
		if (line == 0 && name.extra > name.n_table)
			line = CUT;
		used += (size_t)snprintf(to + used, room - used, "%.*s|%.*s|%u|%u\n",
					 (int)name.n_function, name.function, (int)name.n_file,
					 name.file, line, name.first_line);
		expect(used < room);
	}
}

/* Lines that are equal as far as texts were kept. */
static bool is_same(const char *had, const char *wanted)
{
	while (*had && *had == *wanted && *had != '\n') {
		had++;
		wanted++;
	}
	if (*had == *wanted || strncmp(had, "777777|", 7) == 0)
		return true;
	/* A long name was cut. */
	return strlen(wanted) > 256 && strncmp(had, "…", strlen("…")) == 0;
}

static void compare(const char *path, const char *had, const char *wanted)
{
	for (uint32_t i = 0; strncmp(wanted, "end", 3) != 0; i++) {
		/* A state has the first ones only. */
		if (*had == '\0' && i == 64 && world.state.n_activations == 64)
			return;
		if (!is_same(had, wanted))
			test_fail(path, (int)i, "has %.*s, not %.*s", (int)strcspn(had, "\n"), had,
				  (int)strcspn(wanted, "\n"), wanted);
		had += strcspn(had, "\n");
		wanted += strcspn(wanted, "\n");
		had += *had == '\n';
		wanted += *wanted == '\n';
	}
	expect_str(str_of(had), "");
}

static void each_state(void (*run)(const char *path, const char *text))
{
	static char text[1 << 16];
	const char *folder = getenv("STATES");
	DIR *d = opendir(folder ? folder : "states");
	struct dirent *e;
	int n = 0;

	expect(d);
	while ((e = readdir(d)) != NULL) {
		char path[512];
		gzFile f;

		if (!strstr(e->d_name, ".gz"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder ? folder : "states", e->d_name);
		f = gzopen(path, "rb");
		expect(f);
		while (load(f, text, sizeof(text))) {
			run(path, text);
			n++;
		}
		gzclose(f);
	}
	closedir(d);
	free(world.bytes);
	world.bytes = NULL;
	expect(n >= 60);
}

static void replay(const char *path, const char *text)
{
	static char had[1 << 20];
	struct name_cache *names = name_cache_new(8 << 20);

	world_walk();
	expect_eq(world.walk.end, 0);
	take_names(names, false);
	print_frames(names, had, sizeof(had));
	compare(path, had, text);
	name_cache_free(names);
}

/* Each state gives what the interpreter said of itself. */
TEST(recorded_states_are_walked)
{
	each_state(replay);
}

static void replay_filled(const char *path, const char *text)
{
	world.fills = true;
	replay(path, text);
	world.fills = false;
}

/* Also where several frames are read at once, and what is between them is something else. */
TEST(frames_are_found_among_other_memory)
{
	each_state(replay_filled);
}

/* Without the mark that must be the last one. A state of 64 calls has not the memory of those
 * outside, and 3.15's have not that of the thread's base frame. */
static void cut_mark(char *text)
{
	bool cut = world.state.n_activations == 64 || world.state.layout.version >> 16 == 0x30f;
	const char *mark = cut ? "[3]\n" : "[4]\n";
	size_t n = strlen(text);

	if (n >= 4 && strcmp(text + n - 4, mark) == 0)
		text[n - 4] = '\0';
}

static void replay_last(const char *path, const char *text)
{
	static char had[1 << 20];

	for (uint32_t i = 1; i <= world.state.n_activations && i <= 14; i++) {
		struct name_cache *names = name_cache_new(8 << 20);

		world.last_call = i;
		world_walk();
		expect_eq(world.walk.end, 0);
		expect_eq(world.walk.native, ANDIRON_WALK_REST);
		take_names(names, false);
		print_frames(names, had, sizeof(had));
		cut_mark(had);
		compare(path, had, text);
		name_cache_free(names);
	}
	world.last_call = 0;
}

/* Whichever call is the last one of a stack, all frames are there, and native ones go on. */
TEST(last_call_has_the_rest)
{
	each_state(replay_last);
}

static uint32_t n_endless;

/* Makes the frame that the thread executes its own caller. */
static bool make_endless(void)
{
	const struct python_layout *l = &world.state.layout;
	uint64_t state = world.thread.states[0], frame;
	bool made = false;

	frame = l->kind == PYTHON_CFRAMES ? read_word(state + l->thread_top) + l->cframe_frame
					  : state + l->thread_frame;
	frame = read_word(frame);
	for (uint32_t i = 0; i < world.state.n_chunks; i++) {
		const struct chunk *c = &world.chunks[i];
		uint64_t at = frame + l->frame_previous - c->at;

		if (at < c->n && c->n - at >= 8) {
			memcpy(world.bytes + c->offset + at, &frame, 8);
			made = true;
		}
	}
	return made;
}

/* Any number of frames is an activation's: what is read of them is bounded, and one mark says that
 * there are more. Native frames go on behind it, and nothing is shown twice. */
static void walk_endless(const char *path, const char *text)
{
	static const uint32_t most = 2 * P_FRAMES;
	uint32_t n_marks = 0, n = world.state.n_activations;

	if (world.state.layout.kind < PYTHON_CFRAMES)
		return;
	world.state.n_activations = 1;
	world_walk();
	world.state.n_activations = n;
	if (world.walk.n_words == 0 || !scratch.run.found || !make_endless())
		return;
	world_walk();
	expect(world.walk.end == 0 || world.walk.n_words + 2 > ANDIRON_WALK_WORDS);
	for (uint32_t i = 0; i < world.walk.n_words; i += 2)
		if ((world.walk.frames[i] & PYTHON_ID_MASK) == PYTHON_WHAT_MARKER)
			n_marks += world.walk.frames[i + 1] == PYTHON_MARKER_DEPTH;
	expect(n_marks <= 1 && (n_marks == 0 || world.walk.n_words > most));
	n_endless += n_marks;
}

TEST(deep_recursions_say_so)
{
	each_state(walk_endless);
	expect(n_endless >= 30);
}

static uint64_t identified(void)
{
	return identify(&world.state.layout, &scratch, 4096);
}

static void make_again(const char *path, const char *text)
{
	const struct python_layout *l = &world.state.layout;
	uint64_t id;

	world_walk();
	id = identified();
	scratch.code[l->object_type / 8 + 1] ^= 1;
	expect(identified() != id);
	scratch.code[l->object_type / 8 + 1] ^= 1;
	scratch.code[l->code_lines / 8 - 1] ^= 8;
	expect(identified() != id);
	scratch.code[l->code_lines / 8 - 1] ^= 8;
	if (l->code_changes != PYTHON_NO_FIELD)
		scratch.code[l->code_changes / 8] ^= 1ull << 32;
	expect_eq(identified(), id);
}

/* Another code object at the same address has another id; one that was only called has its own. */
TEST(code_made_again_is_another)
{
	each_state(make_again);
}

#if !defined(__aarch64__)
/* A trampoline, and the stack of the loop that it has called or of itself. */
static void leave_trampoline(const unsigned char *code, uint32_t n, uint32_t at, bool exact,
			     uint32_t on_stack)
{
	unsigned char bytes[48] = {0};
	uint64_t stack[2] = {on_stack ? 77 : 4711, 4711};

	memcpy(bytes, code, n);
	memcpy(bytes + 32, stack, sizeof(stack));
	world.bytes = bytes;
	world.state.n_chunks = 2;
	world.chunks[0] = (struct chunk){1000, 32, 0};
	world.chunks[1] = (struct chunk){9000, 16, 32};
	world.walk = (struct andiron_walk){
		.pc = 1000 + at, .exact = exact, .native = ANDIRON_WALK_LEAVE, .known = 1 << P_SP};
	world.walk.regs[P_SP] = 9000;
	leave_other(&world.walk);
	world.bytes = NULL;
	expect_eq(world.walk.pc, 4711);
	expect_eq(world.walk.regs[P_SP], 9008 + on_stack);
	expect_eq(world.walk.exact | world.walk.native, 0);
	expect_eq(world.walk.known >> P_FP & 1, code[n - 2] == 0x5d && on_stack);
}

/* From each instruction of a trampoline its caller is found, and the loop's end is not taken for
 * one. */
TEST(trampolines_are_left)
{
	static const unsigned char adds[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1,
					     0x48, 0x83, 0xc4, 8, 0xc3};
	static const unsigned char pops[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
	static const unsigned char marked_adds[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8};
	static const unsigned char marked_pops[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5};

	free(world.bytes);
	leave_trampoline(adds, 11, 0, true, 0);
	leave_trampoline(adds, 11, 4, true, 8);
	leave_trampoline(adds, 11, 6, true, 8);
	leave_trampoline(adds, 11, 10, true, 0);
	leave_trampoline(adds, 11, 6, false, 8);
	leave_trampoline(pops, 8, 0, true, 0);
	leave_trampoline(pops, 8, 1, true, 8);
	leave_trampoline(pops, 8, 4, true, 8);
	leave_trampoline(pops, 8, 6, true, 8);
	leave_trampoline(pops, 8, 7, true, 0);
	leave_trampoline(pops, 8, 6, false, 8);
	leave_trampoline(marked_adds, 8, 0, true, 0);
	leave_trampoline(marked_pops, 8, 0, true, 0);
	world.walk = (struct andiron_walk){.pc = 1001, .native = ANDIRON_WALK_LEAVE};
	leave_other(&world.walk);
	expect_eq(world.walk.pc, 1001);
	expect_eq(world.walk.native, ANDIRON_WALK_LEAVE);
	world.state.n_chunks = 0;
}
#endif

static void walk_without_fp(const char *path, const char *text)
{
	if (!world.state.layout.cfa_fp)
		return;
	world_walk_knowing(~(1u << P_FP));
	expect(world.walk.n_words >= 2);
	for (uint32_t i = 0; i < world.walk.n_words; i += 2) {
		expect_eq(world.walk.frames[i] & PYTHON_ID_MASK, PYTHON_WHAT_MARKER);
		expect_eq(world.walk.frames[i + 1], PYTHON_MARKER_FRAME);
	}
	expect_eq(world.walk.native, ANDIRON_WALK_SHOW);
}

/* A frame pointer that the walk has not got is not used: native frames go on, with one mark. */
TEST(frame_pointer_is_not_guessed)
{
	each_state(walk_without_fp);
}

static uint64_t seed = 1;

static uint32_t random_below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed % n);
}

/* Forges some of the memory: a byte, a word that was elsewhere, a number at a limit. */
static void forge(void)
{
	static const uint64_t odd[] = {0, 1, UINT64_MAX, UINT32_MAX, 1ull << 63, 0x7fffffff, 256};

	for (uint32_t n = 1 + random_below(6); n > 0; n--) {
		uint32_t room = world.state.n_bytes - 8, at = random_below(room) & ~7u;

		switch (random_below(3)) {
		case 0:
			world.bytes[random_below(room)] ^= (unsigned char)(1 + random_below(255));
			break;
		case 1:
			memmove(world.bytes + at, world.bytes + (random_below(room) & ~7u), 8);
			break;
		default:
			memcpy(world.bytes + at, &odd[random_below(7)], 8);
		}
	}
}

static void fuzz(const char *path, const char *text)
{
	static char had[1 << 20];
	unsigned char *before = malloc(world.state.n_bytes);
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");
	long n = runs ? strtol(runs, NULL, 10) / 60 : 60;

	memcpy(before, world.bytes, world.state.n_bytes);
	for (long i = 0; i < n; i++) {
		struct name_cache *names = name_cache_new(8 << 20);

		forge();
		world_walk();
		expect(world.walk.n_words <= ANDIRON_WALK_WORDS);
		expect(world.n_reads < 64 * 8192);
		take_names(names, true);
		print_frames(names, had, sizeof(had));
		name_cache_free(names);
		memcpy(world.bytes, before, world.state.n_bytes);
	}
	free(before);
}

/* Whatever stands in the memory, a walk ends, stays in bounds, and what it reports can be read. */
TEST(forged_memory_is_survived)
{
	each_state(fuzz);
}
