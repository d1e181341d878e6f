/* SPDX-License-Identifier: Apache-2.0 */
/* See event-intake.h. */
#include "ebpf/samples/event-intake.h"

#include "ebpf/targets/sampling-filter.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

struct intake_record {
	struct intake_record *next;
	size_t size;
	struct walk_stack stacks
		[SAMPLER_COPIES]; /* of a snapshot, in `bytes`, behind what stands before its own */
	_Alignas(8) uint8_t bytes[]; /* as the ring aligns records */
};

void intake_match(struct intake *n, struct process *p)
{
	const struct match *match;

	process_identify(n->processes, p);
	match = matcher_find(n->matcher, p->key.tgid, p->root, str_of(p->container));
	/* Targets go when their process exits; what it has done until then is theirs. The
	 * interval's end has the last word. */
	if (match)
		p->match = match;
	p->match_generation = matcher_generation(n->matcher);
}

static bool is_launch(const struct intake *n, const struct sampler_process_key *key)
{
	vec_each (&n->launches, l)
		if (memcmp(&l->key, key, sizeof(*key)) == 0)
			return true;
	return false;
}

static bool has_been_opened(const struct process *p)
{
	return p->opened_ns != 0 && clock_mono() - p->opened_ns < INTAKE_OPEN_NS;
}

/* Of children that live too short to be asked, what their parent has. */
static void map_reported(struct intake *n, struct process *p, const struct sampler_process *record)
{
	struct process *parent;

	/* One that begins reports new mappings time and again. */
	if (is_launch(n, &p->key) || has_been_opened(p))
		process_look(n->processes, p);
	else
		process_map(n->processes, p);
	parent = processes_parent(n->processes, p, &record->parent);
	if (parent) {
		process_map(n->processes, parent);
		process_map(n->processes, p);
	}
	/* What it maps from now on is read at the interval's end. */
	p->stale = true;
}

/* Whether it is to be known: where all is sampled, its target may be on its way. */
static bool is_requested(const struct intake *n, const struct process *p)
{
	return p->match || sampling_filter_mode(n->options, n->matcher) == SAMPLER_ALL;
}

static bool prepare_process(struct intake *n, const struct sampler_process *record)
{
	struct process *p = processes_note(n->processes, record);

	n->n_processes++;
	if (!p)
		return false;
	intake_match(n, p);
	sampling_filter_judge(n->session, n->matcher, p);
	if (!is_requested(n, p))
		return false;
	if (!n->defer_snapshots)
		map_reported(n, p, record);
	return true;
}

/* Such a sample was selected, so its process is requested. NULL: memory is short. */
static struct process *prepare_snapshot(struct intake *n, const struct sampler_snapshot *c)
{
	struct process *p = processes_get(n->processes, &c->key);

	if (!p)
		return NULL;
	/* News of mappings is held back when it comes too often, snapshots are not. Where the
	 * thread itself has listed its mappings, that came before. */
	if ((c->end == UNWIND_END_NO_MAPPING && !n->defer_snapshots) || !p->maps ||
	    p->maps->generation != c->generation)
		p->stale = true;
	p->generation = c->generation;
	process_map(n->processes, p);
	return p;
}

/* What a process that may be gone by now has mapped. */
static void prepare_mapped(struct intake *n, const struct sampler_mapped *mapped)
{
	struct process *p = processes_get(n->processes, &mapped->key);

	if (p)
		process_take_maps(n->processes, p, mapped);
}

static bool is_mapped(const struct sampler_mapped *record, size_t size)
{
	return size >= SAMPLER_MAPPED_HEAD && record->n <= SAMPLER_MAPPED_MAX &&
	       size >= SAMPLER_MAPPED_HEAD + record->n * sizeof(record->list[0]);
}

/* Whether there is more to be done about it. */
static bool prepare(struct intake *n, uint32_t type, const void *record, size_t size)
{
	struct sampler_process process;
	struct sampler_stack head;

	if (type == SAMPLER_RECORD_PROCESS && size >= sizeof(process)) {
		memcpy(&process, record, sizeof(process));
		return prepare_process(n, &process);
	}
	if (type == SAMPLER_RECORD_STACK && size >= sizeof(head)) {
		memcpy(&head, record, sizeof(head));
		/* One that is not kept is counted there. */
		if (head.buffer < SAMPLER_BUFFERS)
			sample_table_add(&n->stacks[head.buffer], record, size);
		return false;
	}
	if (type == SAMPLER_RECORD_MAPPED && is_mapped(record, size)) {
		prepare_mapped(n, record);
		return true;
	}
	return false;
}

static uint32_t type_of(const void *record, size_t size)
{
	uint32_t type = 0;

	if (size >= sizeof(type))
		memcpy(&type, record, sizeof(type));
	return type;
}

/* Queues a record of `size` bytes, the first of them given; NULL when memory is short. */
static struct intake_record *append(struct intake *n, const void *record, size_t n_record,
				    size_t size)
{
	struct intake_record *r = malloc(sizeof(*r) + size);

	check(n_record <= size);
	if (!r)
		return NULL;
	r->next = NULL;
	r->size = size;
	memcpy(r->bytes, record, n_record);
	if (n->last)
		n->last->next = r;
	else
		n->first = r;
	n->last = r;
	n->bytes += size;
	return r;
}

/* A snapshot with all that there is of its stacks, or what is to be kept of that. */
static void append_snapshot(struct intake *n, const struct sampler_snapshot *c,
			    const struct walk_stack stacks[SAMPLER_COPIES])
{
	size_t size = SAMPLER_SNAPSHOT_HEAD;
	struct intake_record *r;
	uint8_t *to;

	for (size_t i = 0; i < SAMPLER_COPIES; i++)
		size += stacks[i].n;
	r = append(n, c, SAMPLER_SNAPSHOT_HEAD, size);
	if (!r)
		return;
	to = r->bytes + SAMPLER_SNAPSHOT_HEAD;
	for (size_t i = 0; i < SAMPLER_COPIES; i++) {
		r->stacks[i] = (struct walk_stack){to, stacks[i].n, stacks[i].at};
		if (stacks[i].n > 0)
			memcpy(to, stacks[i].p, stacks[i].n);
		to += stacks[i].n;
	}
	check(to == r->bytes + size);
}

/* False: files of its process are being read. */
static bool handle_snapshot(struct intake *n, struct process *p, const struct sampler_snapshot *c,
			    const struct walk_stack stacks[SAMPLER_COPIES])
{
	/* Others may have got its slot. */
	if (p->maps && p->maps->generation == c->generation &&
	    !unwind_knows(unwinder_store(n->unwinder), &c->key, c->generation))
		p->stored = NULL;
	if (!unwinder_process(n->unwinder, p))
		return false;
	unwinder_snapshot(n->unwinder, p, c, stacks);
	return true;
}

/* One whose process has no file that is being read, although others have. To find that out takes
 * as long as mapping it, so of one that has, it is tried again once a table has been made. */
static bool need_not_wait(struct intake *n, struct process *p, const struct sampler_snapshot *c,
			  const struct walk_stack stacks[SAMPLER_COPIES])
{
	uint64_t now = unwind_made(unwinder_store(n->unwinder)) + 1;

	if (p->stale || !p->maps || p->maps->generation != c->generation || p->tried == now)
		return false;
	p->tried = now;
	if (!handle_snapshot(n, p, c, stacks))
		return false;
	p->tried = 0;
	return true;
}

/* One that is deep takes the room of twenty others, so it is cut off where that is short. */
static void on_snapshot(struct intake *n, const struct sampler_snapshot *c)
{
	struct walk_stack stacks[SAMPLER_COPIES];
	struct process *p = prepare_snapshot(n, c);

	stack_copies_take(&n->copies, c, stacks);
	if (p && n->unwinder && unwinder_reading(n->unwinder) &&
	    (need_not_wait(n, p, c, stacks) || unwinder_file_unwind(n->unwinder, p, c, stacks)))
		return;
	if (n->bytes >= n->bytes_max) {
		n->n_left_out++;
		return;
	}
	if (n->bytes >= n->bytes_max / 2) {
		memset(stacks, 0, sizeof(stacks));
		stacks[SAMPLER_COPY_STACK] = (struct walk_stack){
			c->stack, c->n, sampler_snapshot_start(c->regs[WALK_STACK_POINTER])};
	}
	append_snapshot(n, c, stacks);
}

void intake_record(void *context, const void *record, size_t size)
{
	struct intake *n = context;
	uint32_t type = type_of(record, size);

	if (type == SAMPLER_RECORD_MORE && unwinder_is_snapshot(record, size)) {
		stack_copies_add(&n->copies, record);
	} else if (type == SAMPLER_RECORD_SNAPSHOT && unwinder_is_snapshot(record, size)) {
		on_snapshot(n, record);
	} else if (prepare(n, type, record, size) && n->bytes < 2 * n->bytes_max) {
		/* The list has been taken. */
		size = type == SAMPLER_RECORD_MAPPED ? SAMPLER_MAPPED_HEAD : size;
		append(n, record, size, size);
	}
}

void intake_prepare(struct intake *n, int64_t until)
{
	if (n->session)
		session_drain(n->session, until);
}

/* Hands what it has mapped to the unwinder, if that is known. False: its files are being read. */
static bool map_known(struct intake *n, const struct sampler_process_key *key)
{
	struct process *p = processes_find(n->processes, key);

	return !p || unwinder_process(n->unwinder, p);
}

static void note_launch(struct intake *n, const struct sampler_process *process)
{
	struct intake_launch launch = {process->key, clock_mono() + INTAKE_LOOK_NS, INTAKE_LOOK_NS};

	if (n->launches.n < INTAKE_LAUNCHES_MAX && (process->flags & SAMPLER_PROCESS_LAUNCHED))
		(void)vec_push(&n->launches, launch); /* else its first sample tells */
}

/* Whether it has begun, and then had nothing new before a sample reported it. */
static bool has_settled(const struct process *p)
{
	return p->settled != 0 && p->settled == p->maps->text && !p->runtimes.retry;
}

/* The first process of a program is not expected: a sample reports it, maybe before its runtime has
 * mapped or set up what a claim needs. So a young one is looked at as if an exec had told, once.
 * Not one that has what its parent has, or another whose mappings are known: a server may fork
 * hundreds. One of which an exec has told is looked at once more only where it got no CPU in the
 * meantime. */
static void note_young(struct intake *n, const struct sampler_process *process)
{
	struct process *p = processes_find(n->processes, &process->key);
	const struct process *parent = processes_find(n->processes, &process->parent);
	struct sampler_process launched = *process;

	if (!p || !p->speaks || p->runtimes.asked == 0 || p->looked == p->maps->generation ||
	    (parent && parent->maps && parent->maps->generation == p->maps->generation) ||
	    process->flags & SAMPLER_PROCESS_LAUNCHED || has_settled(p) ||
	    clock_boot() - (int64_t)process->key.start_ns >= INTAKE_YOUNG_NS ||
	    is_launch(n, &process->key))
		return;
	p->looked = p->maps->generation;
	launched.flags |= SAMPLER_PROCESS_LAUNCHED;
	note_launch(n, &launched);
}

int64_t intake_due(const struct intake *n)
{
	int64_t due = n->unwinder ? unwinder_due(n->unwinder) : INT64_MAX;

	vec_each (&n->launches, l)
		due = l->at_ns < due ? l->at_ns : due;
	return due;
}

/* Reads its mappings again; false: it is gone. *known is cleared if files of it are being read. */
static bool remap(struct intake *n, struct process *p, struct intake_launch *l, bool *known)
{
	const struct mapset *before = p->maps;

	if (!process_look(n->processes, p))
		return false;
	/* What could not be read now is not the same. */
	l->n_same = !p->stale && p->maps == before ? l->n_same + 1 : 0;
	*known &= unwinder_look(n->unwinder, p);
	return true;
}

/* Whether no more is expected: two readings said the same, the later after the time in which
 * programs begin, and no claim was too early. */
static bool is_settled(const struct process *p, const struct intake_launch *l)
{
	return l->n_same >= 2 && l->after_ns > INTAKE_SETTLED_NS && !p->runtimes.retry;
}

static bool look_at_launches(struct intake *n, int64_t now_ns)
{
	bool known = true;

	for (size_t i = n->launches.n; i-- > 0;) {
		struct intake_launch *l = &n->launches.p[i];
		struct process *p;

		if (l->at_ns > now_ns)
			continue;
		p = processes_find(n->processes, &l->key);
		if (p && !remap(n, p, l, &known))
			p = NULL;
		l->after_ns *= 2;
		l->at_ns = now_ns + l->after_ns;
		if (!p || l->after_ns > INTAKE_LOOK_MAX_NS || is_settled(p, l)) {
			if (p && p->maps)
				p->settled = p->maps->text;
			*l = n->launches.p[--n->launches.n];
		}
	}
	return known;
}

/* Of all processes: where all is sampled, the target of one may be on its way. */
static bool retry_claims(struct intake *n, int64_t now_ns)
{
	bool known = true;

	if (unwinder_due(n->unwinder) > now_ns)
		return true;
	unwinder_begin_retries(n->unwinder);
	vec_each (&n->processes->all, p)
		known &= unwinder_retry(n->unwinder, *p, now_ns);
	return known;
}

bool intake_look(struct intake *n, int64_t now_ns)
{
	bool known = look_at_launches(n, now_ns);

	return retry_claims(n, now_ns) && known;
}

/* Where threads list what is mapped, the list of a process that is new has come right behind the
 * report, and most of the time says all. */
static bool handle_process(struct intake *n, const void *record)
{
	struct sampler_process process;
	struct process *p;
	bool known;

	memcpy(&process, record, sizeof(process));
	p = n->defer_snapshots ? processes_find(n->processes, &process.key) : NULL;
	if (p && p->stale)
		map_reported(n, p, &process);
	note_launch(n, &process);
	known = map_known(n, &process.key);
	if (known)
		note_young(n, &process);
	return map_known(n, &process.parent) && known;
}

static bool handle_queued_snapshot(struct intake *n, const struct sampler_snapshot *c,
				   const struct walk_stack stacks[SAMPLER_COPIES])
{
	struct process *p = processes_find(n->processes, &c->key);

	return !p || handle_snapshot(n, p, c, stacks);
}

/* False: files are being read that it needs. */
static bool handle(struct intake *n, const struct intake_record *r)
{
	const void *record = r->bytes;
	uint32_t type = type_of(record, r->size);

	if (type == SAMPLER_RECORD_PROCESS)
		return handle_process(n, record);
	if (type == SAMPLER_RECORD_SNAPSHOT)
		return handle_queued_snapshot(n, record, r->stacks);
	check(type == SAMPLER_RECORD_MAPPED);
	return map_known(n, &((const struct sampler_mapped *)record)->key);
}

/* The oldest one; whoever takes it frees it. */
static struct intake_record *take(struct intake *n)
{
	struct intake_record *r = n->first;

	if (!r)
		return NULL;
	n->first = r->next;
	if (!n->first)
		n->last = NULL;
	check(n->bytes >= r->size && (n->first || n->bytes == r->size));
	n->bytes -= r->size;
	return r;
}

bool intake_process(struct intake *n)
{
	while (n->first) {
		check(n->unwinder && n->session);
		if (!handle(n, n->first))
			return false;
		free(take(n));
	}
	return true;
}

void intake_clear(struct intake *n)
{
	struct intake_record *r;

	while ((r = take(n)))
		free(r);
	vec_free(&n->launches);
	stack_copies_free(&n->copies);
}
