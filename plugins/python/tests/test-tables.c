/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables, names, and layouts of versions. */
#include "python/elf-frames.h"
#include "python/interpreter.h"
#include "python/layouts.h"
#include "python/lines.h"
#include "python/names.h"
#include "python/tasks.h"
#include "python/trampolines.h"
#include "python/versions.h"

#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_BYTES (8u << 20)

static uint32_t line(uint32_t kind, const char *bytes, size_t n, uint64_t position)
{
	struct line_table t = {(const unsigned char *)bytes, n, kind, 10, false};

	return line_at(&t, position);
}

/* Lines go up and down; before the first instruction stands the first line. */
TEST(lines_of_pairs)
{
	static const char t[] = {0, 1, 4, 2, 6, -1, (char)255, 0, 3, 5};

	expect_eq(line(PYTHON_LINES_LNOTAB, t, sizeof(t), PYTHON_NO_LINE), 10);
	expect_eq(line(PYTHON_LINES_LNOTAB, t, sizeof(t), 0), 11);
	expect_eq(line(PYTHON_LINES_LNOTAB, t, sizeof(t), 3), 11);
	expect_eq(line(PYTHON_LINES_LNOTAB, t, sizeof(t), 4), 13);
	expect_eq(line(PYTHON_LINES_LNOTAB, t, sizeof(t), 10), 12);
	expect_eq(line(PYTHON_LINES_LNOTAB, t, sizeof(t), 268), 17);
	expect_eq(line(PYTHON_LINES_LNOTAB, t, 5, 4), 13);
}

/* Instructions without a line have that of those before them. */
TEST(lines_of_ranges)
{
	static const char t[] = {4, 1, 2, -128, 6, 3};

	expect_eq(line(PYTHON_LINES_RANGES, t, sizeof(t), 0), 11);
	expect_eq(line(PYTHON_LINES_RANGES, t, sizeof(t), 2), 11);
	expect_eq(line(PYTHON_LINES_RANGES, t, sizeof(t), 3), 14);
	expect_eq(line(PYTHON_LINES_RANGES, t, sizeof(t), 6), 0);
}

/* Each form of an entry. */
TEST(lines_of_locations)
{
	static const char t[] = {
		(char)(0x80 | 13 << 3 | 0), 4,                    /* one unit, two lines on */
		(char)(0x80 | 2 << 3 | 1),  0,                    /* two units, the same line */
		(char)(0x80 | 11 << 3 | 0), 0,        0,          /* one unit, one line on */
		(char)(0x80 | 15 << 3 | 3),                       /* four units without a line */
		(char)(0x80 | 14 << 3 | 0), 0x40 | 3, 1, 0, 0, 0, /* one unit, 17 lines back */
	};

	expect_eq(line(PYTHON_LINES_LOCATIONS, t, sizeof(t), 0), 12);
	expect_eq(line(PYTHON_LINES_LOCATIONS, t, sizeof(t), 4), 12);
	expect_eq(line(PYTHON_LINES_LOCATIONS, t, sizeof(t), 6), 13);
	expect_eq(line(PYTHON_LINES_LOCATIONS, t, sizeof(t), 14), 13);
	expect_eq(line(PYTHON_LINES_LOCATIONS, t, sizeof(t), 16), 0);
	for (size_t n = 0; n <= sizeof(t); n++)
		line(PYTHON_LINES_LOCATIONS, t, n, 1000);
}

/* Steps that no file has lead to no line, and not out of the numbers that there are. */
TEST(lines_of_forged_locations)
{
	static const char step[] = {
		(char)(0x80 | 13 << 3), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f};
	char t[20 * sizeof(step)];

	for (size_t i = 0; i < sizeof(t); i++)
		t[i] = step[i % sizeof(step)];
	expect_eq(line(PYTHON_LINES_LOCATIONS, t, sizeof(t), 38), 0);
}

struct reported {
	struct python_record r;
	char bytes[512];
};

static struct reported record(uint64_t id, const char *name, size_t n, uint8_t width)
{
	struct reported t = {.r = {.id = id,
				   .n_name = (uint16_t)n,
				   .name_width = width,
				   .n_file = 4,
				   .first_line = 7,
				   .n_lines = 2,
				   .all_lines = 2}};

	memcpy(t.bytes, name, n);
	memcpy(t.bytes + n, "a.py\0\1", 6);
	return t;
}

/* Where a part of a table is known, it says nothing of the code behind it. */
TEST(lines_of_a_part_of_a_table)
{
	struct name_cache *c = name_cache_new(1 << 20);
	struct reported t = record(100, "f", 1, 1);
	struct line_table lines;
	struct name name;

	memcpy(t.bytes + 5, "\4\1\4\2", 4);
	t.r.n_lines = 4;
	for (uint32_t more = 0; more < 3; more += 2) {
		t.r.all_lines = 4 + more;
		expect_eq(names_add(c, &t, sizeof(t), NULL), 0);
		expect(name_cache_find(c, 100, &name));
		lines = names_lines(&name);
		expect_eq(line_at(&lines, 3), 7);
		expect_eq(line_at(&lines, 7), 8);
		expect_eq(line_at(&lines, 8), more ? 0 : 10);
	}
	name_cache_free(c);
}

/* Texts of each width come as UTF-8; one that was cut says so; a malformed record is refused. */
TEST(records_become_names)
{
	struct name_cache *c = name_cache_new(1 << 20);
	struct reported t = record(100, "\xe9t\xe9", 3, 1);
	struct line_table lines;
	struct name name;

	expect_eq(names_add(c, &t, sizeof(t), NULL), 0);
	expect(name_cache_find(c, 100, &name));
	expect_str(((struct str){name.function, name.n_function}), "été");
	expect_str(((struct str){name.file, name.n_file}), "a.py");
	lines = names_lines(&name);
	expect_eq(line_at(&lines, 0), 8);
	expect_eq(names_add(c, &t, sizeof(t), (const unsigned char *)"\0\5"), 0);
	expect(name_cache_find(c, 100, &name));
	lines = names_lines(&name);
	expect_eq(line_at(&lines, 0), 12);
	t = record(500, "\x3b\x04\0\0\x34\xf4\1\0", 8, 4);
	expect_eq(names_add(c, &t, sizeof(t), NULL), 0);
	expect(name_cache_find(c, 500, &name));
	expect_str(((struct str){name.function, name.n_function}), "л🐴");
	/* A long path keeps its end. */
	t = record(502, "f", 1, 1);
	memset(t.bytes + 1, 'x', PYTHON_TEXT_MAX);
	memcpy(t.bytes + 1 + PYTHON_TEXT_MAX - 5, "/a.py", 5);
	t.r.n_file = PYTHON_TEXT_MAX;
	t.r.n_lines = 0;
	expect_eq(names_add(c, &t, sizeof(t), NULL), 0);
	expect(name_cache_find(c, 502, &name));
	expect(memcmp(name.file, "…x", strlen("…x")) == 0);
	expect(memcmp(name.file + name.n_file - 6, "x/a.py", 6) == 0);
	t.r.n_name = 300;
	expect_eq(names_add(c, &t, sizeof(t), NULL), -EINVAL);
	t = record(501, "x", 1, 3);
	expect_eq(names_add(c, &t, sizeof(t), NULL), -EINVAL);
	expect_eq(names_add(c, &t, 8, NULL), -EINVAL);
	expect(!name_cache_find(c, 501, &name));
	name_cache_free(c);
}

/* A version without a table is none; what an interpreter says of itself is checked. */
TEST(layouts_are_checked)
{
	static const uint32_t good = 0x030d00f0;
	unsigned char bytes[LAYOUT_OFFSETS_BYTES] = "xdebugpy";
	struct python_layout l;
	char text[24];

	for (uint32_t minor = 0; minor < 20; minor++)
		expect_eq(layout_of_version(3u << 24 | minor << 16 | 0xf0, &l),
			  minor >= 6 && minor <= 12);
	memcpy(bytes + 8, &good, 4);
	expect(layout_of_runtime(bytes, sizeof(bytes), &l) != NULL);
	expect_eq(l.kind, PYTHON_UNKNOWN);
	layout_version_text(&l, text, sizeof(text));
	expect_str(str_of(text), "3.13.0");
	bytes[10] = 16;
	expect_str(str_of(layout_of_runtime(bytes, sizeof(bytes), &l)),
		   "no table of _Py_DebugOffsets for this version");
	bytes[0] = 'y';
	expect_str(str_of(layout_of_runtime(bytes, sizeof(bytes), &l)),
		   "no _Py_DebugOffsets in _PyRuntime");
}

/* As CPython 3.14.10 says it, with one word changed. */
static bool tasks_known(size_t index, uint64_t value, struct tasks *ret)
{
	struct python_layout l = {.version = 0x030e0af0, .frame_span = 88};
	uint64_t words[LAYOUT_OFFSETS_BYTES / 8] = {0};

	words[6] = 225864;
	words[37] = 64;
	words[63] = 24;
	words[64] = 40;
	words[65] = 32;
	words[85] = 72;
	words[86] = 67;
	words[index] = value;
	tasks_of_runtime((const unsigned char *)words, sizeof(words), &l, ret);
	return ret->interp_bytes != 0;
}

/* What the interpreter says of coroutines and sets is inside of what is read, or it is not used. */
TEST(tasks_are_checked)
{
	static const size_t of_words[] = {37, 63, 64, 65, 85, 86};
	struct python_layout other = {.version = 0x030d0af0, .frame_span = 88};
	unsigned char bytes[LAYOUT_OFFSETS_BYTES];
	struct tasks t;

	expect(tasks_known(0, 0, &t));
	expect_eq(t.fields.gen_span, 160);
	expect_eq(t.fields.awaiting, 255);
	expect(!tasks_known(6, 0, &t));
	expect(!tasks_known(37, 88, &t));
	expect(!tasks_known(85, 73, &t));
	for (size_t i = 0; i < 6; i++)
		expect(!tasks_known(of_words[i], 1ull << 40, &t));
	memset(bytes, 16, sizeof(bytes));
	tasks_of_runtime(bytes, sizeof(bytes), &other, &t);
	expect_eq(t.interp_bytes, 0);
}

/* The two files must be of one build; then each field is of the file that knows it. */
TEST(tasks_are_joined)
{
	struct tasks interpreter = {100, {.gen_frame = 72, .set_used = 24}};
	struct tasks asyncio = {101, {.task_name = 136, .thread_task = 872}};
	struct python_tasks both;

	expect(!tasks_joined(&interpreter, &asyncio, &both));
	asyncio.interp_bytes = 100;
	expect(tasks_joined(&interpreter, &asyncio, &both));
	expect_eq(both.gen_frame, 72);
	expect_eq(both.set_used, 24);
	expect_eq(both.task_name, 136);
	expect_eq(both.thread_task, 872);
	interpreter.interp_bytes = asyncio.interp_bytes = 0;
	expect(!tasks_joined(&interpreter, &asyncio, &both));
}

static uint32_t agreed(const char *texts, size_t n)
{
	struct version_texts v = {0};

	version_texts_add(&v, texts, n);
	return version_texts_agreed(&v);
}

/* Another library's version is not taken for CPython's, whichever stands first. */
TEST(versions_agree)
{
	static const char one[] = "\0/usr/3.8.18\0x";
	static const char both[] = "\0"
				   "3.7.17\0"
				   "3.8.5\0/lib/python3.8/os.py\0";
	static const char neither[] = "\0"
				      "3.7.17\0"
				      "3.8.5\0";
	static const char names[] = "\0"
				    "3.7.17\0"
				    "3.8.5\0python3.7\0\0\0\0python3.8\0\0\0\0";
	static const char none[] = "\0"
				   "13.8.5\0"
				   "3.45.1\0"
				   "3.8\0python3.8\0\0\0";

	expect_eq(agreed(one, sizeof(one)), 0x030812f0);
	expect_eq(agreed(both, sizeof(both)), 0x030805f0);
	expect_eq(agreed(neither, sizeof(neither)), 0);
	expect_eq(agreed(names, sizeof(names)), 0);
	expect_eq(agreed(none, sizeof(none)), 0);
}

/* The program's own bias. */
static int take_bias(struct dl_phdr_info *info, size_t size, void *context)
{
	*(uint64_t *)context = info->dlpi_addr;
	return 1;
}

/* Without .eh_frame_hdr, as in a static program, a function has the same call-frame information. */
TEST(frames_are_found_without_a_table)
{
	struct elf_file *f = malloc(sizeof(*f));
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_cfa with[64], without[64];
	struct elf_code code, same;
	uint64_t bias = 0, at;
	size_t n;

	dl_iterate_phdr(take_bias, &bias);
	at = (uint64_t)(uintptr_t)line_at - bias;
	expect(elf_open(f, fd) && elf_has_table(f) && elf_function(f, at, &code));
	n = elf_cfas(f, at, with, 64);
	for (uint32_t i = 0; i < f->n_segments; i++)
		if (f->segments[i].p_type == PT_GNU_EH_FRAME)
			f->segments[i].p_type = PT_NULL;
	expect(!elf_has_table(f) && elf_function(f, at, &same));
	expect_eq(same.from, code.from);
	expect_eq(same.to, code.to);
	expect(n > 1);
	expect_eq(elf_cfas(f, at, without, 64), n);
	expect(memcmp(with, without, n * sizeof(*with)) == 0);
	expect(!elf_function(f, UINT64_MAX - 8, &same));
	close(fd);
	free(f);
}

/* Where the loop is being entered, until its first dispatch or call, 3.11 and 3.12 have no frame
 * that can be believed. */
TEST(a_loop_that_is_entered_has_no_frame_yet)
{
	struct elf_file *f = malloc(sizeof(*f));
	int fd = open("/usr/bin/python3", O_RDONLY | O_CLOEXEC);
	struct interpreter found;
	unsigned char code[4] = {0};
	bool is_there = f && fd >= 0 && elf_open(f, fd) && interpreter_read(fd, &found) &&
			found.layout.kind == PYTHON_CFRAMES;

	if (is_there) {
		expect(found.layout.bodies[0].from > found.codes[0].from + 64);
		expect_eq(elf_read(f, found.layout.bodies[0].from, code, 4), 4);
	}
	if (fd >= 0)
		close(fd);
	free(f);
	if (!is_there)
		test_skip("/usr/bin/python3 is not CPython 3.11 or 3.12");
#if defined(__x86_64__)
	expect(code[0] == 0xe8 || (code[0] == 0xff && (code[1] & 0x38) == 0x20));
#else
	expect((code[3] & 0xfc) == 0x94 || code[3] == 0xd6);
#endif
}

/* The kernel's own code has no file either, and is smaller than what CPython maps. */
TEST(trampolines_are_looked_for_in_arenas)
{
	const struct andiron_runtime_mapping list[] = {
		{.object = 7, .start = 1 << 20, .limit = 2 << 20},
		{.start = 3 << 20, .limit = (3 << 20) + 8192},
		{.start = 4 << 20, .limit = (4 << 20) + TRAMPOLINE_ARENA},
	};

	expect(!trampolines_possible(list, 2) && trampolines_possible(list, 3));
}

#if defined(__x86_64__)
/* Each version's trampoline is known by its first bytes, and no other code is. */
TEST(trampolines_are_known)
{
	static const char *const known[] = {
		"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3\0\0\0\0",
		"\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3",
		"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xff\xd1\x5d\xc3\0\0\0",
	};
	static const char *const others[] = {
		"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x83\xec\x10\0\0\0",
		"\x48\x83\xec\x08\xff\xd0\x48\x83\xc4\x08\xc3\0\0\0\0",
		"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
	};

	for (size_t i = 0; i < 3; i++) {
		expect(trampoline_known((const unsigned char *)known[i]));
		expect(!trampoline_known((const unsigned char *)others[i]));
	}
}
#endif

/* A file with an interpreter, damaged: whatever is found, reading ends and stays in bounds. */
TEST(damaged_files_are_survived)
{
	static const char *const paths[] = {"/usr/bin/python3", "/proc/self/exe"};
	unsigned char *file = malloc(FILE_BYTES);
	struct interpreter found;
	uint64_t seed = 7;

	for (size_t p = 0; p < 2; p++) {
		int from = open(paths[p], O_RDONLY | O_CLOEXEC), fd = memfd_create("damaged", 0);
		ssize_t n = from < 0 ? -1 : read(from, file, FILE_BYTES);

		for (int i = 0; n > 4096 && i < 150; i++) {
			unsigned char old[8];
			uint64_t room = i % 3 ? 4096 : (uint64_t)n - 8, at;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			at = (seed >> 20) % room & ~7ull;
			memcpy(old, file + at, 8);
			memcpy(file + at, i % 2 ? &seed : &(uint64_t){seed >> 56}, 8);
			expect_eq(pwrite(fd, file, (size_t)n, 0), n);
			interpreter_read(fd, &found);
			expect(found.n_codes <= INTERPRETER_CODES &&
			       found.layout.n_bodies <= PYTHON_BODIES);
			memcpy(file + at, old, 8);
		}
		close(from);
		close(fd);
	}
	free(file);
}
