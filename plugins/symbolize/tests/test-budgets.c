/* SPDX-License-Identifier: Apache-2.0 */
/* What a file may cost, from the arguments to the counters: the files here do cost more. Each is
 * read by the parser itself, here in this process. */
#include "symbolize/parser/answer.h"
#include "symbolize/options.h"
#include "symbolize/symbolizer.h"

#include "abi/batch-build.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "elf/tests/test-write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define BUDGET ((size_t)1 << 20)

struct fixture {
	struct symbolizer s;
	int file;
	uint32_t flags; /* of the last request, */
	int32_t over;   /* and what was answered */
	int n_said;
	bool all; /* of what was said last, */
	struct error why;
};

static int32_t open_file(void *self, uint64_t object, uint32_t what, int32_t *ret_fd)
{
	const struct fixture *x = self;
	int fd = what == ANDIRON_OPEN_FILE ? fcntl(x->file, F_DUPFD_CLOEXEC, 3) : -1;

	if (fd < 0)
		return -ENOENT;
	*ret_fd = fd;
	return 0;
}

static int32_t info(void *self, uint64_t object, struct andiron_object_info *ret_info)
{
	ret_info->path = (struct andiron_str){"/bin/x", 6};
	return 0;
}

static void keep(void *self, uint64_t object)
{
}

static const struct andiron_objects table = {
	.size = sizeof(table), .open = open_file, .info = info, .retain = keep, .release = keep};

static void on_aside(void *context, const struct andiron_str *path, bool all,
		     const struct error *why)
{
	struct fixture *x = context;

	x->n_said++;
	x->all = all;
	x->why = *why;
}

static int ask_parser(void *self, const struct parser_request *request, struct buf *answer)
{
	struct fixture *x = self;
	struct answer_tail tail = {0};
	int r = parser_run(&x->s.parser, request, answer);
	struct str rest = buf_str(answer);

	expect(answer_tail(&rest, &tail));
	x->flags = request->flags;
	x->over = tail.over;
	return r;
}

static void begin(struct fixture *x, int file, uint64_t file_steps)
{
	const struct symbolizer_settings settings = {.cache_bytes = 16 * BUDGET,
						     .file_bytes = BUDGET,
						     .file_steps = file_steps,
						     .lines = true,
						     .inlines = true};
	const struct andiron_extension objects = {&table, x};

	*x = (struct fixture){.file = file};
	symbolizer_init(&x->s, &objects, &settings, on_aside, x);
	x->s.port = (struct parser_port){ask_parser, x};
}

static void end(struct fixture *x)
{
	symbolizer_fini(&x->s);
	close(x->file);
}

/* Asks for one address; the name that it got, and its line. */
static void ask(struct fixture *x, uint64_t address, const char *name, bool with_line)
{
	const struct andiron_mapping m = {.object = 2};
	const struct batch_head head = {0};
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch, *named = NULL;
	struct andiron_location l = {.address = address, .kind = ANDIRON_FRAME_NATIVE};
	struct andiron_line line;
	struct batch_view v;

	check(b);
	l.mapping = batch_add_mapping(b, &m);
	expect_eq(batch_add_location(b, &l), 1);
	expect_eq(batch_finish(b, &head, &batch), 0);
	expect_eq(symbolizer_run(&x->s, batch, 0, &named), 0);
	expect_eq(batch_view_init(&v, named), 0);
	l = batch_location(&v, 1);
	expect_eq(l.n_lines > 0, name != NULL);
	if (name && l.n_lines) {
		line = batch_line(&v, l.line_start + l.n_lines - 1);
		expect_str(batch_str(&v, batch_function(&v, line.function).name), name);
		expect_eq(line.line > 0, with_line);
	}
	batch_release(named);
	batch_release(batch);
}

static void counts_are(const struct fixture *x, uint64_t time, uint64_t memory)
{
	expect_eq(x->s.totals.set_aside[ASIDE_TIME], time);
	expect_eq(x->s.totals.set_aside[ASIDE_MEMORY], memory);
	expect_eq(x->s.totals.set_aside[ASIDE_BROKEN], 0);
	expect_eq(x->s.totals.set_aside[ASIDE_CRASH], 0);
	expect_eq((uint64_t)x->n_said, time + memory);
}

/* Our own program's debug information, and where `p` is in it. */
static int own_file(const void *p, uint64_t *ret_address)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_file f = ELF_FILE_NULL;
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, stop, offset;
	char line[512];

	check(maps && fd >= 0 && elf_file_open(&f, fd, NULL) == 0);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &stop, &offset) == 3 &&
		    (uintptr_t)p >= start && (uintptr_t)p < stop)
			check(elf_file_vaddr(&f, (uintptr_t)p - start + offset, ret_address) == 0);
	fclose(maps);
	elf_file_close(&f);
	return fd;
}

/* A file whose debug information takes more steps than it may keeps its names by symbols; it is
 * counted and said once, its debug information is not read again, and a larger budget brings it
 * back. */
TEST(a_file_that_takes_too_long_gives_symbols_only)
{
	struct symbolizer_settings more;
	uint64_t address = 0;
	struct fixture x;
	int fd = own_file((const void *)own_file, &address);

	begin(&x, fd, 1024);
	ask(&x, address, "own_file", false);
	expect_eq(x.over, -ETIME);
	expect(!(x.flags & PARSER_SYMBOLS));
	for (uint64_t i = 1; i < 4; i++)
		ask(&x, address + i, "own_file", false);
	expect(x.flags & PARSER_SYMBOLS);
	counts_are(&x, 1, 0);
	expect(!x.all);
	expect_str(str_of(x.why.text), "its debug information takes more than file_steps = 1024");
	/* Also not by a parser that has forgotten it. */
	parser_fini(&x.s.parser);
	x.s.parser = PARSER_NULL;
	ask(&x, address + 4, "own_file", false);
	expect(x.flags & PARSER_SYMBOLS);
	expect_eq(x.over, 0);
	counts_are(&x, 1, 0);
	more = x.s.settings;
	more.file_steps = 1u << 27;
	more.file_bytes = 16 * BUDGET;
	symbolizer_set(&x.s, &more);
	ask(&x, address, "own_file", true);
	counts_are(&x, 1, 0);
	end(&x);
}

/* A unit whose lines do not fit gives its functions, and that is told: first there is room for too
 * few units, then for too few lines, then for all. */
TEST(lines_that_take_too_much_memory_are_left_out)
{
	enum { REFUSED, CUT, WHOLE } now, last = REFUSED;
	uint64_t address = 0;
	_cleanup_(closep) int fd = own_file((const void *)own_file, &address);
	unsigned int seen = 0;

	for (size_t n = 1024; n <= 16 * BUDGET; n += n / 8) {
		const struct dwarf_files files = {fd, -1, -1, n, UINT64_MAX};
		struct dwarf_frames f = {0};
		struct dwarf *d = NULL;
		int r = dwarf_new(&d, &files, NULL);

		expect(r == 0 || r == -E2BIG);
		expect(!d || dwarf_find(d, address, &f) == 0);
		now = !d ? REFUSED : dwarf_is_cut(d) ? CUT : WHOLE;
		expect(!d || (f.list.p[0].line == 0) == (now == CUT));
		expect(now >= last);
		seen |= 1u << now;
		last = now;
		dwarf_free(d);
		dwarf_frames_free(&f);
	}
	expect_eq(seen, 1u << REFUSED | 1u << CUT | 1u << WHOLE);
}

/* What a runtime tells may be longer than it may be: what fits is used. */
TEST(a_map_that_is_too_large_is_used_in_part)
{
	_cleanup_(buf_free) struct buf map = BUF_NULL;
	struct fixture x;

	for (unsigned int i = 0; map.n < 2 * BUDGET; i++)
		check(buf_printf(&map, "%x 10 function_%u\n", 0x100000 + i * 16, i) >= 0);
	begin(&x, elf_memfd(map.p, map.n), 1024);
	ask(&x, 0x100000, "function_0", false);
	ask(&x, 0x100010, "function_1", false);
	counts_are(&x, 0, 1);
	expect(!x.all);
	expect_str(str_of(x.why.text), "its tables take more memory than file_bytes = 1048576");
	end(&x);
}

/* A table of symbols beyond the budget is not read at all, and the reason is told from a broken
 * one. */
TEST(a_symbol_table_that_is_too_large_sets_the_file_aside)
{
	struct elf_writer w;
	struct fixture x;
	uint16_t text;

	elf_writer_init(&w);
	text = elf_write_section(&w, ".text", SHT_NOBITS, 0x1000, NULL, 0x200000);
	for (uint64_t i = 0; i <= BUDGET / 16; i++)
		elf_write_symbol(&w, "f", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text,
				 0x1000 + i * 16, 16);
	elf_write_symbols(&w, SHT_SYMTAB);
	begin(&x, elf_write_memfd(&w), 1024);
	elf_writer_fini(&w);
	for (uint64_t i = 0; i < 3; i++)
		ask(&x, 0x1000 + i, NULL, false);
	counts_are(&x, 0, 1);
	expect(x.all);
	expect_eq(x.s.totals.unresolved[WHY_BROKEN], 3);
	end(&x);
}

struct told {
	const char *reason;
	double value;
	int n;
};

static void add_metric(void *self, const struct andiron_metric *m)
{
	struct told *told = self;

	if (strcmp(m->name, "andiron_symbolize_files_set_aside_total") != 0)
		return;
	expect_eq(m->kind, ANDIRON_METRIC_COUNTER);
	expect_eq(m->n_labels, 1);
	told->n++;
	if (str_eq((struct str){m->labels->value.ptr, m->labels->value.len}, str_of(told->reason)))
		told->value = m->value;
}

/* Each reason has its counter. */
TEST(what_is_set_aside_is_told_by_its_reason)
{
	static const char *const reasons[ASIDE_COUNT] = {"broken", "crash", "time", "memory"};
	struct fixture x;

	begin(&x, -1, 1024);
	for (int i = 0; i < ASIDE_COUNT; i++)
		x.s.totals.set_aside[i] = 10u + (unsigned int)i;
	for (int i = 0; i < ASIDE_COUNT; i++) {
		struct told told = {.reason = reasons[i]};
		const struct andiron_metric_sink sink = {
			.size = sizeof(sink), .self = &told, .add = add_metric};

		symbolize_count(&x.s, 0, &sink);
		expect_eq(told.n, ASIDE_COUNT);
		expect_eq((int)told.value, 10 + i);
	}
	symbolizer_fini(&x.s);
}

static struct symbolizer_settings settings_of(int64_t cache_bytes, int64_t file_bytes,
					      int64_t file_steps)
{
	static const char *const names[] = {"cache_bytes", "file_bytes", "file_steps"};
	const int64_t given[] = {cache_bytes, file_bytes, file_steps};
	struct andiron_value items[3] = {{0}}, args = {.kind = ANDIRON_VALUE_MAP, .items = items};
	struct andiron_str keys[3];

	args.keys = keys;
	for (size_t i = 0; i < 3; i++)
		if (given[i]) {
			keys[args.n_items] = (struct andiron_str){names[i], strlen(names[i])};
			items[args.n_items++] = (struct andiron_value){.kind = ANDIRON_VALUE_INT,
								       .integer = given[i]};
		}
	return symbolize_settings(&args);
}

/* The budgets are arguments; a file's memory is never more than that of all. */
TEST(budgets_are_arguments)
{
	struct symbolizer_settings s = settings_of(0, 0, 0);

	expect_eq(s.cache_bytes, 32u << 20);
	expect_eq(s.file_bytes, 32u << 20);
	expect_eq(s.file_steps, 1u << 27);
	s = settings_of(0, 2 << 20, 4096);
	expect_eq(s.cache_bytes, 32u << 20);
	expect_eq(s.file_bytes, 2u << 20);
	expect_eq(s.file_steps, 4096);
	expect_eq(settings_of(4 << 20, 0, 0).file_bytes, 4u << 20);
	expect_eq(settings_of(4 << 20, 8 << 20, 0).file_bytes, 4u << 20);
}
