/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and names of language runtimes, over a kernel that loads anything; refusals. */
#include "ebpf/unwinding/runtimes.h"
#include "ebpf/tests/test-world.h"

#include "abi/value.h"
#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <string.h>

#define BUDGET (UINT64_C(64) << 20)
#define TEXT   WORLD_TEXT

/* A runtime whose answers the test writes. */
struct fake {
	struct andiron_runtime table;
	struct andiron_runtime_claim answer[8];
	int32_t n;
	uint32_t n_asked, n_gone, n_open, n_looked_at;
	int32_t recognized;
	int32_t open_error;
	struct andiron_str name;
	int32_t n_frames, unnamed_at; /* 0: all have their name */
};

static int32_t fake_recognizes(void *self, uint64_t object)
{
	struct fake *f = self;

	f->n_looked_at++;
	return f->recognized;
}

static int32_t fake_open(void *self, const struct andiron_runtime_map *maps, uint64_t n, void **ret)
{
	struct fake *f = self;

	expect_eq(n, 1);
	expect_str(str_of(maps[0].name), "own");
	if (f->open_error != 0)
		return f->open_error;
	f->n_open++;
	*ret = f;
	return 0;
}

static void fake_close(void *session)
{
	((struct fake *)session)->n_open--;
}

static int32_t fake_claim(void *session, const struct andiron_runtime_process *process,
			  const struct andiron_runtime_mapping *mappings, uint64_t n,
			  struct andiron_runtime_claim *ret, uint64_t max)
{
	struct fake *f = session;

	f->n_asked++;
	expect(process->pid > 0 && n > 0 && max >= ANDIRON_RUNTIME_CLAIMS);
	expect_eq(mappings[0].limit - mappings[0].start, 0x6000);
	for (int32_t i = 0; i < f->n && i < 8; i++)
		ret[i] = f->answer[i];
	return f->n;
}

static void fake_gone(void *session, const struct andiron_runtime_process *process)
{
	((struct fake *)session)->n_gone++;
}

static int32_t fake_resolve(void *session, const struct andiron_runtime_process *process,
			    uint64_t what, uint64_t where, struct andiron_runtime_frame *ret,
			    uint64_t max)
{
	struct fake *f = session;

	if (what != 7)
		return -ENOENT;
	expect_eq(max, ANDIRON_RUNTIME_FRAMES);
	for (int32_t i = 0; i < f->n_frames && i < (int32_t)max; i++) {
		expect_eq(ret[i].size, sizeof(*ret));
		ret[i].function = f->name;
		if (i > 0 && i == f->unnamed_at)
			ret[i].function = (struct andiron_str){"\xc0\x80", 2};
		ret[i].file = (struct andiron_str){"\xff", 1};
		ret[i].line = (uint32_t)where + (uint32_t)i;
	}
	return f->n_frames;
}

static int32_t fake_describe(void *session, const struct andiron_runtime_process *process,
			     char *ret, uint64_t max)
{
	return 0;
}

struct fixture {
	struct world *world;
	struct fake fakes[2];
	struct runtime_requested requested[2];
	struct runtimes *runtimes;
	struct process process;
	uint32_t loaded; /* bit n: something is in slot n */
	int load_error, begin_error;
	uint32_t n_said, n_watched, n_begun;
	bool has_walks;
	char said[1024]; /* last */
};

static int load(void *context, uint32_t slot, const struct andiron_runtime *table,
		void **ret_program, struct error *err)
{
	struct fixture *f = context;

	expect(!(f->loaded >> slot & 1));
	if (f->load_error != 0)
		return error_set(err, f->load_error, "the kernel refused its program: R0");
	f->loaded |= 1u << slot;
	*ret_program = f;
	return 0;
}

static uint64_t maps(void *program, struct andiron_runtime_map *ret, uint64_t max)
{
	ret[0] = (struct andiron_runtime_map){.name = "own"};
	return 1;
}

static void unload(void *context, uint32_t slot, void *program)
{
	struct fixture *f = context;

	expect(f->loaded >> slot & 1);
	f->loaded &= ~(1u << slot);
}

static int begin_kernel(void *context)
{
	struct fixture *f = context;

	f->n_begun++;
	return f->begin_error;
}

static void have_walks(void *context, bool any)
{
	struct fixture *f = context;

	expect(f->has_walks != any);
	f->has_walks = any;
}

static void watch(void *context, const struct sampler_process_key *process, uint64_t generation)
{
	((struct fixture *)context)->n_watched++;
}

static void say(void *context, uint32_t level, const char *text)
{
	struct fixture *f = context;

	expect_eq(level, ANDIRON_LOG_WARN);
	f->n_said++;
	snprintf(f->said, sizeof(f->said), "%s", text);
}

static void prepare(struct fixture *f)
{
	static const struct andiron_runtime table = {.size = sizeof(table),
						     .walk_version = ANDIRON_WALK_VERSION,
						     .object = "x",
						     .object_bytes = 1,
						     .program = "x",
						     .frame_type = "fake",
						     .recognizes = fake_recognizes,
						     .open = fake_open,
						     .close = fake_close,
						     .claim = fake_claim,
						     .gone = fake_gone,
						     .resolve = fake_resolve,
						     .describe = fake_describe};

	*f = (struct fixture){.process = {.key = world_key(1)}};
	f->world = world_new(BUDGET);
	world_file(f->world, 1, 0x1000, 11, 1000);
	f->process.maps = world_set();
	expect(world_add(f->world, f->process.maps, 1, TEXT, 0x6000, 0));
	for (int i = 0; i < 2; i++) {
		f->fakes[i].table = table;
		f->fakes[i].name = (struct andiron_str){"spin", 4};
		f->fakes[i].n_frames = 1;
		f->fakes[i].recognized = 1;
		f->requested[i].name[0] = (char)('a' + i);
		f->requested[i].extension =
			(struct andiron_extension){&f->fakes[i].table, &f->fakes[i]};
	}
}

static void begin(struct fixture *f)
{
	const struct runtimes_kernel kernel = {f,          load, maps, unload, begin_kernel,
					       have_walks, watch};
	const struct runtimes_out out = {f, say};

	f->runtimes = runtimes_new(&kernel, f->requested, 2, &out);
	expect(f->runtimes);
}

static void end(struct fixture *f)
{
	runtimes_free(f->runtimes);
	expect_eq(f->loaded, 0);
	expect_eq(f->fakes[0].n_open + f->fakes[1].n_open, 0);
	mapset_free(f->process.maps);
	world_free(f->world);
}

static void answer(struct fixture *f, int who, uint64_t from, uint64_t to)
{
	struct fake *fake = &f->fakes[who];

	fake->answer[fake->n++] = (struct andiron_runtime_claim){
		mapped_file_object(f->world->files[1].file), from, to};
}

static void answer_addresses(struct fixture *f, int who, uint64_t from, uint64_t to)
{
	struct fake *fake = &f->fakes[who];

	fake->answer[fake->n++] = (struct andiron_runtime_claim){0, from, to};
}

/* As of a new set of mappings. */
static void ask(struct fixture *f)
{
	f->process.maps->claimed = false;
	runtimes_process(f->runtimes, &f->process, f->world->store);
}

/* The slot at an offset into the mapping, 0 where the file's own table is. */
static uint32_t slot_at(struct fixture *f, uint64_t offset)
{
	return world_find(f->world, 1, TEXT + offset).slot;
}

/* Claims of several runtimes stand beside each other, are there before the process is, and are
 * passed to the store only where they have changed. A program is watched once by a process. */
TEST(claims_stand_in_the_store)
{
	struct fixture f;
	uint32_t id;

	prepare(&f);
	begin(&f);
	answer(&f, 0, 0x3000, 0x3100);
	answer(&f, 0, 0x100, 0x200);
	answer(&f, 1, 0x200, 0x300);
	ask(&f);
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	id = world_id(f.world, 1);
	ask(&f);
	expect(world_id(f.world, 1) == id && f.n_watched == 1);
	f.process.maps->generation++;
	ask(&f);
	expect(f.fakes[0].n_asked == 3 && f.n_watched == 2);
	runtimes_process(f.runtimes, &f.process, f.world->store);
	expect_eq(f.fakes[0].n_asked, 3);
	expect_eq(slot_at(&f, 0xff), 0);
	expect_eq(slot_at(&f, 0x100), 1);
	expect_eq(slot_at(&f, 0x200), 2);
	expect_eq(slot_at(&f, 0x300), 0);
	expect_eq(slot_at(&f, 0x30ff), 1);
	/* Another answer takes the place of what it said, and of nothing else. */
	f.fakes[0].n = 0;
	answer(&f, 0, 0x4000, 0x4100);
	ask(&f);
	expect_eq(slot_at(&f, 0x100), 0);
	expect_eq(slot_at(&f, 0x200), 2);
	expect_eq(slot_at(&f, 0x4000), 1);
	/* No answer leaves it as it was. */
	f.fakes[0].n = 0;
	ask(&f);
	expect_eq(slot_at(&f, 0x4000), 1);
	expect(f.has_walks);
	runtimes_gone(f.runtimes, &f.process);
	expect_eq(f.fakes[0].n_gone, 1);
	expect(!f.has_walks);
	expect_eq(f.n_said, 0);
	end(&f);
}

/* Of two that claim the same code the first one has it, which is said once; what is no range, or of
 * an object that is not mapped, does not count. */
TEST(mistaken_claims_are_left_out)
{
	struct fixture f;

	prepare(&f);
	begin(&f);
	answer(&f, 0, 0x100, 0x200);
	answer(&f, 1, 0x1ff, 0x300);
	answer(&f, 1, 0x500, 0x600);
	answer(&f, 1, 0x5ff, 0x700);
	answer(&f, 1, 0x900, 0x900);
	answer(&f, 1, UINT64_MAX, 0);
	answer(&f, 1, 0xa00, 0xb00);
	f.fakes[1].answer[5].object ^= 1u << 20;
	ask(&f);
	ask(&f);
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	expect_eq(slot_at(&f, 0x1ff), 1);
	expect_eq(slot_at(&f, 0x200), 0);
	expect_eq(slot_at(&f, 0x500), 2);
	expect_eq(slot_at(&f, 0x600), 0);
	expect_eq(slot_at(&f, 0xa00), 0);
	expect_eq(f.n_said, 1);
	expect(strstr(f.said, "\"b\" claims code that another one has claimed"));
	f.fakes[0].n = ANDIRON_RUNTIME_CLAIMS + 1;
	ask(&f);
	f.fakes[0].n = -EIO;
	ask(&f);
	expect_eq(slot_at(&f, 0x100), 1);
	end(&f);
}

/* Memory without a file is claimed by the process's addresses, mapped or not, for this process
 * alone. Each answer takes the place of the one before; what grows keeps its id. */
TEST(addresses_are_claimed_by_process)
{
	const uint64_t heap = UINT64_C(0x5000000000);
	struct fixture f;
	uint32_t id;

	prepare(&f);
	begin(&f);
	expect(world_add(f.world, f.process.maps, WORLD_ANON, TEXT + 0x10000, 0x4000, 0));
	answer_addresses(&f, 0, TEXT + 0x11000, TEXT + 0x12000);
	answer_addresses(&f, 1, TEXT + 0x12000, TEXT + 0x20000);
	answer(&f, 1, 0x100, 0x200);
	ask(&f);
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	expect_eq(slot_at(&f, 0x10fff), 0);
	expect_eq(slot_at(&f, 0x11000), 1);
	expect_eq(slot_at(&f, 0x12000), 2);
	expect_eq(slot_at(&f, 0x1ffff), 2);
	expect_eq(slot_at(&f, 0x100), 2);
	expect_eq(world_find(f.world, 1, TEXT + 0x11000).kind, UNWIND_KIND_FRAMES);
	/* Another process has only what belongs to the file. */
	world_map_one(f.world, 2, 1, TEXT, 0x6000, 0);
	expect_eq(world_find(f.world, 2, TEXT + 0x100).slot, 2);
	/* Growth, and what was a mapping's before. */
	id = world_id(f.world, 1);
	f.fakes[0].n = 0;
	answer_addresses(&f, 0, TEXT + 0x11000, TEXT + 0x12000);
	answer_addresses(&f, 0, heap, heap + 0x1000);
	ask(&f);
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	expect_eq(world_id(f.world, 1), id);
	expect_eq(world_find(f.world, 1, heap).slot, 1);
	f.fakes[0].n = 0;
	answer_addresses(&f, 0, TEXT + 0x10000, TEXT + 0x11800);
	ask(&f);
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	expect(world_id(f.world, 1) != id);
	expect_eq(slot_at(&f, 0x10fff), 1);
	expect_eq(slot_at(&f, 0x11800), 0);
	expect_eq(f.n_said, 0);
	/* A forked child that is gone keeps its parent's. */
	f.fakes[0].n = f.fakes[1].n = 0;
	f.process.maps->inherited = true;
	ask(&f);
	expect_eq(f.process.maps->claims.n, 2);
	f.process.maps->inherited = false;
	ask(&f);
	expect_eq(f.process.maps->claims.n, 0);
	end(&f);
}

static void expect_refused(struct fixture *f, const char *why)
{
	begin(f);
	answer(f, 0, 0x100, 0x200);
	answer(f, 1, 0x100, 0x200);
	ask(f);
	expect_eq(f->n_said, 1);
	if (!strstr(f->said, why) || !strstr(f->said, "\"a\""))
		test_fail(__FILE__, __LINE__, "said: %s", f->said);
	expect(!runtimes_name(f->runtimes, 1));
	expect_str(str_of(runtimes_name(f->runtimes, 2)), "b");
	ask(f);
	expect_eq(f->n_said, 1);
	expect_eq(f->fakes[0].n_asked, 0);
	expect_eq(world_map(f->world, 1, f->process.maps), 0);
	expect_eq(slot_at(f, 0x100), 2);
	end(f);
}

/* One that cannot be used is reported with the reason and never called. */
TEST(refusals_say_why)
{
	struct fixture f;

	prepare(&f);
	f.requested[0].extension.table = NULL;
	expect_refused(&f, "no plugin offers the runtime \"a\" (andiron.runtime.a/1)");
	prepare(&f);
	f.fakes[0].table.walk_version++;
	expect_refused(&f, "built for version 5 of the walk, this sampler has version 4");
	prepare(&f);
	f.fakes[0].table.size -= 8;
	expect_refused(&f, "headers that were never released");
	prepare(&f);
	f.fakes[0].table.resolve = NULL;
	expect_refused(&f, "lacks a member");
	prepare(&f);
	f.fakes[0].table.frame_type = "No type";
	expect_refused(&f, "lacks a member");
	prepare(&f);
	f.fakes[0].open_error = -EINVAL;
	expect_refused(&f, "it does not begin");
}

/* What the kernel says of a program reaches the log. */
TEST(the_kernel_is_quoted)
{
	struct fixture f;

	prepare(&f);
	f.load_error = -EACCES;
	begin(&f);
	ask(&f);
	ask(&f);
	expect_eq(f.n_said, 2);
	expect(strstr(f.said,
		      "the runtime \"b\" is not used, its frames are not shown: the kernel refused "
		      "its program: R0"));
	for (uint32_t slot = 0; slot < 256; slot++)
		expect(!runtimes_name(f.runtimes, slot));
	expect_eq(f.n_begun, 0);
	end(&f);
}

/* A runtime is loaded when a process maps what it recognizes, and asked about no other process.
 * Each file is shown to it once, or again where that failed. */
TEST(what_nobody_needs_is_not_loaded)
{
	struct fixture f;

	prepare(&f);
	f.fakes[0].recognized = 0;
	f.fakes[1].recognized = -EIO;
	f.begin_error = -EPERM;
	begin(&f);
	answer(&f, 1, 0x100, 0x200);
	ask(&f);
	ask(&f);
	expect_eq(f.fakes[0].n_looked_at, 1);
	expect_eq(f.fakes[1].n_looked_at, 2);
	expect_eq(f.loaded, 0);
	expect_eq(f.n_begun, 0);
	f.fakes[1].recognized = 1;
	ask(&f);
	ask(&f);
	expect_eq(f.fakes[1].n_looked_at, 3);
	expect_eq(f.loaded, 1u << 2);
	expect_eq(f.n_begun, 1);
	expect_eq(f.n_said, 1);
	expect(strstr(f.said, "refused the program that reports processes at their exec"));
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	expect_eq(slot_at(&f, 0x100), 2);
	runtimes_gone(f.runtimes, &f.process);
	expect_eq(f.fakes[0].n_asked + f.fakes[0].n_gone, 0);
	expect_eq(f.fakes[1].n_gone, 1);
	end(&f);
}

/* Whether it was due at this time, and asked. */
static bool retry(struct fixture *f, int64_t now_ns)
{
	if (!runtimes_retry(f->runtimes, &f->process, now_ns))
		return false;
	runtimes_process(f->runtimes, &f->process, f->world->store);
	return true;
}

/* One that finds no memory is tried again, for the processes that were to have it. */
TEST(short_memory_is_no_refusal)
{
	struct fixture f;
	int64_t due;

	prepare(&f);
	f.fakes[1].recognized = 0;
	f.load_error = -ENOMEM;
	begin(&f);
	answer(&f, 0, 0x100, 0x200);
	ask(&f);
	f.load_error = 0;
	ask(&f); /* too soon */
	expect_eq(f.n_said, 1);
	expect(strstr(f.said, "\"a\" cannot be loaded now and is tried again"));
	expect_eq(f.fakes[0].n_asked, 0);
	expect(runtimes_due(f.runtimes) < INT64_MAX);
	due = runtimes_due(f.runtimes);
	runtimes_begin_retries(f.runtimes);
	expect(retry(&f, due));
	expect_eq(f.fakes[0].n_asked, 1);
	expect_eq(runtimes_due(f.runtimes), INT64_MAX);
	end(&f);
}

/* A claim that was too early, or found no room, is asked for again: ten times each second, ten
 * times each minute, and in a new program as often. Where it came, that is all. */
TEST(early_claims_are_asked_for_again)
{
	struct fixture f;
	int64_t due = 0;

	prepare(&f);
	begin(&f);
	f.fakes[0].recognized = 0;
	f.fakes[1].n = -EAGAIN;
	ask(&f);
	for (int i = 0; i < 20; i++) {
		int64_t wait = (i < 10 ? 1 : 60) * NS_PER_SEC, now = clock_mono();

		due = runtimes_due(f.runtimes);
		expect(due > now && due >= now + wait - NS_PER_SEC &&
		       due <= now + wait + NS_PER_SEC);
		runtimes_begin_retries(f.runtimes);
		expect(!retry(&f, due - 1));
		expect_eq(runtimes_due(f.runtimes), due);
		f.fakes[1].n = i % 2 ? -EAGAIN : -ENOMEM;
		runtimes_begin_retries(f.runtimes);
		expect(retry(&f, due));
		expect_eq(f.fakes[1].n_asked, i + 2);
	}
	expect_eq(runtimes_due(f.runtimes), INT64_MAX);
	expect(!retry(&f, INT64_MAX));
	f.process.maps->generation++;
	ask(&f);
	expect(runtimes_due(f.runtimes) < INT64_MAX);
	f.fakes[1].n = 0;
	answer(&f, 1, 0x100, 0x200);
	expect(retry(&f, INT64_MAX));
	expect_eq(world_map(f.world, 1, f.process.maps), 0);
	expect_eq(slot_at(&f, 0x100), 2);
	expect(!retry(&f, INT64_MAX));
	end(&f);
}

static uint32_t resolve(struct fixture *f, uint64_t slot, uint64_t what,
			const struct andiron_runtime_frame **ret)
{
	const uint64_t words[] = {slot << 56 | what, 42};

	return runtimes_resolve(f->runtimes, &f->process, words, ret);
}

static void expect_unnamed(struct fixture *f, uint64_t slot, uint64_t what)
{
	const struct andiron_runtime_frame *frame;

	expect_eq(resolve(f, slot, what, &frame), 1);
	expect_str(abi_str(frame->function), "[fake]");
}

/* A name is the runtime's, where it is text; two words may be several functions. What has no name
 * is named by its type, alone. */
TEST(frames_have_names)
{
	const struct andiron_runtime_frame *frame;
	struct fixture f;

	prepare(&f);
	begin(&f);
	expect_eq(resolve(&f, 1, 7, &frame), 0);
	ask(&f);
	expect_eq(resolve(&f, 1, 7, &frame), 1);
	expect_str(abi_str(frame->function), "spin");
	expect_eq(frame->file.len, 0); /* it is no UTF-8 */
	expect_eq(frame->line, 42);
	f.fakes[0].n_frames = ANDIRON_RUNTIME_FRAMES;
	f.fakes[0].unnamed_at = 3;
	expect_eq(resolve(&f, 1, 7, &frame), ANDIRON_RUNTIME_FRAMES);
	expect_eq(frame[63].line, 42 + 63);
	expect_str(abi_str(frame[2].function), "spin");
	expect_str(abi_str(frame[3].function), "[fake]");
	f.fakes[0].n_frames++;
	expect_unnamed(&f, 1, 7);
	f.fakes[0].n_frames = 0;
	expect_unnamed(&f, 1, 7);
	expect_unnamed(&f, 1, 8);
	expect_eq(resolve(&f, 3, 7, &frame), 0);
	f.fakes[1].name.len = 0;
	expect_unnamed(&f, 2, 7);
	end(&f);
}
