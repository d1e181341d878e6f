/* SPDX-License-Identifier: Apache-2.0 */
/* From counts to a batch, and the small parts beside it: stacks, CPU lists. */
#include "ebpf/kernel/online-cpus.h"
#include "ebpf/samples/batch-rows.h"
#include "bpfwire/unwind-tables.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

/* An objects service that knows the kernel alone and counts references. */
static int32_t info(void *self, uint64_t object, struct andiron_object_info *ret)
{
	ret->file_id = (struct andiron_str){"kernel-file-id", 14};
	return object == ANDIRON_OBJECT_KERNEL ? 0 : -ENOENT;
}

static void retain(void *self, uint64_t object)
{
	++*(int *)self;
}

static void release(void *self, uint64_t object)
{
	--*(int *)self;
}

static const struct andiron_objects service = {
	.size = sizeof(service), .info = info, .retain = retain, .release = release};

static const struct target_label labels_a[] = {{STR("service_name"), STR("a")}};
static const struct target_label labels_b[] = {{STR("service_name"), STR("b")}};
static const struct match matches[2] = {{.labels = labels_a, .n_labels = 1, .fingerprint = 1},
					{.labels = labels_b, .n_labels = 1, .fingerprint = 2}};

static const uint64_t pcs[] = {0xffffffff81000010u, 0xffffffff81000020u, 0x1010, 0x101f, 0x8fff};
static const struct sampler_stack stack = {.n_kernel = 2,
					   .n_user = 3,
					   .end = UNWIND_END_TRUNCATED,
					   .key.comm = "thread",
					   .key.tid = 77};

struct fixture {
	struct process process;
	struct rows rows;
	struct andiron_extension objects;
	int references;
	struct rows_options options;
};

static int no_file(void *context, const struct maps_line *line, char *reopen, size_t n)
{
	return -1;
}

static void init(struct fixture *f)
{
	*f = (struct fixture){.process = {.key = {.tgid = 42}, .comm = "prog", .container = "a1"}};
	f->process.maps = mapset_parse(STR("1000-2000 r-xp 0 0:0 0 [vdso]\n"), NULL, no_file, NULL,
				       NULL, NULL);
	f->objects = (struct andiron_extension){&service, &f->references};
	f->options = (struct rows_options){
		.head = {.start_ns = 1, .end_ns = 2, .producer = 3, .sequence = 4},
		.period_ns = 1000,
		.pid_label = true,
		.comm_label = true,
		.objects = &f->objects};
	for (int i = 0; i < 3; i++)
		expect(vec_push(&f->rows.list, ((struct row){.process = &f->process,
							     .match = &matches[i % 2],
							     .stack = &stack,
							     .pcs = pcs,
							     .samples = 10})));
}

static void fini(struct fixture *f)
{
	mapset_free(f->process.maps);
	vec_free(&f->rows.list);
	expect_eq(f->references, 0);
}

/* Rows come grouped by target, with value = samples * period, frames leaf first, return addresses
 * moved back into the call, and a marker at the cut. */
TEST(rows_become_a_batch)
{
	static const uint64_t addresses[] = {0xffffffff81000010u, 0xffffffff8100001fu, 0x10, 0x1f,
					     0x8fff};
	const struct andiron_batch *batch;
	struct andiron_stack s;
	struct andiron_row row;
	struct batch_view v;
	struct fixture f;
	struct str text;
	int64_t pid;

	init(&f);
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	expect_eq(batch->samples, 30);
	expect_eq(batch_count(&v, ANDIRON_COL_GROUP), 2);
	expect_eq(batch_group(&v, 0).n_rows, 2);
	row = batch_row(&v, 0);
	expect_eq(row.value, 10000);
	expect(batch_row_int(&v, &row, STR("pid"), &pid) && pid == 42);
	expect(batch_row_str(&v, &row, STR("process"), &text));
	expect_str(text, "prog");
	expect(batch_row_str(&v, &row, STR("comm"), &text));
	expect_str(text, "thread");
	expect(batch_row_int(&v, &row, STR("tid"), &pid) && pid == 77);
	s = batch_stack(&v, row.stack);
	expect_eq(s.length, 6);
	for (uint32_t i = 0; i < 5; i++)
		expect_eq(batch_location(&v, batch_frame(&v, s.start + i)).address, addresses[i]);
	expect_eq(batch_location(&v, batch_frame(&v, s.start)).kind, ANDIRON_FRAME_KERNEL);
	expect_eq(batch_location(&v, batch_frame(&v, s.start + 2)).kind, ANDIRON_FRAME_NATIVE);
	expect_eq(batch_location(&v, batch_frame(&v, s.start + 5)).kind, ANDIRON_FRAME_MARKER);
	expect_eq(batch_row(&v, 2).stack, row.stack); /* equal stacks are one */
	expect(f.references > 0);
	batch_release(batch);
	fini(&f);
}

/* A stack from before an exec is not that of the program now at the same addresses. */
TEST(frames_are_those_of_their_exec_generation)
{
	struct sampler_stack before = stack;
	const struct andiron_batch *batch;
	struct mapset *old;
	struct batch_view v;
	struct fixture f;

	init(&f);
	old = mapset_parse(STR("1000-2000 r-xp 0 0:0 0 before\n"), NULL, no_file, NULL, NULL, NULL);
	old->generation = UINT64_C(0x1234) << 48;
	f.process.maps->older = old;
	before.flags = sampler_stack_exec(old->generation);
	f.rows.list.p[0].stack = &before;
	f.rows.list.n = 1;
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	for (uint32_t i = 2; i < 4; i++) {
		uint32_t frame = batch_frame(&v, batch_stack(&v, batch_row(&v, 0).stack).start + i);

		expect_str(batch_str(&v, batch_mapping(&v, batch_location(&v, frame).mapping).file),
			   "before");
	}
	batch_release(batch);
	fini(&f);
}

static void expect_ends(uint32_t end, uint16_t n_user, const char *text)
{
	struct sampler_stack ended = stack;
	const struct andiron_batch *batch;
	struct andiron_location l;
	struct andiron_stack s;
	struct batch_view v;
	struct fixture f;

	init(&f);
	ended.end = end;
	ended.n_user = n_user;
	f.rows.list.p[0].stack = &ended;
	f.rows.list.n = 1;
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	s = batch_stack(&v, batch_row(&v, 0).stack);
	l = batch_location(&v, batch_frame(&v, s.start + s.length - 1));
	expect_eq(l.kind, ANDIRON_FRAME_MARKER);
	expect_str(batch_str(&v, batch_function(&v, batch_line(&v, l.line_start).function).name),
		   text);
	batch_release(batch);
	fini(&f);
}

/* Of a file that has no table another is said than of one whose table comes too late. */
TEST(stacks_say_why_they_end)
{
	expect_ends(UNWIND_END_NO_INFO, 2, "[no unwind info: [vdso]]");
	expect_ends(UNWIND_END_NEW, 2, "[not read yet: [vdso]]");
	expect_ends(UNWIND_END_NEW, 3, "[new process]"); /* nothing is mapped there */
	expect_ends(UNWIND_END_CUT, 2, "[stack cut off]");
}

/* A runtime that loads anywhere and knows one function. */
static int32_t open_toy(void *self, const struct andiron_runtime_map *maps, uint64_t n, void **ret)
{
	*ret = self;
	return 0;
}

static void close_toy(void *session)
{
}

static int32_t claim_nothing(void *session, const struct andiron_runtime_process *process,
			     const struct andiron_runtime_mapping *mappings, uint64_t n,
			     struct andiron_runtime_claim *ret, uint64_t max)
{
	return 0;
}

static void gone(void *session, const struct andiron_runtime_process *process)
{
}

static int32_t resolve(void *session, const struct andiron_runtime_process *process, uint64_t what,
		       uint64_t where, struct andiron_runtime_frame *ret, uint64_t max)
{
	expect_eq(process->pid, 42);
	if (what == 0xabcdee) { /* inlined into the next */
		ret[1] = ret[0];
		ret[1].function = (struct andiron_str){"outer", 5};
	}
	if (what == 0xabcded || what == 0xabcdec) {
		ret->flags = what & 1 ? ANDIRON_RUNTIME_MARKER : ANDIRON_RUNTIME_NOTE;
		ret->function = (struct andiron_str){what & 1 ? "[Toy lacks]" : "[toy waits]", 11};
		return 1;
	}
	if (what != 0xabcdef && what != 0xabcdee)
		return -ENOENT;
	ret->function = (struct andiron_str){"spin", 4};
	ret->file = (struct andiron_str){"a.toy", 5};
	ret->line = (uint32_t)where;
	ret->first_line = 3;
	return what == 0xabcdee ? 2 : 1;
}

static int32_t describe(void *session, const struct andiron_runtime_process *process, char *ret,
			uint64_t max)
{
	return 0;
}

static int32_t recognizes(void *self, uint64_t object)
{
	return 1;
}

static int begin(void *context)
{
	return 0;
}

static int load(void *context, uint32_t slot, const struct andiron_runtime *table,
		void **ret_program, struct error *err)
{
	return 0;
}

static uint64_t no_maps(void *program, struct andiron_runtime_map *ret, uint64_t max)
{
	return 0;
}

static void unload(void *context, uint32_t slot, void *program)
{
}

static __attribute__((noreturn)) void say_nothing(void *context, uint32_t level, const char *text)
{
	test_fail(__FILE__, __LINE__, "%s", text);
}

static struct runtimes *one_runtime(void)
{
	/* clang-format off */
	static const struct andiron_runtime table = {
		sizeof(table), ANDIRON_WALK_VERSION, "", 0, "", "toyish", recognizes,
		open_toy, close_toy, claim_nothing, gone, resolve, describe};
	/* clang-format on */
	static const struct runtime_requested requested = {"toy", {&table, NULL}};
	static const struct runtimes_kernel kernel = {NULL,  load, no_maps, unload,
						      begin, NULL, NULL};
	static const struct runtimes_out out = {NULL, say_nothing};
	struct runtimes *t = runtimes_new(&kernel, &requested, 1, &out);

	expect(t && runtimes_load(t, 1) == 0);
	return t;
}

/* Where a frame is: its kind, function and line; expects that it has one line. */
static void expect_frame(const struct batch_view *v, uint32_t frame, uint32_t kind,
			 const char *function, uint32_t line)
{
	struct andiron_location l = batch_location(v, batch_frame(v, frame));
	struct andiron_line at;

	expect_eq(l.kind, kind);
	expect_eq(l.n_lines, function != NULL);
	if (!function)
		return;
	at = batch_line(v, l.line_start);
	expect_eq(at.line, line);
	expect_str(batch_str(v, batch_function(v, at.function).name), function);
	if (kind == ANDIRON_FRAME_RUNTIME)
		expect_str(batch_str(v, l.runtime), "toyish");
	if (kind == ANDIRON_FRAME_MARKER) /* a runtime's, where it lacks something */
		expect_eq(batch_function(v, at.function).file != 0, function[1] == 'T');
}

static struct andiron_attribute label_at(const struct batch_view *v, uint32_t group, uint32_t i)
{
	return batch_attribute_at(v, batch_group(v, group).label_start + i);
}

/* The value of a group's label; empty: it has none. */
static struct str label_of(const struct batch_view *v, uint32_t group, const char *name)
{
	for (uint32_t i = 0; i < batch_group(v, group).n_labels; i++)
		if (str_is(batch_str(v, label_at(v, group, i).key), name))
			return batch_str(v, (uint32_t)label_at(v, group, i).value);
	return STR_NULL;
}

/* What all processes of a target have in common, its group says; not what they differ in. */
TEST(groups_say_what_their_processes_have_in_common)
{
	struct mapset other = {.exe = STR("/bin/sh")};
	struct process shell = {.key = {.tgid = 43}, .maps = &other, .container = "b2"};
	const struct andiron_batch *batch;
	struct batch_view v;
	struct fixture f;

	for (int mixed = 0; mixed < 2; mixed++) {
		init(&f);
		f.process.maps->exe = STR("/usr/bin/python3.11");
		if (mixed)
			f.rows.list.p[2].process = &shell; /* as the first one's target */
		expect_eq(rows_to_batch(&f.rows, &f.options, &batch) ?: batch_view_init(&v, batch),
			  0);
		expect_str(label_of(&v, 0, "__process_executable_name"), mixed ? "" : "python3.11");
		expect_str(label_of(&v, 1, "__process_executable_path"), "/usr/bin/python3.11");
		expect_str(label_of(&v, 0, "__container_id__"), mixed ? "" : "a1");
		expect_str(label_of(&v, 1, "__process_pid__"), "42");
		for (uint32_t i = 1; i < batch_group(&v, 1).n_labels; i++)
			expect(str_cmp(batch_str(&v, label_at(&v, 1, i - 1).key),
				       batch_str(&v, label_at(&v, 1, i).key)) < 0);
		batch_release(batch);
		fini(&f);
	}
}

/* One pair may be several functions, the inlined first, in one location; or a marker. */
TEST(pairs_are_frames_or_markers)
{
	static const uint64_t slot = UINT64_C(1) << 56 | 0xabcde0;
	static const uint64_t words[] = {slot | 14, 7, slot | 13, 7, slot | 12, 7};
	static const struct sampler_stack two = {.n_user = 6, .end = UNWIND_END_COMPLETE};
	const struct andiron_batch *batch;
	struct andiron_location l;
	struct batch_view v;
	struct fixture f;
	uint32_t at;

	init(&f);
	f.options.runtimes = one_runtime();
	f.rows.list.n = 1;
	f.rows.list.p[0].stack = &two;
	f.rows.list.p[0].pcs = words;
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	at = batch_stack(&v, batch_row(&v, 0).stack).start;
	l = batch_location(&v, batch_frame(&v, at));
	expect_eq(l.n_lines, 2);
	expect_eq(batch_function(&v, batch_line(&v, l.line_start).function).start_line, 3);
	expect_str(batch_str(&v,
			     batch_function(&v, batch_line(&v, l.line_start + 1).function).name),
		   "outer");
	expect_frame(&v, at + 1, ANDIRON_FRAME_MARKER, "[Toy lacks]", 0);
	expect_frame(&v, at + 2, ANDIRON_FRAME_MARKER, "[toy waits]", 0);
	batch_release(batch);
	runtimes_free(f.options.runtimes);
	fini(&f);
}

/* Words with a slot that is in use are frames of two words, named by the runtime, one location each
 * function and line; with another top byte, or cut off, they are addresses. */
TEST(runtimes_name_their_frames)
{
	static const uint64_t slot = UINT64_C(1) << 56;
	static const uint64_t words[] = {0x1010, slot | 0xabcdef, 7,      slot | 0xabcdef,
					 8,      slot | 0xabcdef, 7,      slot | 1,
					 7,      slot << 1 | 5,   0x1020, slot | 0xabcdef};
	static const struct sampler_stack mixed = {
		.n_user = 12, .end = UNWIND_END_SWITCHES, .id = 2};
	const struct andiron_batch *batch;
	struct andiron_stack s;
	struct batch_view v;
	struct fixture f;
	uint32_t at;

	init(&f);
	f.options.runtimes = one_runtime();
	for (size_t i = 0; i < 3; i++) {
		f.rows.list.p[i].stack = &mixed;
		f.rows.list.p[i].pcs = words;
	}
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	s = batch_stack(&v, batch_row(&v, 0).stack);
	expect_eq(s.length, 9);
	at = s.start;
	expect_frame(&v, at, ANDIRON_FRAME_NATIVE, NULL, 0);
	expect_frame(&v, at + 1, ANDIRON_FRAME_RUNTIME, "spin", 7);
	expect_frame(&v, at + 2, ANDIRON_FRAME_RUNTIME, "spin", 8);
	expect_eq(batch_frame(&v, at + 3), batch_frame(&v, at + 1));
	expect_frame(&v, at + 4, ANDIRON_FRAME_RUNTIME, "[toyish]", 0);
	expect_frame(&v, at + 5, ANDIRON_FRAME_NATIVE, NULL, 0);
	expect_frame(&v, at + 6, ANDIRON_FRAME_NATIVE, NULL, 0);
	expect_frame(&v, at + 7, ANDIRON_FRAME_NATIVE, NULL, 0);
	expect_frame(&v, at + 8, ANDIRON_FRAME_MARKER, "[runtime switches]", 0);
	batch_release(batch);
	runtimes_free(f.options.runtimes);
	fini(&f);
}

/* Without pid_label there is no trace of the process. */
TEST(pid_stays_out_unless_asked_for)
{
	const struct andiron_batch *batch;
	struct andiron_row row;
	struct batch_view v;
	struct fixture f;
	struct str text;
	int64_t pid;

	init(&f);
	f.options.pid_label = f.options.comm_label = false;
	f.options.comm_frame = true;
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	row = batch_row(&v, 0);
	expect(!batch_row_int(&v, &row, STR("pid"), &pid));
	expect(!batch_row_str(&v, &row, STR("process"), &text));
	expect(!batch_row_str(&v, &row, STR("comm"), &text));
	expect_eq(batch_stack(&v, row.stack).length, 7);
	batch_release(batch);
	fini(&f);
}

/* No rows, no batch. */
TEST(nothing_makes_no_batch)
{
	const struct andiron_batch *batch;
	struct rows rows = {0};
	struct rows_options options = {0};

	expect_eq(rows_to_batch(&rows, &options, &batch), 0);
	expect(!batch);
}

static int make(void *context)
{
	struct fixture *f = context;
	const struct andiron_batch *batch = NULL;
	int r = rows_to_batch(&f->rows, &f->options, &batch);

	if (batch)
		batch_release(batch);
	return r;
}

TEST(making_survives_out_of_memory)
{
	struct fixture f;

	init(&f);
	test_each_failing_allocation(make, &f);
	fini(&f);
}

/* Waits have a profile of their own, whose value is their time: groups and a type of their own, for
 * the same target. */
TEST(waits_are_another_profile)
{
	static const struct target_label labels[] = {{STR("__name__"), STR("process_cpu")},
						     {STR("service_name"), STR("a")}};
	const struct match match = {.labels = labels, .n_labels = 2, .fingerprint = 1};
	struct sampler_stack wait = stack;
	const struct andiron_batch *batch;
	struct andiron_profile_type type;
	struct batch_view v;
	struct fixture f;

	init(&f);
	wait.flags = SAMPLER_STACK_OFF_CPU;
	wait.id = 123456;
	vec_each (&f.rows.list, row) {
		row->match = &match;
		if (row == f.rows.list.p)
			row->stack = &wait;
	}
	expect_eq(rows_to_batch(&f.rows, &f.options, &batch), 0);
	expect_eq(batch_view_init(&v, batch), 0);
	expect_eq(batch_count(&v, ANDIRON_COL_GROUP), 2);
	for (uint32_t g = 0; g < 2; g++) {
		struct andiron_group group = batch_group(&v, g);
		struct andiron_row row = batch_row(&v, group.row_start);
		struct str name;

		type = batch_type(&v, row.type);
		expect(batch_group_label(&v, &group, STR("__name__"), &name));
		expect(str_eq(name, batch_str(&v, type.name)));
		expect_str(batch_str(&v, type.name), g ? "off_cpu" : "process_cpu");
		expect_str(batch_str(&v, type.type), g ? "off_cpu" : "cpu");
		expect_str(batch_str(&v, type.unit), "nanoseconds");
		expect_eq(type.period, g ? 0 : 1000);
		expect_eq(group.n_rows, g ? 1 : 2);
		expect_eq(row.value, g ? 123456 : 10000);
		expect_eq(row.samples, 10);
	}
	batch_release(batch);
	fini(&f);
}

static int count_cpu(void *context, int cpu)
{
	*(uint64_t *)context |= UINT64_C(1) << cpu;
	return 0;
}

/* The kernel's notation of CPU lists. */
TEST(cpu_lists)
{
	static const char *const broken[] = {"", "x", "3-1", "1-", "-1", "1,,2", "99999999999"};
	uint64_t mask = 0;

	expect_eq(cpu_list_each("0-3,8,10-11\n", count_cpu, &mask), 0);
	expect_eq(mask, 0xd0f);
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		expect_eq(cpu_list_each(broken[i], count_cpu, &mask), -EINVAL);
}
