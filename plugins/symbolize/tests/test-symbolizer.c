/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the engine against objects whose files the test writes. */
#include "symbolize/symbolizer.h"

#include "abi/batch-build.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "testing/test.h"
#include "elf/tests/test-write.h"
#include "unwind/tests/test-frames.h"

#include <errno.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* andiron.objects/1 over descriptors of the test's. */
#define N_OBJECTS 64
struct fake {
	int files[N_OBJECTS], debugs[N_OBJECTS]; /* -1: none */
	int references[N_OBJECTS], opens[N_OBJECTS];
	const char *kernel; /* NULL: it cannot be opened */
	int kernel_opens;
};

static int32_t fake_open(void *self, uint64_t object, uint32_t what, int32_t *ret_fd)
{
	struct fake *f = self;
	int fd = -1;

	if (what == ANDIRON_OPEN_KALLSYMS) {
		f->kernel_opens++;
		if (!f->kernel)
			return -EPERM;
		fd = elf_memfd(f->kernel, strlen(f->kernel));
		lseek(fd, 0, SEEK_SET);
	} else if (what == ANDIRON_OPEN_FILE) {
		f->opens[object]++;
		fd = dup(f->files[object]);
	} else if (what == ANDIRON_OPEN_DEBUG) {
		fd = dup(f->debugs[object]);
	}
	if (fd < 0)
		return -ENOENT;
	*ret_fd = fd;
	return 0;
}

static int32_t fake_info(void *self, uint64_t object, struct andiron_object_info *ret_info)
{
	static const char path[] = "/bin/broken";

	ret_info->path = (struct andiron_str){path, sizeof(path) - 1};
	return object < N_OBJECTS ? 0 : -ENOENT;
}

static void fake_retain(void *self, uint64_t object)
{
	((struct fake *)self)->references[object]++;
}

static void fake_release(void *self, uint64_t object)
{
	struct fake *f = self;

	expect(f->references[object] > 0);
	f->references[object]--;
}

static const struct andiron_objects fake_table = {.size = sizeof(fake_table),
						  .open = fake_open,
						  .info = fake_info,
						  .retain = fake_retain,
						  .release = fake_release};

struct fixture {
	struct fake fake;
	struct symbolizer s;
	struct error broken;
	int n_broken;
};

static void on_broken(void *context, const struct andiron_str *path, bool all,
		      const struct error *why)
{
	struct fixture *x = context;

	expect(all);
	expect_str(((struct str){path->ptr, path->len}), "/bin/broken");
	x->broken = *why;
	x->n_broken++;
}

static void begin(struct fixture *x, size_t cache_bytes)
{
	const struct symbolizer_settings settings = {.cache_bytes = cache_bytes,
						     .file_bytes = cache_bytes,
						     .file_steps = 1u << 20,
						     .lines = true,
						     .inlines = true};
	struct andiron_extension objects = {&fake_table, &x->fake};

	memset(&x->fake, 0, sizeof(x->fake));
	memset(x->fake.files, 0xff, sizeof(x->fake.files));
	memset(x->fake.debugs, 0xff, sizeof(x->fake.debugs));
	x->n_broken = 0;
	symbolizer_init(&x->s, &objects, &settings, on_broken, x);
}

static void end(struct fixture *x)
{
	symbolizer_fini(&x->s);
	for (size_t i = 0; i < N_OBJECTS; i++) {
		expect_eq(x->fake.references[i], 0);
		closep(&x->fake.files[i]);
		closep(&x->fake.debugs[i]);
	}
}

/* A file with one function of 16 bytes at 0x1000, in that table; id 0: it has no build id. */
static int file_with_id(const char *name, uint32_t table, uint32_t id)
{
	struct buf note = BUF_NULL;
	struct elf_writer w;
	uint16_t text;
	int fd;

	elf_writer_init(&w);
	elf_write_note(&note, "GNU", 4, NT_GNU_BUILD_ID, &id, sizeof(id));
	if (id)
		elf_write_section(&w, ".note.gnu.build-id", SHT_NOTE, 0, note.p, note.n);
	buf_free(&note);
	text = elf_write_section(&w, ".text", SHT_NOBITS, 0x1000, NULL, 0x1000);
	elf_write_symbol(&w, name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, 0x1000, 16);
	elf_write_symbols(&w, table);
	fd = elf_write_memfd(&w);
	elf_writer_fini(&w);
	return fd;
}

static int file_with(const char *name, uint32_t table)
{
	return file_with_id(name, table, 0);
}

struct place {
	uint64_t object, address;
	uint16_t kind;
	const char *file; /* of its mapping; NULL: none */
};

/* A batch of these frames: location i + 1 is places[i]. */
static const struct andiron_batch *batch_of(const struct place *places, size_t n, uint32_t demangle)
{
	const struct batch_head head = {.demangle = demangle, .sequence = 7};
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;

	check(b);
	for (size_t i = 0; i < n; i++) {
		struct andiron_mapping m = {.object = places[i].object};
		struct andiron_location l = {.address = places[i].address, .kind = places[i].kind};

		if (places[i].file)
			m.file = batch_add_string(b, str_of(places[i].file));
		if (m.object || m.file)
			l.mapping = batch_add_mapping(b, &m);
		expect_eq(batch_add_location(b, &l), i + 1);
	}
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

/* Name and linked name of a location; "" where it has none. */
static struct str name_of(const struct andiron_batch *batch, uint32_t location, struct str *linked)
{
	struct andiron_location l;
	struct andiron_function f;
	struct batch_view v;

	expect_eq(batch_view_init(&v, batch), 0);
	l = batch_location(&v, location);
	expect(l.n_lines || (l.flags & ANDIRON_LOCATION_UNSYMBOLIZED));
	if (linked)
		*linked = STR("");
	if (l.n_lines == 0)
		return STR("");
	f = batch_function(&v, batch_line(&v, l.line_start).function);
	expect_eq(f.start_line, 0);
	expect_str(batch_str(&v, f.file), "");
	if (linked)
		*linked = batch_str(&v, f.system_name);
	return batch_str(&v, f.name);
}

static const struct andiron_batch *run(struct fixture *x, const struct place *places, size_t n,
				       int64_t now_ns)
{
	const struct andiron_batch *batch = batch_of(places, n, ANDIRON_DEMANGLE_NONE),
				   *named = NULL;

	expect_eq(symbolizer_run(&x->s, batch, now_ns, &named), 0);
	expect(named);
	expect_eq(named->sequence, 7);
	batch_release(batch);
	return named;
}

/* Each frame gets the name that covers its address in its own file, and what has none is marked as
 * tried, with the reason counted. */
TEST(frames_get_the_names_of_their_files)
{
	static const struct place places[] = {
		{2, 0x1000, ANDIRON_FRAME_NATIVE}, {3, 0x1000, ANDIRON_FRAME_NATIVE},
		{2, 0x100f, ANDIRON_FRAME_NATIVE}, {2, 0x1010, ANDIRON_FRAME_NATIVE},
		{0, 0x1000, ANDIRON_FRAME_NATIVE}, {4, 0x1000, ANDIRON_FRAME_NATIVE}};
	const struct andiron_batch *named;
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.files[2] = file_with("one", SHT_SYMTAB);
	x.fake.files[3] = file_with("two", SHT_DYNSYM);
	named = run(&x, places, 6, 0);
	expect_str(name_of(named, 1, NULL), "one");
	expect_str(name_of(named, 2, NULL), "two");
	expect_str(name_of(named, 3, NULL), "one");
	expect_str(name_of(named, 4, NULL), "");
	expect_str(name_of(named, 5, NULL), "");
	expect_str(name_of(named, 6, NULL), "");
	expect_eq(x.s.totals.resolved[FROM_SYMTAB], 2);
	expect_eq(x.s.totals.resolved[FROM_DYNSYM], 1);
	expect_eq(x.s.totals.unresolved[WHY_NO_SYMBOL], 1);
	expect_eq(x.s.totals.unresolved[WHY_NO_OBJECT], 1);
	expect_eq(x.s.totals.unresolved[WHY_UNAVAILABLE], 1);
	batch_release(named);
	end(&x);
}

/* What has no name has one that stands in: where its function begins, else the file; it counts as
 * looked up in vain all the same, and nothing else is lost of it. */
TEST(frames_without_a_name_show_their_function)
{
	static const struct place places[] = {{2, 0x1004, ANDIRON_FRAME_NATIVE, "/lib/one.so"},
					      {2, 0x2004, ANDIRON_FRAME_NATIVE, "/lib/one.so"},
					      {2, 0x2008, ANDIRON_FRAME_NATIVE, "/lib/one.so"},
					      {2, 0x3000, ANDIRON_FRAME_NATIVE, "/lib/one.so"},
					      {3, 0x1000, ANDIRON_FRAME_NATIVE, "/lib/gone\x1b.so"},
					      {0, 0x7f0010, ANDIRON_FRAME_NATIVE, "[anon]"},
					      {0, 0xffffffff81000010, ANDIRON_FRAME_KERNEL, NULL}};
	static const char *const expected[] = {"one",
					       "[one.so fn 0x2000]",
					       "[one.so fn 0x2000]",
					       "[one.so]",
					       "[gone\xef\xbf\xbd.so]",
					       "[anon]",
					       "[kernel.kallsyms]"};
	const struct andiron_batch *named;
	struct batch_view v;
	struct fixture x;
	struct frames f;
	uint16_t text;

	begin(&x, 1 << 20);
	frames_begin(&f);
	frames_fde(&f, frames_usual_cie(&f), 0x2000, 0x40, OPS(""));
	text = elf_write_section(&f.w, ".text", SHT_NOBITS, 0x1000, NULL, 0x3000);
	elf_write_symbol(&f.w, "one", ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), text, 0x1000, 16);
	elf_write_symbols(&f.w, SHT_DYNSYM);
	frames_write_sections(&f);
	x.fake.files[2] = elf_write_memfd(&f.w);
	frames_end(&f);
	for (int round = 0; round < 2; round++) { /* also out of the cache */
		named = run(&x, places, 7, 0);
		expect_eq(batch_view_init(&v, named), 0);
		for (uint32_t i = 0; i < 7; i++) {
			struct andiron_location l = batch_location(&v, i + 1);

			expect_str(name_of(named, i + 1, NULL), expected[i]);
			expect_eq(l.flags, i ? ANDIRON_LOCATION_UNSYMBOLIZED : 0);
			expect_eq(l.address, places[i].address);
		}
		batch_release(named);
	}
	expect_eq(x.s.totals.unresolved[WHY_NO_SYMBOL], 6);
	expect_eq(x.s.totals.resolved[FROM_DYNSYM], 2);
	end(&x);
}

/* A debug file of the same build serves where the file has no .symtab, and only then; where it does
 * not parse, .dynsym does. */
TEST(debug_files_stand_in_for_symtab)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE},
					      {3, 0x1000, ANDIRON_FRAME_NATIVE},
					      {4, 0x1000, ANDIRON_FRAME_NATIVE},
					      {5, 0x1000, ANDIRON_FRAME_NATIVE}};
	const struct andiron_batch *named;
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.files[2] = file_with_id("exported", SHT_DYNSYM, 7);
	x.fake.debugs[2] = file_with_id("internal", SHT_SYMTAB, 7);
	x.fake.files[5] = file_with_id("exported", SHT_DYNSYM, 7);
	x.fake.debugs[5] = file_with_id("of another build", SHT_SYMTAB, 8);
	x.fake.files[3] = file_with("own", SHT_SYMTAB);
	x.fake.debugs[3] = file_with("other", SHT_SYMTAB);
	x.fake.files[4] = file_with("exported", SHT_DYNSYM);
	x.fake.debugs[4] = elf_memfd("no ELF", 6);
	named = run(&x, places, 4, 0);
	expect_str(name_of(named, 1, NULL), "internal");
	expect_str(name_of(named, 2, NULL), "own");
	expect_str(name_of(named, 3, NULL), "exported");
	expect_str(name_of(named, 4, NULL), "exported");
	expect_eq(x.s.totals.resolved[FROM_DEBUG], 1);
	expect_eq(x.s.totals.resolved[FROM_DYNSYM], 2);
	expect_eq(x.n_broken, 0);
	batch_release(named);
	end(&x);
}

/* What is known costs no file: a second batch opens none. */
TEST(known_addresses_open_nothing)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE},
					      {2, 0x1010, ANDIRON_FRAME_NATIVE}};
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.files[2] = file_with("one", SHT_SYMTAB);
	for (int i = 0; i < 3; i++) {
		const struct andiron_batch *named = run(&x, places, 2, i);

		expect_str(name_of(named, 1, NULL), "one");
		batch_release(named);
		expect_eq(x.fake.opens[2], 1);
	}
	expect(x.s.cache.bytes > 0);
	end(&x);
}

/* A broken file is read once and reported once; one that cannot be opened is tried again after a
 * minute. */
TEST(broken_files_are_set_aside)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE},
					      {3, 0x1000, ANDIRON_FRAME_NATIVE}};
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.files[2] = elf_memfd("\x7f"
				    "ELF, or is it?",
				    15);
	for (int i = 0; i < 3; i++)
		batch_release(run(&x, places, 2, i * SECOND));
	expect_eq(x.fake.opens[2], 1);
	expect_eq(x.fake.opens[3], 1);
	expect_eq(x.n_broken, 1);
	expect_str(str_of(x.broken.text), "shorter than an ELF header");
	expect_eq(x.s.totals.set_aside[ASIDE_BROKEN], 1);
	expect_eq(x.s.totals.unresolved[WHY_BROKEN], 3);
	x.fake.files[3] = file_with("late", SHT_SYMTAB);
	batch_release(run(&x, places, 2, OBJECT_RETRY_NS));
	expect_eq(x.s.totals.resolved[FROM_SYMTAB], 1);
	expect_eq(x.fake.opens[2], 1);
	end(&x);
}

/* Memory stays within the limit however many files there are; the least recently used goes, and
 * with it its object's reference. */
TEST(cache_is_bounded)
{
	struct fixture x;
	size_t limit = 8000;

	begin(&x, limit);
	for (uint64_t i = 2; i < N_OBJECTS; i++) {
		const struct place places[] = {{i, 0x1000, ANDIRON_FRAME_NATIVE},
					       {2, 0x1000, ANDIRON_FRAME_NATIVE}};

		if (x.fake.files[i] < 0)
			x.fake.files[i] = file_with("one", SHT_SYMTAB);
		batch_release(run(&x, places, i == 2 ? 1 : 2, (int64_t)i));
		expect(x.s.cache.bytes <= limit);
	}
	expect(x.s.cache.list.n > 2 && x.s.cache.list.n < 40);
	expect_eq(x.fake.opens[2], 1);
	expect_eq(x.fake.references[2], 1);
	expect_eq(x.fake.references[3], 0);
	cache_trim(&x.s.cache, CACHE_IDLE_NS + N_OBJECTS);
	expect_eq(x.s.cache.list.n, 0);
	expect_eq(x.s.cache.bytes, 0);
	expect_eq(x.fake.references[2], 0);
	end(&x);
}

/* The batch's wish decides how a name is shown; the linked name stays, and one wish's answer is not
 * given to another. */
TEST(names_follow_the_wish)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE}};
	static const char *const expected[] = {"_ZN3foo3barIiEEiT_", "foo::bar", "foo::bar<int>",
					       "int foo::bar<int>(int)"};
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.files[2] = file_with("_ZN3foo3barIiEEiT_", SHT_SYMTAB);
	for (uint32_t wish = 0; wish < 8; wish++) {
		const struct andiron_batch *batch = batch_of(places, 1, wish % 4), *named = NULL;
		struct str linked;

		expect_eq(symbolizer_run_on_thread(&x.s, batch, wish, &named), 0);
		expect_str(name_of(named, 1, &linked), expected[wish % 4]);
		expect_str(linked, "_ZN3foo3barIiEEiT_");
		expect_eq(named->demangle, wish % 4);
		batch_release(named);
		batch_release(batch);
	}
	end(&x);
}

/* A name that a terminal would obey never leaves the symbolizer. */
TEST(names_leave_clean)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE}};
	const struct andiron_batch *named;
	struct fixture x;
	struct str linked;

	begin(&x, 1 << 20);
	x.fake.files[2] = file_with("evil\x1b[2J\xff", SHT_SYMTAB);
	named = run(&x, places, 1, 0);
	expect_str(name_of(named, 1, &linked), "evil\xef\xbf\xbd[2J\xef\xbf\xbd");
	expect(str_utf8(linked));
	batch_release(named);
	end(&x);
}

/* The kernel's list is read once, again for an address that it did not have, and not sooner than
 * the pause allows. */
TEST(kernel_list_is_read_when_needed)
{
	static const struct place places[] = {{0, 0xffffffff81000010, ANDIRON_FRAME_KERNEL},
					      {0, 0xffffffffc0000010, ANDIRON_FRAME_KERNEL}};
	const struct andiron_batch *named;
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.kernel = "ffffffff81000000 T schedule\nffffffff81000100 R data\n";
	named = run(&x, places, 1, 0);
	expect_str(name_of(named, 1, NULL), "schedule");
	batch_release(named);
	batch_release(run(&x, places, 2, SECOND));
	expect_eq(x.fake.kernel_opens, 1);
	x.fake.kernel = "ffffffff81000000 T schedule\nffffffffc0000000 t late\t[mod]\n";
	named = run(&x, places, 2, KERNEL_REREAD_NS);
	expect_str(name_of(named, 2, NULL), "late");
	batch_release(named);
	expect_eq(x.fake.kernel_opens, 2);
	expect_eq(x.s.totals.resolved[FROM_KERNEL], 4);
	expect_eq(x.s.totals.unresolved[WHY_NO_SYMBOL], 1);
	end(&x);
}

/* A kernel that hides its addresses is asked less and less often, and the reason is kept for
 * people. */
TEST(hidden_kernel_names_go_on_without)
{
	static const struct place places[] = {{0, 0xffffffff81000010, ANDIRON_FRAME_KERNEL}};
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.kernel = "0000000000000000 T schedule\n";
	for (int i = 0; i < 3600; i += 15)
		batch_release(run(&x, places, 1, i * SECOND));
	expect_eq(x.s.kernel.why.code, -EACCES);
	expect_eq(x.fake.kernel_opens, 10);
	expect_eq(x.s.totals.unresolved[WHY_KERNEL], 240);
	end(&x);
}

/* Frames that somebody has named or tried, and frames that are no code, are not touched; without
 * others there is no new batch. */
TEST(other_frames_are_left_alone)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_RUNTIME},
					      {2, 0x1000, ANDIRON_FRAME_MARKER}};
	static const struct place named_place[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE}};
	const struct andiron_batch *batch = batch_of(places, 2, 0), *named = NULL, *again = NULL;
	struct fixture x;

	begin(&x, 1 << 20);
	x.fake.files[2] = file_with("one", SHT_SYMTAB);
	expect_eq(symbolizer_run(&x.s, batch, 0, &named), 0);
	expect(!named);
	expect_eq(x.fake.opens[2], 0);
	batch_release(batch);
	named = run(&x, named_place, 1, 0);
	expect_eq(symbolizer_run(&x.s, named, 0, &again), 0);
	expect(!again);
	batch_release(named);
	end(&x);
}

/* Two targets: the first has no names if `label` says so. Locations 1 and 2 are its own and the
 * other's too, 3 is the kernel's. */
static const struct andiron_batch *batch_of_two(const char *label)
{
	static const struct batch_head head = {.sequence = 7};
	static const uint32_t stacks[2][3] = {{1, 2, 3}, {2, 0, 0}};
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;

	for (uint32_t i = 1; i <= 3; i++) {
		struct andiron_mapping m = {.object = i < 3 ? i + 1 : 0,
					    .file = batch_add_string(b, STR("/a.so"))};
		struct andiron_location l = {.address = i < 3 ? 0x1000 : 0xffffffff81000010,
					     .kind = i < 3 ? ANDIRON_FRAME_NATIVE
							   : ANDIRON_FRAME_KERNEL};

		l.mapping = i < 3 ? batch_add_mapping(b, &m) : 0;
		expect_eq(batch_add_location(b, &l), i);
	}
	for (uint32_t g = 0; g < 2; g++) {
		uint32_t attribute =
			batch_add_str_attribute(b, STR("__symbolize__"), str_of(label));
		struct andiron_row row = {.value = 1, .samples = 1};

		batch_group_begin(b, &attribute, g == 0);
		row.stack = batch_add_stack(b, stacks[g], g ? 1 : 3);
		batch_add_row(b, &row);
	}
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

/* What only a target has that wants no names is not looked up, and its file is not opened; what
 * another one has too, and the kernel, is named. */
TEST(targets_can_go_without_names)
{
	static const char *const labels[] = {"false", "true", "", "no"};

	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		const struct andiron_batch *batch = batch_of_two(labels[i]), *named = NULL;
		struct fixture x;

		begin(&x, 1 << 20);
		x.fake.files[2] = file_with("own", SHT_SYMTAB);
		x.fake.files[3] = file_with("common", SHT_SYMTAB);
		x.fake.kernel = "ffffffff81000000 T schedule\n";
		expect_eq(symbolizer_run(&x.s, batch, 0, &named), 0);
		expect_str(name_of(named, 1, NULL), i == 0 ? "[a.so]" : "own");
		expect_str(name_of(named, 2, NULL), "common");
		expect_str(name_of(named, 3, NULL), "schedule");
		expect_eq(x.fake.opens[2], i != 0);
		expect_eq(x.s.totals.unresolved[WHY_OPTED_OUT], i == 0);
		batch_release(named);
		batch_release(batch);
		end(&x);
	}
}

struct input {
	int file, debug;
	const struct andiron_batch *batch;
};

static int run_once(void *context)
{
	static struct fixture x;
	const struct input *in = context;
	const struct andiron_batch *named = NULL;
	int r;

	begin(&x, 1 << 20);
	x.fake.files[2] = dup(in->file);
	x.fake.debugs[2] = dup(in->debug);
	x.fake.kernel = "ffffffff81000000 T schedule\n";
	r = symbolizer_run(&x.s, in->batch, 0, &named);
	if (named)
		batch_release(named);
	end(&x);
	return r;
}

/* Whatever allocation fails, nothing leaks and every reference goes back. */
TEST(survives_out_of_memory)
{
	static const struct place places[] = {{2, 0x1000, ANDIRON_FRAME_NATIVE},
					      {2, 0x1004, ANDIRON_FRAME_NATIVE},
					      {2, 0x1800, ANDIRON_FRAME_NATIVE, "/lib/one.so"},
					      {0, 0xffffffff81000010, ANDIRON_FRAME_KERNEL}};
	struct input in = {file_with("_ZN3foo3barIiEEiT_", SHT_DYNSYM),
			   file_with("_ZN3foo3barIiEEiT_", SHT_SYMTAB),
			   batch_of(places, 4, ANDIRON_DEMANGLE_SIMPLIFIED)};

	test_each_failing_allocation(run_once, &in);
	batch_release(in.batch);
	close(in.file);
	close(in.debug);
}
