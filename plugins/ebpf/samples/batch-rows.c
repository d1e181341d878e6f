/* SPDX-License-Identifier: Apache-2.0 */
/* See batch-rows.h. */
#include "ebpf/samples/batch-rows.h"

#include "base/search.h"
#include "bpfwire/unwind-tables.h"

#include "abi/value.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OFF_CPU "off_cpu" /* the profile of waits */

/* Both walks, their markers and the comm. */
#define FRAMES_MAX (ANDIRON_WALK_WORDS + 3)

struct making {
	struct batch_builder *b;
	const struct rows_options *options;
	uint32_t type;
	uint32_t off_cpu_type; /* INDEX_NONE until there is a wait */
	uint32_t kernel;       /* mapping */
	bool register_lost;    /* the stack at hand has ended so */
	/* Mappings of the batch by file, remembered for the process at hand. */
	const struct mapping *last;
	uint32_t last_mapping;
	int result;
};

static uint32_t add_string(struct making *m, struct andiron_str s)
{
	return s.len ? batch_add_string(m->b, abi_str(s)) : 0;
}

/* Named by its object where `name` is empty. */
static uint32_t add_object_mapping(struct making *m, uint64_t object, struct str name)
{
	const struct andiron_objects *service = m->options->objects->table;
	void *self = m->options->objects->self;
	struct andiron_object_info info = {.size = sizeof(info)};
	struct andiron_mapping mapping = {.object = object};
	uint32_t index;

	if (service->info(self, object, &info) == 0) {
		mapping.gnu_build_id = add_string(m, info.gnu_build_id);
		mapping.go_build_id = add_string(m, info.go_build_id);
		mapping.file_id = add_string(m, info.file_id);
	}
	mapping.file = name.n ? batch_add_string(m->b, name) : add_string(m, info.path);
	index = batch_add_mapping(m->b, &mapping);
	service->retain(self, object);
	if (!batch_hold_object(m->b, m->options->objects, object) && m->result == 0)
		m->result = -ENOMEM;
	return index;
}

static uint32_t add_mapping(struct making *m, const struct mapping *mapping)
{
	struct andiron_mapping named = {0};

	if (mapping == m->last)
		return m->last_mapping;
	if (mapping->file) {
		m->last_mapping =
			add_object_mapping(m, mapped_file_object(mapping->file), STR_NULL);
	} else {
		named.file = batch_add_string(m->b, mapping->name);
		m->last_mapping = batch_add_mapping(m->b, &named);
	}
	m->last = mapping;
	return m->last_mapping;
}

/* Tells the store what its tables are used for, and what they lack. */
static void note_use(const struct making *m, const struct mapping *mapping, uint64_t address)
{
	struct unwind *store = m->options->store;

	if (store && mapping->file)
		unwind_used(store, mapping->file, address);
	if (store && m->register_lost && (mapping->file || str_is(mapping->name, "[vdso]")))
		unwind_want_registers(store, mapping->file);
}

/* The mapping that holds an address of the row's stack. */
static const struct mapping *mapping_of(const struct row *row, uint64_t at)
{
	return mapset_find_exec(row->process->maps, row->stack->flags & SAMPLER_STACK_EXEC, at);
}

static uint32_t add_user_frame(struct making *m, const struct row *row, uint64_t at)
{
	struct andiron_location location = {.kind = ANDIRON_FRAME_NATIVE};
	const struct mapping *mapping = mapping_of(row, at);

	location.address = at;
	if (mapping) {
		location.mapping = add_mapping(m, mapping);
		location.address = mapping_address(mapping, at);
		note_use(m, mapping, location.address);
	}
	return batch_add_location(m->b, &location);
}

/* What a runtime says in place of a frame; false: it is a frame. */
static bool is_marker(const struct andiron_runtime_frame *frames, uint32_t n)
{
	return n == 1 && (frames->flags & (ANDIRON_RUNTIME_MARKER | ANDIRON_RUNTIME_NOTE));
}

static uint64_t hash_frame(const struct andiron_runtime_frame *frame, uint64_t before)
{
	return hash_mix(hash_mix(hash_str(abi_str(frame->function)) ^ frame->line,
				 hash_str(abi_str(frame->file))),
			before);
}

/* Functions of a runtime that stand in one another, of two words. Of two processes the same words
 * may be two functions, so what distinguishes one location from another is its names. */
static uint32_t add_runtime_frame(struct making *m, const struct process *p, const uint64_t *words)
{
	uint32_t slot = (uint32_t)(words[0] >> 56), n;
	struct str type = str_of(runtimes_frame_type(m->options->runtimes, slot));
	struct andiron_location location = {.kind = ANDIRON_FRAME_RUNTIME};
	const struct andiron_runtime_frame *frames;
	struct andiron_line lines[ANDIRON_RUNTIME_FRAMES];

	n = runtimes_resolve(m->options->runtimes, p, words, &frames);
	check(n > 0 && n <= ANDIRON_RUNTIME_FRAMES);
	if (is_marker(frames, n))
		return batch_add_marker_of(m->b, abi_str(frames->function),
					   frames->flags & ANDIRON_RUNTIME_NOTE ? STR_NULL : type);
	location.runtime = batch_add_string(m->b, type);
	for (uint32_t i = 0; i < n; i++) {
		struct andiron_function function = {.name = add_string(m, frames[i].function),
						    .file = add_string(m, frames[i].file),
						    .start_line = frames[i].first_line};

		lines[i] = (struct andiron_line){.function = batch_add_function(m->b, &function),
						 .line = frames[i].line};
		location.address = hash_frame(&frames[i], location.address);
	}
	location.address |= 1;
	return batch_add_named(m->b, &location, lines, n);
}

/* The process's frames that stand in the words from `i` on: one, of one word or of two. An address
 * in a slot's place is no address of a process; a stack that leads there ends with it. */
static uint32_t add_process_frame(struct making *m, const struct row *row, const uint64_t *words,
				  uint32_t *i)
{
	uint32_t at = *i, slot = (uint32_t)(words[at] >> 56);
	bool runtime = m->options->runtimes && at + 2 <= row->stack->n_user &&
		       runtimes_name(m->options->runtimes, slot);

	*i += runtime ? 2 : 1;
	return runtime ? add_runtime_frame(m, row->process, &words[at])
		       : add_user_frame(m, row, words[at]);
}

/* Whether only the first word of a runtime's frame is there: the stack of a wait was cut off behind
 * it. */
static bool is_half(const struct making *m, const struct sampler_stack *stack,
		    const uint64_t *words, uint32_t i)
{
	const struct runtimes *runtimes = m->options->runtimes;

	return i + 1u == stack->n_user && sampler_is_wait(stack) && runtimes &&
	       runtimes_name(runtimes, (uint32_t)(words[i] >> 56));
}

static uint32_t add_kernel_frame(struct making *m, uint64_t pc, bool exact)
{
	struct andiron_location location = {
		.kind = ANDIRON_FRAME_KERNEL,
		.address = exact || pc == 0 ? pc : pc - 1,
		.mapping = m->kernel,
	};

	return batch_add_location(m->b, &location);
}

/* The file of a mapping without its folders, for people. */
static struct str short_name(const struct making *m, const struct mapping *mapping)
{
	const struct andiron_objects *service = m->options->objects->table;
	struct andiron_object_info info = {.size = sizeof(info)};
	struct str name = mapping->name;
	size_t slash;

	if (mapping->file &&
	    service->info(m->options->objects->self, mapped_file_object(mapping->file), &info) == 0)
		name = abi_str(info.path);
	slash = str_rfind(name, '/');
	return slash < name.n ? str_skip(name, slash + 1) : name;
}

/* What stands in place of the frames that a walk did not reach. */
static uint32_t add_end(struct making *m, const struct row *row, uint64_t last)
{
	static const char *const texts[UNWIND_ENDS] = {
		[UNWIND_END_TRUNCATED] = "[truncated]",
		[UNWIND_END_NO_INFO] = "[no unwind info: ",
		[UNWIND_END_NO_PAGE] = "[page not present]",
		[UNWIND_END_NO_MAPPING] = "[not mapped]",
		[UNWIND_END_REGISTER] = "[register lost: ",
		[UNWIND_END_BROKEN] = "[broken stack]",
		[UNWIND_END_NEW] = "[new process]",
		[UNWIND_END_COMPAT] = "[32-bit]",
		[UNWIND_END_SWITCHES] = "[runtime switches]",
		[UNWIND_END_RUNTIME] = "[runtime]",
		[UNWIND_END_CUT] = "[stack cut off]",
	};
	const char *text = row->stack->end < UNWIND_ENDS ? texts[row->stack->end]
							 : "[broken stack]";
	const struct mapping *mapping = mapping_of(row, last);
	struct str name = mapping ? short_name(m, mapping) : STR("?");
	char whole[256];

	check(text);
	if (row->stack->end == UNWIND_END_NEW && mapping) /* known by now, but not in time */
		text = "[not read yet: ";
	if (text[strlen(text) - 1] != ' ')
		return batch_add_marker(m->b, str_of(text));
	snprintf(whole, sizeof(whole), "%s%.*s]", text, (int)(name.n < 200 ? name.n : 200), name.p);
	return batch_add_marker(m->b, str_of(whole));
}

static bool ends_whole(const struct sampler_stack *stack)
{
	return stack->end == UNWIND_END_COMPLETE || stack->end == UNWIND_END_NOTHING;
}

static uint32_t add_stack(struct making *m, const struct row *row)
{
	uint32_t frames[FRAMES_MAX], n = 0;
	const struct sampler_stack *stack = row->stack;
	const uint64_t *words = &row->pcs[stack->n_kernel];

	check(stack->n_kernel + stack->n_user <= ANDIRON_WALK_WORDS);
	m->register_lost = stack->end == UNWIND_END_REGISTER;
	for (uint32_t i = 0; i < stack->n_kernel; i++)
		frames[n++] = add_kernel_frame(m, row->pcs[i], i == 0);
	if (stack->flags & SAMPLER_STACK_KERNEL_CUT)
		frames[n++] = batch_add_marker(m->b, STR("[truncated]"));
	for (uint32_t i = 0; i < stack->n_user && !is_half(m, stack, words, i);)
		frames[n++] = add_process_frame(m, row, words, &i);
	if (!ends_whole(stack))
		frames[n++] = add_end(m, row, stack->n_user ? words[stack->n_user - 1] : 0);
	if (m->options->comm_frame && row->stack->key.comm[0])
		frames[n++] =
			batch_add_marker(m->b, (struct str){row->stack->key.comm,
							    strnlen(row->stack->key.comm,
								    sizeof(row->stack->key.comm))});
	check(n <= FRAMES_MAX);
	return batch_add_stack(m->b, frames, n);
}

static uint32_t add_attributes(struct making *m, const struct row *row, uint32_t *ret_n)
{
	uint32_t attributes[4], n = 0;

	if (m->options->pid_label) {
		attributes[n++] = batch_add_int_attribute(m->b, STR("pid"), row->process->key.tgid);
		attributes[n++] =
			batch_add_str_attribute(m->b, STR("process"), str_of(row->process->comm));
	}
	if (m->options->comm_label && row->stack->key.comm[0])
		attributes[n++] = batch_add_str_attribute(
			m->b, STR("comm"),
			(struct str){row->stack->key.comm,
				     strnlen(row->stack->key.comm, sizeof(row->stack->key.comm))});
	if (row->stack->key.tid)
		attributes[n++] = batch_add_int_attribute(m->b, STR("tid"), row->stack->key.tid);
	*ret_n = n;
	return n ? batch_add_attributes(m->b, attributes, n) : 0;
}

static bool is_wait(const struct row *row)
{
	return sampler_is_wait(row->stack);
}

/* Waits have groups of their own, since what a profile is called is a label. */
static bool is_same_group(const struct row *a, const struct row *b)
{
	return a->match->fingerprint == b->match->fingerprint && is_wait(a) == is_wait(b);
}

/* What all processes of a group's rows have in common, for writers. */
struct common {
	struct str exe, container;
	char pid[16];
};

/* Of the rows from this one on. Empty is what differs, or is not known of one. */
static struct common common_of_group(const struct rows *rows, const struct row *first)
{
	const struct row *end = rows->list.p + rows->list.n;
	struct common all = {
		.exe = first->process->maps ? first->process->maps->exe : STR_NULL,
		.container = str_of(first->process->container),
	};

	snprintf(all.pid, sizeof(all.pid), "%" PRIu32, first->process->key.tgid);
	for (const struct row *row = first + 1; row < end && is_same_group(row, first); row++) {
		const struct process *p = row->process;

		if (p == row[-1].process)
			continue;
		if (!p->maps || !str_eq(all.exe, p->maps->exe))
			all.exe = STR_NULL;
		if (!str_is(all.container, p->container))
			all.container = STR_NULL;
		if (p->key.tgid != first->process->key.tgid)
			all.pid[0] = '\0';
	}
	return all;
}

/* Adds a label where its name belongs, unless there is one of that name. */
static void insert_label(struct target_label *labels, uint32_t *n, struct target_label label)
{
	uint32_t at = *n;

	while (at > 0 && str_cmp(labels[at - 1].name, label.name) >= 0)
		at--;
	if (!label.value.n || (at < *n && str_eq(labels[at].name, label.name)))
		return;
	memmove(&labels[at + 1], &labels[at], (*n - at) * sizeof(*labels));
	labels[at] = label;
	++*n;
}

/* The target's labels, and what its processes have in common. False when the batch cannot go on. */
static bool begin_group(struct making *m, const struct row *first, const struct common *common)
{
	const struct match *match = first->match;
	struct str exe = common->exe;
	size_t slash = str_rfind(exe, '/');
	const struct target_label known[] = {
		{STR("__container_id__"), common->container},
		{STR("__process_executable_name"), slash < exe.n ? str_skip(exe, slash + 1) : exe},
		{STR("__process_executable_path"), exe},
		{STR("__process_pid__"), str_of(common->pid)},
	};
	const size_t n_known = sizeof(known) / sizeof(known[0]);
	struct target_label *labels = calloc(match->n_labels + n_known, sizeof(*labels));
	uint32_t *indices = calloc(match->n_labels + n_known, sizeof(*indices));
	uint32_t group = INDEX_NONE, n = (uint32_t)match->n_labels;

	for (uint32_t i = 0; labels && i < n; i++) {
		labels[i] = match->labels[i];
		if (is_wait(first) && str_is(labels[i].name, "__name__"))
			labels[i].value = STR(OFF_CPU);
	}
	if (labels && indices) {
		for (size_t i = 0; i < n_known; i++)
			insert_label(labels, &n, known[i]);
		for (uint32_t i = 0; i < n; i++)
			indices[i] = batch_add_str_attribute(m->b, labels[i].name, labels[i].value);
		group = batch_group_begin(m->b, indices, n);
	} else {
		m->result = -ENOMEM;
	}
	free(labels);
	free(indices);
	return group != INDEX_NONE;
}

/* Waits are not taken by a clock, so there is no period. */
static uint32_t add_off_cpu_type(struct making *m)
{
	struct andiron_profile_type type = {
		.name = batch_add_string(m->b, STR(OFF_CPU)),
		.unit = batch_add_string(m->b, STR("nanoseconds")),
	};

	type.type = type.name;
	return batch_add_type(m->b, &type);
}

static bool add_row(struct making *m, const struct row *row)
{
	bool wait = is_wait(row);
	struct andiron_row out = {
		.value = (int64_t)(wait ? row->stack->id : row->samples * m->options->period_ns),
		.samples = row->samples,
		.type = m->type,
	};

	if (wait && m->off_cpu_type == INDEX_NONE)
		m->off_cpu_type = add_off_cpu_type(m);
	if (wait)
		out.type = m->off_cpu_type;
	check(row->match && row->process && row->samples > 0);
	m->last = NULL;
	out.stack = add_stack(m, row);
	out.attr_start = add_attributes(m, row, &out.n_attrs);
	return batch_add_row(m->b, &out) && m->result == 0;
}

static uint32_t add_type(struct making *m)
{
	struct andiron_profile_type type = {
		.name = batch_add_string(m->b, STR("process_cpu")),
		.type = batch_add_string(m->b, STR("cpu")),
		.unit = batch_add_string(m->b, STR("nanoseconds")),
		.period = (int64_t)m->options->period_ns,
	};

	type.period_type = type.type;
	type.period_unit = type.unit;
	return batch_add_type(m->b, &type);
}

static int by_target(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return compare(x->match->fingerprint, y->match->fingerprint)
		       ?: compare(is_wait(x), is_wait(y))
		       ?: compare(x->process, y->process);
}

int rows_to_batch(struct rows *rows, const struct rows_options *options,
		  const struct andiron_batch **ret)
{
	struct making m = {.options = options, .off_cpu_type = INDEX_NONE};
	const struct row *former = NULL;

	*ret = NULL;
	if (rows->list.n == 0)
		return 0;
	qsort(rows->list.p, rows->list.n, sizeof(struct row), by_target);
	m.b = batch_builder_new();
	if (!m.b)
		return -ENOMEM;
	m.type = add_type(&m);
	m.kernel = add_object_mapping(&m, ANDIRON_OBJECT_KERNEL, STR("[kernel]"));
	vec_each (&rows->list, row) {
		if (!former || !is_same_group(row, former)) {
			struct common common = common_of_group(rows, row);

			if (!begin_group(&m, row, &common))
				break;
		}
		former = row;
		if (!add_row(&m, row))
			break;
	}
	if (m.result != 0) {
		batch_builder_free(m.b);
		return m.result;
	}
	/* Knows of everything that failed inside it. */
	return batch_finish(m.b, &options->head, ret);
}
