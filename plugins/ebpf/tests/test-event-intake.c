/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at at once, of real processes, and what waits. */
#include "ebpf/tests/test-kernel.h"
#include "ebpf/tests/test-live.h"

#include "ebpf/samples/event-intake.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct newsroom {
	struct live *live;
	struct ebpf_options options; /* all is sampled */
	struct sample_table stacks[SAMPLER_BUFFERS];
	struct intake intake;
};

static void open_room(struct newsroom *r)
{
	memset(r, 0, sizeof(*r));
	r->live = live_new();
	r->intake = (struct intake){.options = &r->options,
				    .matcher = matcher_new(),
				    .processes = &r->live->t,
				    .stacks = r->stacks,
				    .bytes_max = 1000};
	expect(r->intake.matcher != NULL);
}

static void close_room(struct newsroom *r)
{
	intake_clear(&r->intake);
	expect(!r->intake.first && !r->intake.last && r->intake.bytes == 0);
	for (size_t i = 0; i < SAMPLER_BUFFERS; i++)
		sample_table_free(&r->stacks[i]);
	matcher_free(r->intake.matcher);
	live_free(r->live);
}

/* However long the files of others are read after it: its own are open, and it can end. */
TEST(processes_are_known_before_they_are_dealt_with)
{
	struct newsroom r;
	struct live_child child;
	const struct process *p;

	open_room(&r);
	child = live_child(r.live);
	intake_record(&r.intake, &child.record, sizeof(child.record));
	live_end(&child);
	expect(r.intake.first && r.intake.bytes == sizeof(child.record));
	expect_eq(r.intake.n_processes, 1);
	p = processes_find(&r.live->t, &child.record.key);
	expect(p && p->maps);
	live_expect_own(p);
	close_room(&r);
}

/* A snapshot says what its process looked like, and that is asked for at once, too. */
TEST(snapshots_are_kept_and_their_processes_looked_at)
{
	static const struct sampler_snapshot none;
	struct sampler_snapshot *c = malloc(sizeof(*c));
	struct newsroom r;
	struct live_child child;

	expect(c != NULL);
	open_room(&r);
	child = live_child(r.live);
	*c = none;
	c->type = SAMPLER_RECORD_SNAPSHOT;
	c->key = child.record.key;
	c->generation = child.record.generation;
	c->n = 512;
	intake_record(&r.intake, c, SAMPLER_SNAPSHOT_HEAD + 511); /* not whole */
	expect(!r.intake.first);
	intake_record(&r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
	live_end(&child);
	expect_eq(r.intake.bytes, SAMPLER_SNAPSHOT_HEAD + c->n);
	live_expect_own(processes_find(&r.live->t, &child.record.key));
	intake_record(&r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
	expect_eq(r.intake.n_left_out, 0);
	expect_eq(r.intake.bytes, 2 * (SAMPLER_SNAPSHOT_HEAD + c->n));
	intake_record(&r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
	expect_eq(r.intake.n_left_out, 1);
	expect_eq(r.intake.bytes, 2 * (SAMPLER_SNAPSHOT_HEAD + c->n));
	for (int i = 0; i < 1000; i++) /* whatever comes, there is an end */
		intake_record(&r.intake, &child.record, sizeof(child.record));
	expect_eq(r.intake.n_processes, 1000);
	expect(r.intake.bytes < 2 * r.intake.bytes_max + sizeof(child.record));
	free(c);
	close_room(&r);
}

/* Parts of a stack wait with their snapshot, for which there is half the room. */
TEST(parts_come_with_their_snapshot)
{
	static const struct sampler_snapshot none;
	struct sampler_snapshot *c = malloc(sizeof(*c));
	struct newsroom r;
	size_t before;

	expect(c != NULL);
	open_room(&r);
	r.intake.bytes_max = 64 * SAMPLER_SNAPSHOT_BYTES;
	*c = none;
	c->key = r.live->self.key;
	c->generation = r.live->self.generation;
	for (int i = 0; i < 2; i++) {
		before = r.intake.bytes;
		c->type = SAMPLER_RECORD_MORE;
		c->part = 1;
		c->n = 512;
		intake_record(&r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
		expect_eq(r.intake.bytes, before);
		c->type = SAMPLER_RECORD_SNAPSHOT;
		c->part = 0;
		c->n = SAMPLER_SNAPSHOT_BYTES;
		intake_record(&r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
		expect_eq(r.intake.bytes,
			  before + SAMPLER_SNAPSHOT_HEAD + c->n + (i == 0 ? 512 : 0));
		r.intake.bytes_max = 2 * SAMPLER_SNAPSHOT_BYTES;
	}
	free(c);
	close_room(&r);
}

/* Of a list of mappings nothing waits but whose it is. It is as long as it says, or none. */
TEST(lists_of_mappings_are_looked_at_and_go)
{
	static struct sampler_mapped mapped;
	size_t size = SAMPLER_MAPPED_HEAD + sizeof(mapped.list[0]);
	uint64_t here = (uint64_t)(uintptr_t)&open_room & ~UINT64_C(4095);
	struct newsroom r;
	struct live_child child;

	open_room(&r);
	child = live_child(r.live);
	mapped = (struct sampler_mapped){.type = SAMPLER_RECORD_MAPPED,
					 .n = 1,
					 .total = 1,
					 .key = child.record.key,
					 .generation = child.record.generation};
	mapped.list[0] = (struct sampler_mapping){.start = here, .end = here + 4096};
	live_end(&child);
	intake_record(&r.intake, &mapped, size - 1);
	mapped.n = SAMPLER_MAPPED_MAX + 1;
	intake_record(&r.intake, &mapped, sizeof(mapped));
	expect(!r.intake.first && r.live->t.all.n == 0);
	mapped.n = 1;
	intake_record(&r.intake, &mapped, size);
	expect_eq(r.intake.bytes, SAMPLER_MAPPED_HEAD);
	expect(mapset_find(processes_find(&r.live->t, &child.record.key)->maps, here));
	close_room(&r);
}

/* Where threads list what they have mapped, nobody is asked before that list had its chance. */
TEST(lists_spare_reading)
{
	static struct sampler_mapped mapped;
	uint64_t here = (uint64_t)(uintptr_t)&open_room & ~UINT64_C(4095);
	const struct process *p;
	struct newsroom r;
	struct live_child child;

	open_room(&r);
	r.intake.defer_snapshots = true;
	child = live_child(r.live);
	intake_record(&r.intake, &child.record, sizeof(child.record));
	p = processes_find(&r.live->t, &child.record.key);
	expect(p && !p->maps && p->stale);
	expect_eq(r.intake.bytes, sizeof(child.record));
	mapped = (struct sampler_mapped){.type = SAMPLER_RECORD_MAPPED,
					 .n = 1,
					 .total = 1,
					 .key = child.record.key,
					 .generation = child.record.generation};
	mapped.list[0] = (struct sampler_mapping){
		.start = here, .end = here + 4096, .flags = SAMPLER_MAPPED_VDSO};
	intake_record(&r.intake, &mapped, SAMPLER_MAPPED_HEAD + sizeof(mapped.list[0]));
	expect(p->maps && p->maps->list.n == 1 && !p->stale);
	live_end(&child);
	close_room(&r);
}

/* Nobody else's records, and halves of them, are nothing. */
TEST(other_bytes_are_passed_over)
{
	uint64_t bytes[64];
	struct newsroom r;

	open_room(&r);
	for (uint32_t type = 0; type < 16; type++) {
		memset(bytes, 0xff, sizeof(bytes));
		memcpy(bytes, &type, sizeof(type));
		for (size_t n = 0; n < sizeof(struct sampler_stack); n++)
			intake_record(&r.intake, bytes, n);
	}
	expect(!r.intake.first && r.live->t.all.n == 0);
	close_room(&r);
}

/* A runtime of all files, which is always asked too early. */
static int32_t early_recognizes(void *self, uint64_t object)
{
	return 1;
}

static int32_t early_open(void *self, const struct andiron_runtime_map *maps, uint64_t n,
			  void **ret)
{
	*ret = self;
	return 0;
}

static void early_close(void *session)
{
}

static int32_t early_claim(void *session, const struct andiron_runtime_process *process,
			   const struct andiron_runtime_mapping *mappings, uint64_t n,
			   struct andiron_runtime_claim *ret, uint64_t max)
{
	return -EAGAIN;
}

static void early_gone(void *session, const struct andiron_runtime_process *process)
{
}

static int32_t early_resolve(void *session, const struct andiron_runtime_process *process,
			     uint64_t what, uint64_t where, struct andiron_runtime_frame *ret,
			     uint64_t max)
{
	return -ENOENT;
}

static int32_t early_describe(void *session, const struct andiron_runtime_process *process,
			      char *ret, uint64_t max)
{
	return 0;
}

/* A kernel that takes some questions until a program is loaded. */
struct slow_kernel {
	int n_waits;
	bool loading, loaded;
};

static int load_slowly(void *context, uint32_t slot, const struct andiron_runtime *table,
		       void **program, struct error *err)
{
	struct slow_kernel *k = context;

	expect(*program == (k->loading ? k : NULL));
	*program = k;
	k->loading = true;
	if (k->n_waits-- > 0)
		return -EINPROGRESS;
	k->loaded = true;
	return 0;
}

static uint64_t no_maps(void *program, struct andiron_runtime_map *ret, uint64_t max)
{
	return 0;
}

static void unload(void *context, uint32_t slot, void *program)
{
	struct slow_kernel *k = context;

	expect(k->loading && program == k);
	k->loading = k->loaded = false;
}

static int begin_any(void *context)
{
	return 0;
}

static void have_any(void *context, bool any)
{
}

static void watch_any(void *context, const struct sampler_process_key *key, uint64_t generation)
{
}

static void no_log(void *context, uint32_t level, const char *text)
{
}

/* An intake with an unwinder, and one process that waits. */
struct waiting_room {
	struct newsroom r;
	struct test_kernel memory;
	struct unwind_kernel kernel;
	struct live_child child;
	struct process *p;
};

static void open_waiting_room(struct waiting_room *w)
{
	open_room(&w->r);
	test_kernel_init(&w->memory);
	w->kernel = test_kernel_all(&w->memory);
	w->r.intake.unwinder = unwinder_new(&w->kernel, &w->r.live->objects, UINT64_C(64) << 20);
	expect(w->r.intake.unwinder != NULL);
	w->child = live_child(w->r.live);
	w->p = processes_note(&w->r.live->t, &w->child.record);
	expect(w->p != NULL);
}

static void close_waiting_room(struct waiting_room *w)
{
	live_end(&w->child);
	unwinder_free(w->r.intake.unwinder);
	test_kernel_fini(&w->memory);
	close_room(&w->r);
}

/* Looks when that is due, and lets files be read. */
static void look(struct waiting_room *w)
{
	bool known = intake_look(&w->r.intake, intake_due(&w->r.intake));

	while (!known) {
		unwinder_wait(w->r.intake.unwinder, -1);
		known = unwinder_process(w->r.intake.unwinder, w->p);
	}
}

/* A look that could not read says nothing of what has changed: the looks go on. */
TEST(looks_end_when_readings_agree)
{
	struct intake_launch launch = {.after_ns = INTAKE_LOOK_NS};
	struct waiting_room w;
	struct intake *n = &w.r.intake;

	open_waiting_room(&w);
	w.r.live->t.procmap.text_only = true; /* as before Linux 6.11 */
	launch.key = w.p->key;
	expect(vec_push(&n->launches, launch));
	look(&w);
	expect(w.p->maps && w.p->stored == w.p->maps);
	for (int i = 0; i < 6; i++) {
		w.p->pace.next_ns = INT64_MAX;
		look(&w);
		expect_eq(n->launches.n, 1);
		expect_eq(n->launches.p[0].n_same, 0);
	}
	expect(n->launches.p[0].after_ns > INTAKE_SETTLED_NS);
	for (uint32_t i = 1; i <= 2; i++) {
		expect_eq(n->launches.n, 1);
		w.p->pace.next_ns = 0;
		look(&w);
	}
	expect_eq(n->launches.n, 0);
	expect_eq(intake_due(n), INT64_MAX);
	close_waiting_room(&w);
}

/* What a process reports while it is looked at, or soon after all its files were opened, opens what
 * is new, and no file again that is where it was. */
TEST(reports_of_a_launch_open_what_is_new)
{
	struct intake_launch launch = {.after_ns = INTAKE_LOOK_NS, .at_ns = INT64_MAX};
	struct newsroom r;
	uint64_t n_opened;

	open_room(&r);
	launch.key = r.live->self.key;
	intake_record(&r.intake, &r.live->self, sizeof(r.live->self));
	expect(vec_push(&r.intake.launches, launch));
	n_opened = r.live->n_opened;
	expect(n_opened > 0);
	intake_record(&r.intake, &r.live->self, sizeof(r.live->self));
	expect_eq(r.live->n_opened, n_opened);
	r.intake.launches.n = 0;
	intake_record(&r.intake, &r.live->self, sizeof(r.live->self));
	expect_eq(r.live->n_opened, n_opened);
	processes_find(&r.live->t, &r.live->self.key)->opened_ns -= INTAKE_OPEN_NS;
	intake_record(&r.intake, &r.live->self, sizeof(r.live->self));
	expect(r.live->n_opened > n_opened);
	vec_free(&r.intake.launches);
	close_room(&r);
}

/* Of a process that is gone there is nothing more to see. */
TEST(looks_end_with_their_process)
{
	struct intake_launch launch = {.after_ns = INTAKE_LOOK_NS};
	struct waiting_room w;
	struct intake *n = &w.r.intake;
	struct live_child child;

	open_waiting_room(&w);
	child = live_child(w.r.live);
	expect(processes_note(&w.r.live->t, &child.record));
	launch.key = child.record.key;
	expect(vec_push(&n->launches, launch));
	intake_look(n, intake_due(n));
	expect_eq(n->launches.n, 1);
	live_end(&child);
	intake_look(n, intake_due(n));
	expect_eq(n->launches.n, 0);
	close_waiting_room(&w);
}

/* Gives it that runtime. */
static void add_early_runtime(struct waiting_room *w, struct slow_kernel *k)
{
	static const struct andiron_runtime table = {.size = sizeof(table),
						     .walk_version = ANDIRON_WALK_VERSION,
						     .object = "x",
						     .object_bytes = 1,
						     .program = "x",
						     .frame_type = "early",
						     .recognizes = early_recognizes,
						     .open = early_open,
						     .close = early_close,
						     .claim = early_claim,
						     .gone = early_gone,
						     .resolve = early_resolve,
						     .describe = early_describe};
	const struct runtimes_kernel kernel = {k,         load_slowly, no_maps,  unload,
					       begin_any, have_any,    watch_any};
	struct runtime_requested requested = {"early", {&table, NULL}};
	struct runtimes_out out = {NULL, no_log};

	unwinder_add_runtimes(w->r.intake.unwinder, runtimes_new(&kernel, &requested, 1, &out));
	process_map(&w->r.live->t, w->p);
}

static uint64_t n_claims(const struct waiting_room *w)
{
	struct unwinder_stats stats;

	unwinder_get_stats(w->r.intake.unwinder, &stats);
	return stats.runtimes.claims;
}

/* What reports its first sample. */
static void report(struct waiting_room *w)
{
	struct intake *n = &w->r.intake;

	intake_record(n, &w->child.record, sizeof(w->child.record));
	n->session = (struct session *)w; /* is asked for nothing */
	while (!intake_process(n))
		unwinder_wait(n->unwinder, -1);
	n->session = NULL;
}

/* A process that no exec has told of is looked at again as well, if it is young and has a runtime:
 * its first claim may have been too early, or have seen half of its code. One that was forked has
 * what its parent has. */
TEST(young_processes_with_a_runtime_are_looked_at)
{
	for (int form = 0; form < 3; form++) {
		struct slow_kernel kernel = {0};
		struct waiting_room w;

		open_waiting_room(&w);
		if (form > 0)
			add_early_runtime(&w, &kernel);
		if (form == 2) {
			struct process *parent = processes_note(&w.r.live->t, &w.r.live->self);

			expect(parent != NULL);
			process_map(&w.r.live->t, parent);
		}
		report(&w);
		report(&w);
		expect_eq(w.r.intake.launches.n, form == 1 ? 1 : 0);
		close_waiting_room(&w);
		expect(!kernel.loading);
	}
}

/* After its exec's looks one is looked at again if something is new, or a claim was too early. */
TEST(settled_processes_are_not_looked_at_again)
{
	for (int form = 0; form < 3; form++) {
		struct slow_kernel kernel = {0};
		struct waiting_room w;

		open_waiting_room(&w);
		add_early_runtime(&w, &kernel);
		while (!unwinder_process(w.r.intake.unwinder, w.p))
			unwinder_wait(w.r.intake.unwinder, -1);
		w.p->settled = w.p->maps->text + (form == 1), w.p->runtimes.retry = form == 2;
		report(&w);
		expect_eq(w.r.intake.launches.n, form > 0 ? 1 : 0);
		close_waiting_room(&w);
	}
}

/* A claim that was too early is asked for again also while the process has no target, which may
 * come late. */
TEST(early_claims_wait_for_no_target)
{
	struct slow_kernel kernel = {0};
	struct waiting_room w;
	int64_t due;

	open_waiting_room(&w);
	add_early_runtime(&w, &kernel);
	while (!unwinder_process(w.r.intake.unwinder, w.p))
		unwinder_wait(w.r.intake.unwinder, -1);
	expect(!w.p->match);
	for (uint64_t i = 1; i <= 3; i++) {
		expect_eq(n_claims(&w), i);
		due = intake_due(&w.r.intake);
		expect(due < INT64_MAX);
		look(&w);
	}
	close_waiting_room(&w);
	expect(!kernel.loading);
}

/* While the program of a runtime is being loaded, a process that needs it waits; it is asked about
 * once that has come to an end, which needs no process that asks. */
TEST(loading_is_waited_for_beside)
{
	struct slow_kernel kernel = {.n_waits = 3};
	struct waiting_room w;
	struct unwinder *u;

	open_waiting_room(&w);
	add_early_runtime(&w, &kernel);
	u = w.r.intake.unwinder;
	expect(!unwinder_process(u, w.p) && !unwinder_process(u, w.p));
	expect(unwinder_reading(u) && !w.p->stored);
	expect_eq(n_claims(&w), 0);
	while (unwinder_reading(u))
		unwinder_wait(u, -1);
	expect(kernel.loaded);
	expect_eq(n_claims(&w), 0);
	while (!unwinder_process(u, w.p))
		unwinder_wait(u, -1);
	expect_eq(n_claims(&w), 1);
	close_waiting_room(&w);
	expect(!kernel.loading);
}

/* What is read for one process holds up no snapshot of another, whose files are there. */
TEST(snapshots_of_known_processes_do_not_wait)
{
	struct slow_kernel kernel = {.n_waits = 1000};
	struct sampler_snapshot *c = calloc(1, sizeof(*c));
	struct unwinder_stats stats;
	struct waiting_room w;
	struct unwinder *u;
	struct process *other;

	expect(c != NULL);
	open_waiting_room(&w);
	u = w.r.intake.unwinder;
	process_map(&w.r.live->t, w.p);
	while (!unwinder_process(u, w.p))
		unwinder_wait(u, -1);
	add_early_runtime(&w, &kernel);
	other = processes_get(&w.r.live->t, &w.r.live->self.key);
	expect(other != NULL);
	process_map(&w.r.live->t, other);
	expect(!unwinder_process(u, other) && unwinder_reading(u));
	c->type = SAMPLER_RECORD_SNAPSHOT;
	c->n = 512;
	c->key = other->key;
	c->generation = other->maps->generation;
	intake_record(&w.r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
	expect_eq(w.r.intake.bytes, SAMPLER_SNAPSHOT_HEAD + c->n);
	c->key = w.p->key;
	c->generation = w.p->maps->generation;
	intake_record(&w.r.intake, c, SAMPLER_SNAPSHOT_HEAD + c->n);
	expect_eq(w.r.intake.bytes, SAMPLER_SNAPSHOT_HEAD + c->n);
	unwinder_get_stats(u, &stats);
	expect_eq(stats.snapshots, 1);
	free(c);
	close_waiting_room(&w);
}

/* A sampler that ends meanwhile leaves nothing behind. */
TEST(what_is_being_loaded_is_given_up)
{
	struct slow_kernel kernel = {.n_waits = 1000};
	struct waiting_room w;

	open_waiting_room(&w);
	add_early_runtime(&w, &kernel);
	expect(!unwinder_process(w.r.intake.unwinder, w.p));
	expect(kernel.loading);
	close_waiting_room(&w);
	expect(!kernel.loading);
}
