/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder. Contracts in encode.h.
 *
 * Every message is kept as its own bytes without tag, length and id, one table for each kind: the
 * id is the position, so tag, length and id are made up when the profile is written, and equality
 * of entries is equality of bytes. What changes after an entry was added (a sample's values, a
 * mapping's flags) lies beside the tables. */
#include "pprof/encode.h"

#include "base/check.h"
#include "pprof/gzip.h"
#include "pprof/table.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <stdlib.h>

/* Fields of Profile. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
};

/* What is known of a mapping once its locations are: fields 7 to 10. */
#define HAS_FUNCTIONS    1u
#define HAS_FILENAMES    2u
#define HAS_LINE_NUMBERS 4u
#define HAS_INLINE       8u

#define MAPPING_HAS_FIRST 7

#define HEAD_BOUND  160u /* period type, times, period */
#define FLUSH_BYTES 65536u

struct value_type {
	uint32_t type;
	uint32_t unit;
};

/* A caller's mapping as up to two of the profile's: [0] for locations with only addresses, [1] for
 * those with names. 0: none yet. */
struct twins {
	uint32_t id[2];
};

struct written_mapping {
	uint32_t body; /* in `mappings` */
	uint32_t flags;
};

struct pprof_encoder {
	struct value_type types[PPROF_MAX_TYPES];
	uint32_t n_types;
	struct table strings;
	struct table functions;
	VEC(uint32_t) function_flags; /* HAS_FILENAMES, by function */
	struct table mappings;
	VEC(struct twins) twins; /* by mapping body */
	VEC(struct written_mapping) written;
	struct table locations;
	struct table samples;
	VEC(int64_t) values; /* n_types a sample */
	VEC(uint32_t) comments;
	struct buf scratch;
	size_t size; /* of tags, lengths, ids and bodies so far */
	bool failed;
};

struct pprof_encoder *pprof_encoder_new(void)
{
	struct pprof_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	pprof_add_string(e, STR_NULL);
	if (e->failed) {
		pprof_encoder_free(e);
		return NULL;
	}
	return e;
}

void pprof_encoder_free(struct pprof_encoder *e)
{
	if (!e)
		return;
	table_free(&e->strings);
	table_free(&e->functions);
	vec_free(&e->function_flags);
	table_free(&e->mappings);
	vec_free(&e->twins);
	vec_free(&e->written);
	table_free(&e->locations);
	table_free(&e->samples);
	vec_free(&e->values);
	vec_free(&e->comments);
	buf_free(&e->scratch);
	free(e);
}

/* Adds the body in `scratch` to a table; INDEX_NONE after failure. */
static uint32_t add_scratch(struct pprof_encoder *e, struct table *t, bool *ret_new)
{
	uint32_t id;

	*ret_new = false;
	if (e->failed || e->scratch.failed) {
		e->failed = true;
		return INDEX_NONE;
	}
	id = table_add(t, buf_str(&e->scratch), ret_new);
	if (id == INDEX_NONE)
		e->failed = true;
	else if (*ret_new)
		e->size += 2 + wire_length(id + 1) + wire_length(e->scratch.n + 6) + e->scratch.n;
	return id;
}

static void put_sanitized(struct buf *b, struct str s)
{
	while (s.n) {
		size_t n = str_utf8_length(s);

		buf_str_append(b, n ? str_first(s, n) : STR("\xef\xbf\xbd"));
		s = str_skip(s, n ? n : 1);
	}
}

uint32_t pprof_add_string(struct pprof_encoder *e, struct str s)
{
	bool added;
	uint32_t id;

	buf_clear(&e->scratch);
	if (str_utf8(s))
		buf_str_append(&e->scratch, s);
	else
		put_sanitized(&e->scratch, s);
	id = add_scratch(e, &e->strings, &added);
	return id == INDEX_NONE ? 0 : id;
}

void pprof_add_type(struct pprof_encoder *e, uint32_t type, uint32_t unit)
{
	check(e->n_types < PPROF_MAX_TYPES);
	check(e->samples.ends.n == 0);
	e->types[e->n_types++] = (struct value_type){type, unit};
	e->size += 4 + wire_length(type) + wire_length(unit);
}

uint32_t pprof_add_function(struct pprof_encoder *e, const struct pprof_function *f)
{
	bool added;
	uint32_t id;

	buf_clear(&e->scratch);
	wire_put_field(&e->scratch, 2, f->name);
	wire_put_field(&e->scratch, 3, f->system_name);
	wire_put_field(&e->scratch, 4, f->file);
	wire_put_field(&e->scratch, 5, f->start_line);
	if (!vec_reserve(&e->function_flags, 1))
		e->failed = true;
	id = add_scratch(e, &e->functions, &added);
	if (added)
		e->function_flags.p[e->function_flags.n++] = f->file ? HAS_FILENAMES : 0;
	return id + 1; /* INDEX_NONE + 1 is 0 */
}

uint32_t pprof_add_mapping(struct pprof_encoder *e, const struct pprof_mapping *m)
{
	bool added;
	uint32_t id;

	buf_clear(&e->scratch);
	wire_put_field(&e->scratch, 2, m->start);
	wire_put_field(&e->scratch, 3, m->limit);
	wire_put_field(&e->scratch, 4, m->offset);
	wire_put_field(&e->scratch, 5, m->file);
	wire_put_field(&e->scratch, 6, m->build_id);
	if (!vec_reserve(&e->twins, 1))
		e->failed = true;
	id = add_scratch(e, &e->mappings, &added);
	if (added)
		e->twins.p[e->twins.n++] = (struct twins){{0, 0}};
	return id + 1;
}

/* The mapping to write for a location of `mapping` with or without names. */
static uint32_t twin(struct pprof_encoder *e, uint32_t mapping, bool named)
{
	uint32_t *id;

	if (mapping == 0)
		return 0;
	check(mapping <= e->twins.n);
	id = &e->twins.p[mapping - 1].id[named];
	if (*id)
		return *id;
	if (!vec_push(&e->written, ((struct written_mapping){.body = mapping - 1}))) {
		e->failed = true;
		return 0;
	}
	/* A second twin repeats the body, and each has up to four flags. */
	e->size += 16 + table_get(&e->mappings, mapping - 1).n;
	return *id = (uint32_t)e->written.n;
}

static size_t line_size(const struct pprof_line *l)
{
	return 1 + wire_length(l->function) + (l->line ? 1 + wire_length(l->line) : 0) +
	       (l->column ? 1 + wire_length(l->column) : 0);
}

uint32_t pprof_add_location(struct pprof_encoder *e, const struct pprof_location *l)
{
	uint32_t flags = l->n_lines ? HAS_FUNCTIONS : 0, mapping, id;
	bool added;

	if (e->failed)
		return 0;
	mapping = twin(e, l->mapping, l->n_lines > 0);
	if (l->n_lines > 1)
		flags |= HAS_INLINE;
	buf_clear(&e->scratch);
	wire_put_field(&e->scratch, 2, mapping);
	wire_put_field(&e->scratch, 3, l->address);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct pprof_line *line = &l->lines[i];

		check(line->function && line->function <= e->functions.ends.n);
		flags |= e->function_flags.p[line->function - 1];
		flags |= line->line ? HAS_LINE_NUMBERS : 0;
		wire_put_head(&e->scratch, 4, line_size(line));
		wire_put_field(&e->scratch, 1, line->function);
		wire_put_field(&e->scratch, 2, line->line);
		wire_put_field(&e->scratch, 3, line->column);
	}
	id = add_scratch(e, &e->locations, &added);
	if (added && mapping)
		e->written.p[mapping - 1].flags |= flags;
	return id + 1;
}

static void put_label(struct buf *b, const struct pprof_label *l)
{
	char body[4 * (1 + WIRE_VARINT_MAX)];
	const uint64_t fields[4] = {l->key, l->text, l->text ? 0 : (uint64_t)l->number, l->unit};
	size_t n = 0;

	for (uint32_t i = 0; i < 4; i++)
		if (fields[i]) {
			body[n++] = (char)((i + 1) << 3 | WIRE_VARINT);
			n += wire_encode(body + n, fields[i]);
		}
	wire_put_head(b, 3, n);
	buf_append(b, body, n);
}

static bool all_zero(const int64_t *values, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (values[i])
			return false;
	return true;
}

static void put_sample(struct pprof_encoder *e, const struct pprof_sample *s)
{
	struct buf *b = &e->scratch;
	size_t packed = 0;
	char *p;

	for (uint32_t i = 0; i < s->n_locations; i++) {
		check(s->locations[i] && s->locations[i] <= e->locations.ends.n);
		packed += wire_length(s->locations[i]);
	}
	buf_clear(b);
	if (packed)
		wire_put_head(b, 1, packed);
	p = buf_reserve(b, packed);
	for (uint32_t i = 0; p && i < s->n_locations; i++)
		p += wire_encode(p, s->locations[i]);
	b->n += p ? packed : 0;
	for (uint32_t i = 0; i < s->n_labels; i++)
		put_label(b, &s->labels[i]);
}

void pprof_add_sample(struct pprof_encoder *e, const struct pprof_sample *s)
{
	uint32_t id;
	bool added;
	int64_t *values;

	check(e->n_types > 0);
	if (e->failed || all_zero(s->values, e->n_types))
		return;
	put_sample(e, s);
	if (!vec_reserve(&e->values, e->n_types))
		e->failed = true;
	id = add_scratch(e, &e->samples, &added);
	if (id == INDEX_NONE)
		return;
	values = e->values.p + (size_t)id * e->n_types;
	for (uint32_t i = 0; i < e->n_types; i++)
		values[i] = added ? s->values[i] : pprof_sum(values[i], s->values[i]);
	if (added) {
		e->values.n += e->n_types;
		e->size += 3 + (size_t)WIRE_VARINT_MAX * e->n_types;
	}
}

void pprof_add_comment(struct pprof_encoder *e, uint32_t text)
{
	if (!vec_push(&e->comments, text))
		e->failed = true;
	e->size += 2 + wire_length(text);
}

void pprof_clear_comments(struct pprof_encoder *e)
{
	e->comments.n = 0;
}

bool pprof_failed(const struct pprof_encoder *e)
{
	return e->failed;
}

uint32_t pprof_n_samples(const struct pprof_encoder *e)
{
	return (uint32_t)e->samples.ends.n;
}

size_t pprof_size_bound(const struct pprof_encoder *e)
{
	return e->size + HEAD_BOUND;
}

/* A message being written: small pieces gather in `pending`. */
struct output {
	struct gzip_writer gzip;
	struct buf pending;
};

static void flush(struct output *o, size_t threshold)
{
	if (o->pending.failed && !o->gzip.error)
		o->gzip.error = -ENOMEM;
	if (o->pending.n < threshold)
		return;
	gzip_write(&o->gzip, buf_str(&o->pending));
	buf_clear(&o->pending);
}

static void put_value_type(struct output *o, uint32_t field, struct value_type t)
{
	wire_put_head(&o->pending, field,
		      (t.type ? 1 + wire_length(t.type) : 0) +
			      (t.unit ? 1 + wire_length(t.unit) : 0));
	wire_put_field(&o->pending, 1, t.type);
	wire_put_field(&o->pending, 2, t.unit);
}

static void put_samples(const struct pprof_encoder *e, struct output *o)
{
	for (uint32_t id = 0; id < e->samples.ends.n; id++) {
		struct str body = table_get(&e->samples, id);
		const int64_t *values = e->values.p + (size_t)id * e->n_types;
		size_t packed = 0;

		if (all_zero(values, e->n_types))
			continue; /* additions took each other away */
		for (uint32_t i = 0; i < e->n_types; i++)
			packed += wire_length((uint64_t)values[i]);
		wire_put_head(&o->pending, PROFILE_SAMPLE,
			      body.n + 1 + wire_length(packed) + packed);
		buf_str_append(&o->pending, body);
		wire_put_head(&o->pending, 2, packed);
		for (uint32_t i = 0; i < e->n_types; i++)
			wire_put(&o->pending, (uint64_t)values[i]);
		flush(o, FLUSH_BYTES);
	}
}

/* A message with its id in field 1 and, for mappings, flags at its end. */
static void put_entry(struct output *o, uint32_t field, uint32_t id, struct str body,
		      uint32_t flags)
{
	size_t tail = 2 * (size_t)__builtin_popcount(flags);

	wire_put_head(&o->pending, field, 1 + wire_length(id) + body.n + tail);
	wire_put_field(&o->pending, 1, id);
	buf_str_append(&o->pending, body);
	for (uint32_t i = 0; i < 4; i++)
		wire_put_field(&o->pending, MAPPING_HAS_FIRST + i, flags >> i & 1);
	flush(o, FLUSH_BYTES);
}

static void put_entries(struct output *o, uint32_t field, const struct table *t)
{
	for (uint32_t i = 0; i < t->ends.n; i++)
		put_entry(o, field, i + 1, table_get(t, i), 0);
}

static void put_head(const struct pprof_encoder *e, struct output *o, const struct pprof_head *head)
{
	struct value_type period_type = {head->period_type, head->period_unit};
	size_t packed = 0;

	if (period_type.type == 0 && e->n_types)
		period_type = e->types[0];
	wire_put_field(&o->pending, PROFILE_TIME, (uint64_t)head->time_ns);
	wire_put_field(&o->pending, PROFILE_DURATION,
		       (uint64_t)(head->duration_ns > 0 ? head->duration_ns : 1));
	put_value_type(o, PROFILE_PERIOD_TYPE, period_type);
	wire_put_field(&o->pending, PROFILE_PERIOD, (uint64_t)head->period);
	if (e->comments.n == 0)
		return;
	for (size_t i = 0; i < e->comments.n; i++)
		packed += wire_length(e->comments.p[i]);
	wire_put_head(&o->pending, PROFILE_COMMENT, packed);
	for (size_t i = 0; i < e->comments.n; i++)
		wire_put(&o->pending, e->comments.p[i]);
}

static void put_profile(const struct pprof_encoder *e, struct output *o,
			const struct pprof_head *head)
{
	for (uint32_t i = 0; i < e->n_types; i++)
		put_value_type(o, PROFILE_SAMPLE_TYPE, e->types[i]);
	put_samples(e, o);
	for (uint32_t i = 0; i < e->written.n; i++)
		put_entry(o, PROFILE_MAPPING, i + 1, table_get(&e->mappings, e->written.p[i].body),
			  e->written.p[i].flags);
	put_entries(o, PROFILE_LOCATION, &e->locations);
	put_entries(o, PROFILE_FUNCTION, &e->functions);
	for (uint32_t i = 0; i < e->strings.ends.n; i++) {
		struct str s = table_get(&e->strings, i);

		wire_put_head(&o->pending, PROFILE_STRING, s.n);
		buf_str_append(&o->pending, s);
		flush(o, FLUSH_BYTES);
	}
	put_head(e, o, head);
	flush(o, 0);
}

int pprof_finish(const struct pprof_encoder *e, const struct pprof_head *head, int level,
		 struct buf *out, size_t *ret_raw)
{
	struct output o = {.pending = BUF_NULL};
	size_t start = out->n;
	bool failed_before = out->failed;
	int r;

	if (e->failed)
		return -ENOMEM;
	r = gzip_open(&o.gzip, out, level);
	if (r == 0) {
		put_profile(e, &o, head);
		r = gzip_close(&o.gzip);
	}
	buf_free(&o.pending);
	if (r < 0) {
		out->n = start;
		out->failed = failed_before;
		return r;
	}
	check(o.gzip.raw <= pprof_size_bound(e));
	if (ret_raw)
		*ret_raw = o.gzip.raw;
	return 0;
}
