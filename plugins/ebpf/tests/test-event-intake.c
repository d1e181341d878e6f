/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at at once, of real processes, and what waits. */
#include "ebpf/tests/test-live.h"

#include "ebpf/samples/event-intake.h"

#include "testing/test.h"

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
