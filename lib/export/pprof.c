/* SPDX-License-Identifier: Apache-2.0 */
/* Batches into pprof. Contracts in pprof.h.
 *
 * The encoder already holds each distinct entry once, so all that is kept here besides is, for the
 * current batch, which of the encoder's locations each of its own has become. A batch is
 * untrusted: every index is read through the view, and what it can make long (stacks, inlining,
 * reasons) is bounded. */
#include "export/pprof.h"

#include "base/ascii.h"
#include "base/check.h"
#include "base/vec.h"
#include "pprof/encode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_FRAMES      4096u /* the root side is kept, as servers do */
#define MAX_LINES       128u
#define MAX_BATCH_TYPES 64u
#define MAX_LABELS      64u
#define MAX_REASONS     32u
#define MAX_REASON      64u
#define MAX_LEAD_ROWS   1000u /* looked through for the program's mapping */

struct chosen_type {
	uint32_t type, unit; /* the encoder's strings */
};

struct reason {
	char text[MAX_REASON];
	uint64_t samples;
};

struct pprof_export {
	struct pprof_encoder *encoder;
	char *name; /* "": not chosen yet */
	uint32_t flags;
	uint32_t n_types; /* chosen; the encoder may have "samples" before them */
	struct chosen_type types[PPROF_MAX_TYPES];
	uint32_t period_type, period_unit;
	int64_t period;
	int64_t start_ns, end_ns;
	uint64_t weight;
	bool led; /* the program's mapping has been put first */
	VEC(struct reason) reasons;

	const struct batch_view *view;
	uint32_t group;                 /* of the row added last */
	uint8_t slots[MAX_BATCH_TYPES]; /* of the batch's types: 1 + place in `types` */
	uint32_t *locations;            /* of the batch's: the encoder's, 0 while unknown */
	size_t n_locations;
	VEC(uint32_t) stack;
	/* Not on the stack of whoever gives a batch, who may have 8 KiB. */
	struct pprof_line lines[MAX_LINES];
	struct pprof_label labels[MAX_LABELS];
};

struct pprof_export *pprof_export_new(struct str name, uint32_t flags)
{
	struct pprof_export *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->flags = flags;
	x->name = str_dup(name);
	x->encoder = pprof_encoder_new();
	if (!x->name || !x->encoder) {
		pprof_export_free(x);
		return NULL;
	}
	if (flags & EXPORT_SAMPLES)
		pprof_add_type(x->encoder, pprof_add_string(x->encoder, STR("samples")),
			       pprof_add_string(x->encoder, STR("count")));
	return x;
}

void pprof_export_free(struct pprof_export *x)
{
	if (!x)
		return;
	pprof_encoder_free(x->encoder);
	free(x->name);
	vec_free(&x->reasons);
	free(x->locations);
	vec_free(&x->stack);
	free(x);
}

static uint32_t put_string(struct pprof_export *x, uint32_t string)
{
	return string ? pprof_add_string(x->encoder, batch_str(x->view, string)) : 0;
}

bool export_spell(struct str s, char out[EXPORT_SPELLED_MAX])
{
	struct str from = s.n ? s : STR("unknown");
	size_t n = 0;

	if (ascii_is_digit(from.p[0]))
		out[n++] = '_';
	for (size_t i = 0; i < from.n && n < EXPORT_SPELLED_MAX - 1; i++) {
		char c = from.p[i];
		bool plain = ascii_is_alnum(c) || c == '_';

		out[n++] = plain ? c : '_';
	}
	out[n] = '\0';
	return !str_is(s, out);
}

/* A type's string as the flags want it. */
static uint32_t put_kind(struct pprof_export *x, uint32_t string)
{
	char spelled[EXPORT_SPELLED_MAX];

	if (!(x->flags & EXPORT_SPELLED))
		return put_string(x, string);
	export_spell(batch_str(x->view, string), spelled);
	return pprof_add_string(x->encoder, str_of(spelled));
}

/* None means: as the first sample type. */
static uint32_t put_period(struct pprof_export *x, uint32_t string)
{
	return batch_str(x->view, string).n ? put_kind(x, string) : 0;
}

/* Takes the types of the chosen name from the first batch that has one. */
static int choose_types(struct pprof_export *x)
{
	uint64_t n = batch_count(x->view, ANDIRON_COL_TYPE);
	uint32_t room = PPROF_MAX_TYPES - (x->flags & EXPORT_SAMPLES ? 1 : 0);

	for (uint32_t i = 0; i < n && i < MAX_BATCH_TYPES && x->n_types < room; i++) {
		struct andiron_profile_type t = batch_type(x->view, i);
		struct str name = batch_str(x->view, t.name);
		struct chosen_type chosen;

		if (x->name[0] == '\0' && name.n) {
			free(x->name);
			x->name = str_dup(name);
			if (!x->name)
				return -ENOMEM;
		}
		if (!str_is(name, x->name))
			continue;
		chosen = (struct chosen_type){put_kind(x, t.type), put_kind(x, t.unit)};
		if (x->n_types == 0) {
			x->period_type = put_period(x, t.period_type);
			x->period_unit = put_period(x, t.period_unit);
			x->period = t.period;
		}
		pprof_add_type(x->encoder, chosen.type, chosen.unit);
		x->types[x->n_types++] = chosen;
	}
	return 0;
}

/* Which of the batch's types stands where; a type given twice, or of another period type, is a
 * different one. */
static void place_types(struct pprof_export *x)
{
	uint64_t n = batch_count(x->view, ANDIRON_COL_TYPE);

	memset(x->slots, 0, sizeof(x->slots));
	for (uint32_t i = 0; i < n && i < MAX_BATCH_TYPES; i++) {
		struct andiron_profile_type t = batch_type(x->view, i);

		if (!str_is(batch_str(x->view, t.name), x->name) ||
		    put_period(x, t.period_type) != x->period_type ||
		    put_period(x, t.period_unit) != x->period_unit)
			continue;
		for (uint32_t k = 0; k < x->n_types; k++)
			if (x->types[k].type == put_kind(x, t.type) &&
			    x->types[k].unit == put_kind(x, t.unit))
				x->slots[i] = (uint8_t)(k + 1);
	}
}

static int gather_losses(struct pprof_export *x)
{
	uint64_t n = batch_count(x->view, ANDIRON_COL_LOSS);

	for (uint32_t i = 0; i < n; i++) {
		struct andiron_loss loss = batch_loss(x->view, i);
		struct str text = str_first(batch_str(x->view, loss.reason), MAX_REASON - 1);
		struct reason *found = NULL;

		if (x->reasons.n >= MAX_REASONS - 1)
			text = STR("other");
		vec_each (&x->reasons, r)
			if (str_is(text, r->text))
				found = r;
		if (!found) {
			if (!vec_push(&x->reasons, ((struct reason){.samples = 0})))
				return -ENOMEM;
			found = &x->reasons.p[x->reasons.n - 1];
			memcpy(found->text, text.n ? text.p : "", text.n);
		}
		if (__builtin_add_overflow(found->samples, loss.samples, &found->samples))
			found->samples = UINT64_MAX;
	}
	return 0;
}

static void widen_window(struct pprof_export *x)
{
	const struct andiron_batch *batch = x->view->batch;

	if (x->start_ns == 0 || batch->start_ns < x->start_ns)
		x->start_ns = batch->start_ns;
	if (batch->end_ns > x->end_ns)
		x->end_ns = batch->end_ns;
}

static uint32_t put_synthetic_mapping(struct pprof_export *x, struct str file)
{
	struct pprof_mapping m = {.file = pprof_add_string(x->encoder, file)};

	return pprof_add_mapping(x->encoder, &m);
}

static uint32_t put_build_id(struct pprof_export *x, const struct andiron_mapping *from)
{
	char ids[512];
	int n;

	if (!(x->flags & EXPORT_IDS) || !from->file_id)
		return put_string(x, from->gnu_build_id ? from->gnu_build_id : from->go_build_id);
	n = snprintf(ids, sizeof(ids), "%.*s %.*s " EXPORT_HTLHASH "%.*s",
		     STR_FMT(batch_str(x->view, from->gnu_build_id)),
		     STR_FMT(batch_str(x->view, from->go_build_id)),
		     STR_FMT(batch_str(x->view, from->file_id)));
	return n > 0 && (size_t)n < sizeof(ids)
		       ? pprof_add_string(x->encoder, (struct str){ids, (size_t)n})
		       : put_string(x, from->gnu_build_id);
}

static uint32_t put_file_mapping(struct pprof_export *x, const struct andiron_mapping *from,
				 bool kernel)
{
	struct str file = batch_str(x->view, from->file);
	struct pprof_mapping m = {
		.start = from->start,
		.limit = from->limit,
		.offset = from->offset,
		.build_id = put_build_id(x, from),
	};

	if (kernel && !str_starts(file, STR("[kernel")))
		file = STR("[kernel.kallsyms]");
	m.file = pprof_add_string(x->encoder, file.n ? file : STR("[unknown]"));
	return pprof_add_mapping(x->encoder, &m);
}

static uint32_t put_runtime_mapping(struct pprof_export *x, uint32_t runtime)
{
	char name[64];
	struct str s = str_first(batch_str(x->view, runtime), sizeof(name) - 3);

	if (s.n == 0)
		s = STR("runtime");
	snprintf(name, sizeof(name), "[%.*s]", STR_FMT(s));
	return put_synthetic_mapping(x, str_of(name));
}

static uint32_t put_mapping(struct pprof_export *x, const struct andiron_location *l)
{
	struct andiron_mapping m = batch_mapping(x->view, l->mapping);

	if (l->kind == ANDIRON_FRAME_MARKER)
		return put_synthetic_mapping(x, STR("[andiron]"));
	if (l->mapping)
		return put_file_mapping(x, &m, l->kind == ANDIRON_FRAME_KERNEL);
	if (l->kind == ANDIRON_FRAME_KERNEL)
		return put_synthetic_mapping(x, STR("[kernel.kallsyms]"));
	if (l->kind == ANDIRON_FRAME_RUNTIME)
		return put_runtime_mapping(x, l->runtime);
	return put_synthetic_mapping(x, STR("[anon]"));
}

static uint32_t put_unknown(struct pprof_export *x)
{
	struct pprof_function f = {.name = pprof_add_string(x->encoder, STR("[unknown]"))};

	return pprof_add_function(x->encoder, &f);
}

static uint32_t put_function(struct pprof_export *x, uint32_t function)
{
	struct andiron_function from = batch_function(x->view, function);
	struct pprof_function f = {
		.name = put_string(x, from.name),
		.system_name = put_string(x, from.system_name),
		.file = put_string(x, from.file),
		.start_line = from.start_line,
	};

	if (f.name == 0)
		f.name = f.system_name;
	return f.name ? pprof_add_function(x->encoder, &f) : put_unknown(x);
}

/* Whether a frame without a name is left to a server, which needs its build id. */
static bool is_left_bare(const struct pprof_export *x, const struct andiron_location *l)
{
	struct andiron_mapping m = batch_mapping(x->view, l->mapping);

	return (x->flags & EXPORT_ADDRESSES) && (l->flags & ANDIRON_LOCATION_UNSYMBOLIZED) &&
	       l->address && (m.gnu_build_id || m.go_build_id);
}

static uint32_t put_location(struct pprof_export *x, uint32_t location)
{
	struct andiron_location from = batch_location(x->view, location);
	struct pprof_location l = {.address = from.address, .lines = x->lines};

	l.mapping = put_mapping(x, &from);
	if (is_left_bare(x, &from))
		from.n_lines = 0;
	for (uint32_t i = 0; i < from.n_lines && l.n_lines < MAX_LINES; i++) {
		struct andiron_line line = batch_line(x->view, from.line_start + i);

		x->lines[l.n_lines++] =
			(struct pprof_line){.function = put_function(x, line.function),
					    .line = line.line,
					    .column = line.column};
	}
	if (l.n_lines == 0 && (from.mapping == 0 || from.address == 0) &&
	    (from.kind != ANDIRON_FRAME_KERNEL || from.address == 0))
		x->lines[l.n_lines++] = (struct pprof_line){.function = put_unknown(x)};
	return pprof_failed(x->encoder) ? 0 : pprof_add_location(x->encoder, &l);
}

/* The encoder's location for frame `i` of the batch; 0 when memory is short. */
static uint32_t frame_location(struct pprof_export *x, uint32_t i)
{
	uint32_t location = batch_frame(x->view, i);

	if (location >= x->n_locations)
		return put_location(x, location);
	if (x->locations[location] == 0)
		x->locations[location] = put_location(x, location);
	return x->locations[location];
}

/* A stack's run of the FRAME pool, within it and bounded. */
static struct andiron_stack stack_frames(const struct pprof_export *x, uint32_t stack)
{
	struct andiron_stack s = batch_stack(x->view, stack);
	uint64_t pool = batch_count(x->view, ANDIRON_COL_FRAME);

	if (s.start >= pool)
		s.length = 0;
	else if (s.length > pool - s.start)
		s.length = (uint32_t)(pool - s.start);
	if (s.length > MAX_FRAMES) {
		s.start += s.length - MAX_FRAMES;
		s.length = MAX_FRAMES;
	}
	return s;
}

/* Whether a location lies in a program or library, and not in the kernel or in memory without a
 * file. */
static bool in_file(const struct pprof_export *x, uint32_t location)
{
	struct andiron_location l = batch_location(x->view, location);
	struct str file = batch_str(x->view, batch_mapping(x->view, l.mapping).file);

	return l.kind == ANDIRON_FRAME_NATIVE && l.mapping && file.n && file.p[0] == '/';
}

/* pprof takes the first mapping for the program's: so the outermost frame in a file of the first
 * stack that has one comes before all else. */
static int lead_with_program(struct pprof_export *x)
{
	uint64_t n = batch_count(x->view, ANDIRON_COL_ROW);

	for (uint32_t row = 0; row < n && !x->led; row++) {
		struct andiron_stack s = stack_frames(x, batch_row(x->view, row).stack);

		for (uint32_t i = s.length; i > 0 && !x->led; i--)
			if (in_file(x, batch_frame(x->view, s.start + i - 1))) {
				x->led = true;
				if (frame_location(x, s.start + i - 1) == 0)
					return -ENOMEM;
			}
		if (row == MAX_LEAD_ROWS)
			break;
	}
	return 0;
}

static int put_stack(struct pprof_export *x, uint32_t stack)
{
	struct andiron_stack s = stack_frames(x, stack);

	x->stack.n = 0;
	if (!vec_reserve(&x->stack, s.length + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < s.length; i++) {
		x->stack.p[i] = frame_location(x, s.start + i);
		if (x->stack.p[i] == 0)
			return -ENOMEM;
	}
	x->stack.n = s.length;
	return 0;
}

int pprof_export_begin(struct pprof_export *x, const struct batch_view *view)
{
	uint64_t n = batch_count(view, ANDIRON_COL_LOCATION);
	uint32_t *locations = calloc(n ? n : 1, sizeof(*locations));

	if (!locations)
		return -ENOMEM;
	free(x->locations);
	x->locations = locations;
	x->n_locations = n;
	x->view = view;
	x->group = 0;
	if (x->n_types == 0 && choose_types(x) < 0)
		return -ENOMEM;
	place_types(x);
	widen_window(x);
	if (x->flags & EXPORT_LOSSES && gather_losses(x) < 0)
		return -ENOMEM;
	if (x->flags & EXPORT_WHOLE && x->weight == 0 && lead_with_program(x) < 0)
		return -ENOMEM;
	return pprof_failed(x->encoder) ? -ENOMEM : 0;
}

/* Appends a label; one of the same key stays as it is, and an empty one is left out. */
static uint32_t put_label(struct pprof_export *x, const struct andiron_attribute *a, uint32_t n)
{
	struct str key = batch_str(x->view, a->key);
	bool is_text = a->kind == ANDIRON_ATTRIBUTE_STRING;
	struct str text = is_text ? batch_str(x->view, (uint32_t)a->value) : STR("");

	if (n == MAX_LABELS || key.n == 0 || str_starts(key, STR("__")) || (is_text && !text.n))
		return n;
	x->labels[n] = (struct pprof_label){
		.key = pprof_add_string(x->encoder, key),
		.text = text.n ? pprof_add_string(x->encoder, text) : 0,
		.number = is_text ? 0 : (int64_t)a->value,
	};
	for (uint32_t i = 0; i < n; i++)
		if (x->labels[i].key == x->labels[n].key)
			return n;
	return n + 1;
}

/* The group that a row belongs to; rows come in order, so it is the last one's or the next. */
static struct andiron_group group_of(struct pprof_export *x, uint32_t row)
{
	uint64_t n = batch_count(x->view, ANDIRON_COL_GROUP);

	for (uint64_t i = 0; i < n; i++) {
		struct andiron_group group = batch_group(x->view, x->group);

		if (row >= group.row_start && row - group.row_start < group.n_rows)
			return group;
		x->group = x->group + 1 < n ? x->group + 1 : 0;
	}
	return (struct andiron_group){0};
}

/* Which thread a row is of. */
static uint32_t put_thread(struct pprof_export *x, const struct andiron_row *row, uint32_t n)
{
	for (uint32_t i = 0; i < row->n_attrs && i < MAX_LABELS; i++) {
		struct andiron_attribute a = batch_attribute_at(x->view, row->attr_start + i);
		struct str key = batch_str(x->view, a.key);

		if (str_is(key, "comm") || str_is(key, "tid"))
			n = put_label(x, &a, n);
	}
	return n;
}

static uint32_t put_labels(struct pprof_export *x, uint32_t index, const struct andiron_row *row)
{
	struct andiron_group group;
	uint32_t n = 0;
	struct str name;

	if (x->flags & EXPORT_NAME && batch_row_str(x->view, row, STR("process"), &name) && name.n)
		x->labels[n++] =
			(struct pprof_label){.key = pprof_add_string(x->encoder, STR("process")),
					     .text = pprof_add_string(x->encoder, name)};
	if (x->flags & EXPORT_IDS)
		n = put_thread(x, row, n);
	if (!(x->flags & EXPORT_LABELS))
		return n;
	group = group_of(x, index);
	for (uint32_t i = 0; i < row->n_attrs && i < MAX_LABELS; i++) {
		struct andiron_attribute a = batch_attribute_at(x->view, row->attr_start + i);

		n = put_label(x, &a, n);
	}
	for (uint32_t i = 0; i < group.n_labels && i < MAX_LABELS; i++) {
		struct andiron_attribute a = batch_attribute_at(x->view, group.label_start + i);

		n = put_label(x, &a, n);
	}
	return n;
}

int pprof_export_row(struct pprof_export *x, uint32_t index)
{
	struct andiron_row row = batch_row(x->view, index);
	uint32_t first = x->flags & EXPORT_SAMPLES ? 1 : 0;
	int64_t values[PPROF_MAX_TYPES] = {0};
	struct pprof_sample sample = {.labels = x->labels, .values = values};

	if (row.type >= MAX_BATCH_TYPES || x->slots[row.type] == 0)
		return 1;
	if (put_stack(x, row.stack) < 0)
		return -ENOMEM;
	sample.locations = x->stack.p;
	sample.n_locations = (uint32_t)x->stack.n;
	sample.n_labels = put_labels(x, index, &row);
	if (first)
		values[0] = row.samples > INT64_MAX ? INT64_MAX : (int64_t)row.samples;
	values[first + x->slots[row.type] - 1] = row.value;
	pprof_add_sample(x->encoder, &sample);
	if (pprof_failed(x->encoder))
		return -ENOMEM;
	x->weight += row.samples;
	return 0;
}

int pprof_export_batch(struct pprof_export *x, const struct batch_view *view)
{
	uint64_t n = batch_count(view, ANDIRON_COL_ROW);
	int r = pprof_export_begin(x, view);

	for (uint32_t i = 0; r >= 0 && i < n; i++)
		r = pprof_export_row(x, i);
	return r < 0 ? r : 0;
}

uint32_t pprof_export_n_samples(const struct pprof_export *x)
{
	return pprof_n_samples(x->encoder);
}

uint64_t pprof_export_weight(const struct pprof_export *x)
{
	return x->weight;
}

size_t pprof_export_size(const struct pprof_export *x)
{
	return pprof_size_bound(x->encoder);
}

static void put_losses(struct pprof_export *x)
{
	char text[MAX_REASON + 64];

	pprof_clear_comments(x->encoder);
	vec_each (&x->reasons, r) {
		snprintf(text, sizeof(text), "andiron: lost %" PRIu64 " samples: %s", r->samples,
			 r->text[0] ? r->text : "unknown");
		pprof_add_comment(x->encoder, pprof_add_string(x->encoder, str_of(text)));
	}
}

int pprof_export_finish(struct pprof_export *x, int64_t time_ns, int level, struct buf *out,
			size_t *ret_raw)
{
	struct pprof_head head = {
		.time_ns = time_ns ? time_ns : x->start_ns,
		.period = x->period,
		.period_type = x->period_type,
		.period_unit = x->period_unit,
	};

	check(level >= 0 && level <= 9);
	if (__builtin_sub_overflow(x->end_ns, x->start_ns, &head.duration_ns))
		head.duration_ns = 1;
	put_losses(x);
	return pprof_finish(x->encoder, &head, level, out, ret_raw);
}
