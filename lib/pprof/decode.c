/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder. Contracts in decode.h.
 *
 * A profile's parts may come in any order and refer to each other by ids of any
 * value, so the top level is walked four times: strings, what refers only to
 * strings, locations, samples. Skipping a part costs reading its length.
 */
#include "pprof/decode.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"
#include "pprof/gzip.h"
#include "pprof/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define MAX_FIELD 16u /* beyond every field number of every message */

struct decoder {
	struct buf raw;
	VEC(struct str) strings;
	VEC(struct profile_type) types;
	VEC(struct profile_function) functions;
	VEC(struct profile_mapping) mappings;
	VEC(struct profile_line) lines;
	VEC(struct profile_location) locations;
	VEC(uint32_t) frames;
	VEC(struct profile_label) labels;
	VEC(struct profile_sample) samples;
	VEC(int64_t) values;
	VEC(struct str) comments;
	VEC(uint64_t) function_ids; /* by position; 0 is the null entry's */
	VEC(uint64_t) mapping_ids;
	VEC(uint64_t) location_ids;
	struct index function_index, mapping_index, location_index;
	struct profile head;
	uint64_t default_type;
	struct error *err;
};

/* What decode gives out; the bytes that strings point into lie behind. */
struct owned_profile {
	struct profile profile;
	char *raw;
};

static int bad(struct decoder *d, const char *what)
{
	return error_set(d->err, -EBADMSG, "not a valid pprof profile: %s", what);
}

static bool is_bytes(const struct wire_field *f)
{
	return f->type == WIRE_BYTES;
}

/* The varint fields of a message by number; others are left to their own
 * readers. */
static bool read_scalars(struct str in, uint64_t *fields)
{
	struct wire_field f;

	memset(fields, 0, MAX_FIELD * sizeof(*fields));
	while (in.n) {
		if (!wire_next(&in, &f))
			return false;
		if (f.type == WIRE_VARINT && f.number < MAX_FIELD)
			fields[f.number] = f.value;
	}
	return true;
}

static bool read_string(const struct decoder *d, uint64_t index, struct str *ret)
{
	if (index == 0 && d->strings.n == 0) {
		*ret = STR("");
		return true;
	}
	if (index >= d->strings.n)
		return false;
	*ret = d->strings.p[index];
	return true;
}

struct id_probe {
	const uint64_t *ids;
	uint64_t sought;
};

static bool same_id(const void *context, uint32_t position)
{
	const struct id_probe *probe = context;

	return probe->ids[position] == probe->sought;
}

static uint32_t find_id(const struct index *ix, const uint64_t *ids, size_t n, uint64_t id)
{
	struct id_probe probe = {ids, id};

	/* As most writers have it; saves nearly every lookup. */
	if (id < n && ids[id] == id)
		return (uint32_t)id;
	return index_find(ix, hash_u64(id), same_id, &probe);
}

static int read_type(struct decoder *d, struct str in, struct profile_type *ret)
{
	uint64_t f[MAX_FIELD];

	if (!read_scalars(in, f) || !read_string(d, f[1], &ret->type) ||
	    !read_string(d, f[2], &ret->unit))
		return bad(d, "a broken sample type");
	return 0;
}

static int read_function(struct decoder *d, struct str in)
{
	struct profile_function fn;
	uint64_t f[MAX_FIELD];

	if (!read_scalars(in, f) || !read_string(d, f[2], &fn.name) ||
	    !read_string(d, f[3], &fn.system_name) || !read_string(d, f[4], &fn.file))
		return bad(d, "a broken function");
	fn.start_line = f[5] > UINT32_MAX ? 0 : (uint32_t)f[5];
	if (f[1] == 0 ||
	    find_id(&d->function_index, d->function_ids.p, d->function_ids.n, f[1]) != INDEX_NONE)
		return bad(d, "a function whose id is 0 or not unique");
	if (!vec_push(&d->functions, fn) || !vec_push(&d->function_ids, f[1]) ||
	    index_add(&d->function_index, hash_u64(f[1]), (uint32_t)d->functions.n - 1) < 0)
		return -ENOMEM;
	return 0;
}

static int read_mapping(struct decoder *d, struct str in)
{
	struct profile_mapping m;
	uint64_t f[MAX_FIELD];

	if (!read_scalars(in, f) || !read_string(d, f[5], &m.file) ||
	    !read_string(d, f[6], &m.build_id))
		return bad(d, "a broken mapping");
	m.start = f[2];
	m.limit = f[3];
	m.offset = f[4];
	m.has_functions = f[7] != 0;
	if (f[1] == 0 ||
	    find_id(&d->mapping_index, d->mapping_ids.p, d->mapping_ids.n, f[1]) != INDEX_NONE)
		return bad(d, "a mapping whose id is 0 or not unique");
	if (!vec_push(&d->mappings, m) || !vec_push(&d->mapping_ids, f[1]) ||
	    index_add(&d->mapping_index, hash_u64(f[1]), (uint32_t)d->mappings.n - 1) < 0)
		return -ENOMEM;
	return 0;
}

static int read_line(struct decoder *d, struct str in)
{
	struct profile_line line;
	uint64_t f[MAX_FIELD];

	if (!read_scalars(in, f))
		return bad(d, "a broken line");
	line.function = find_id(&d->function_index, d->function_ids.p, d->function_ids.n, f[1]);
	if (line.function == INDEX_NONE)
		return bad(d, "a line refers to a function that is not there");
	line.line = f[2] > UINT32_MAX ? 0 : (uint32_t)f[2];
	return vec_push(&d->lines, line) ? 0 : -ENOMEM;
}

static int read_location(struct decoder *d, struct str in)
{
	struct profile_location l = {.line_start = (uint32_t)d->lines.n};
	uint64_t s[MAX_FIELD];
	struct wire_field f;

	if (!read_scalars(in, s))
		return bad(d, "a broken location");
	while (in.n && wire_next(&in, &f))
		if (f.number == 4) {
			int r = is_bytes(&f) ? read_line(d, f.bytes) : bad(d, "a broken line");

			if (r < 0)
				return r;
		}
	l.n_lines = (uint32_t)d->lines.n - l.line_start;
	l.address = s[3];
	l.mapping = find_id(&d->mapping_index, d->mapping_ids.p, d->mapping_ids.n, s[2]);
	if (l.mapping == INDEX_NONE)
		return bad(d, "a location refers to a mapping that is not there");
	if (s[1] == 0 ||
	    find_id(&d->location_index, d->location_ids.p, d->location_ids.n, s[1]) != INDEX_NONE)
		return bad(d, "a location whose id is 0 or not unique");
	if (!vec_push(&d->locations, l) || !vec_push(&d->location_ids, s[1]) ||
	    index_add(&d->location_index, hash_u64(s[1]), (uint32_t)d->locations.n - 1) < 0)
		return -ENOMEM;
	return 0;
}

static int add_frame(struct decoder *d, uint64_t id)
{
	uint32_t position =
		id ? find_id(&d->location_index, d->location_ids.p, d->location_ids.n, id)
		   : INDEX_NONE;

	if (position == INDEX_NONE)
		return bad(d, "a sample refers to a location that is not there");
	return vec_push(&d->frames, position) ? 0 : -ENOMEM;
}

static int add_value(struct decoder *d, uint64_t value)
{
	return vec_push(&d->values, (int64_t)value) ? 0 : -ENOMEM;
}

/* A repeated number, packed or one by one. */
static int each_number(struct decoder *d, const struct wire_field *f,
		       int (*fn)(struct decoder *d, uint64_t value))
{
	struct str in = f->bytes;
	uint64_t value;
	int r = 0;

	if (f->type == WIRE_VARINT)
		return fn(d, f->value);
	if (!is_bytes(f))
		return bad(d, "a list of numbers of another type");
	while (in.n && r == 0) {
		if (!wire_get(&in, &value))
			return bad(d, "a broken list of numbers");
		r = fn(d, value);
	}
	return r;
}

static int read_label(struct decoder *d, const struct wire_field *field)
{
	struct profile_label l;
	uint64_t f[MAX_FIELD];

	if (!is_bytes(field) || !read_scalars(field->bytes, f) || !read_string(d, f[1], &l.key) ||
	    !read_string(d, f[2], &l.text) || !read_string(d, f[4], &l.unit))
		return bad(d, "a broken label");
	l.number = (int64_t)f[3];
	return vec_push(&d->labels, l) ? 0 : -ENOMEM;
}

static int read_sample_field(struct decoder *d, const struct wire_field *f)
{
	switch (f->number) {
	case 1:
		return each_number(d, f, add_frame);
	case 2:
		return each_number(d, f, add_value);
	case 3:
		return read_label(d, f);
	default:
		return 0;
	}
}

static int read_sample(struct decoder *d, struct str in)
{
	struct profile_sample s = {.frame_start = (uint32_t)d->frames.n,
				   .label_start = (uint32_t)d->labels.n};
	size_t values = d->values.n;
	struct wire_field f;
	int r;

	while (in.n) {
		if (!wire_next(&in, &f))
			return bad(d, "a broken sample");
		r = read_sample_field(d, &f);
		if (r < 0)
			return r;
	}
	if (d->values.n - values != d->types.n)
		return bad(d, "a sample with another number of values than there are types");
	s.n_frames = (uint32_t)d->frames.n - s.frame_start;
	s.n_labels = (uint32_t)d->labels.n - s.label_start;
	return vec_push(&d->samples, s) ? 0 : -ENOMEM;
}

static int walk_strings(struct decoder *d, const struct wire_field *f)
{
	if (f->number != 6)
		return 0;
	if (!is_bytes(f))
		return bad(d, "a string that is none");
	return vec_push(&d->strings, f->bytes) ? 0 : -ENOMEM;
}

static int add_comment(struct decoder *d, uint64_t index)
{
	struct str s;

	if (!read_string(d, index, &s))
		return bad(d, "a comment that is not in the string table");
	return vec_push(&d->comments, s) ? 0 : -ENOMEM;
}

static int walk_head(struct decoder *d, const struct wire_field *f)
{
	switch (f->number) {
	case 9:
		d->head.time_ns = (int64_t)f->value;
		return 0;
	case 10:
		d->head.duration_ns = (int64_t)f->value;
		return 0;
	case 11:
		return is_bytes(f) ? read_type(d, f->bytes, &d->head.period_type)
				   : bad(d, "a broken period type");
	case 12:
		d->head.period = (int64_t)f->value;
		return 0;
	case 13:
		return each_number(d, f, add_comment);
	case 14:
		d->default_type = f->value;
		return 0;
	default:
		return 0;
	}
}

static int walk_tables(struct decoder *d, const struct wire_field *f)
{
	struct profile_type type;
	int r;

	switch (f->number) {
	case 1:
		r = is_bytes(f) ? read_type(d, f->bytes, &type) : bad(d, "a broken sample type");
		return r < 0 ? r : vec_push(&d->types, type) ? 0 : -ENOMEM;
	case 3:
		return is_bytes(f) ? read_mapping(d, f->bytes) : bad(d, "a broken mapping");
	case 5:
		return is_bytes(f) ? read_function(d, f->bytes) : bad(d, "a broken function");
	default:
		return walk_head(d, f);
	}
}

static int walk_locations(struct decoder *d, const struct wire_field *f)
{
	if (f->number != 4)
		return 0;
	return is_bytes(f) ? read_location(d, f->bytes) : bad(d, "a broken location");
}

static int walk_samples(struct decoder *d, const struct wire_field *f)
{
	if (f->number != 2)
		return 0;
	return is_bytes(f) ? read_sample(d, f->bytes) : bad(d, "a broken sample");
}

static int walk(struct decoder *d, int (*fn)(struct decoder *d, const struct wire_field *f))
{
	struct str in = buf_str(&d->raw);
	struct wire_field f;
	int r = 0;

	while (in.n && r == 0) {
		if (!wire_next(&in, &f))
			return bad(d, "it is no protocol buffer, or is cut off");
		r = fn(d, &f);
	}
	return r;
}

static int add_null_entries(struct decoder *d)
{
	struct profile_mapping m = {.file = STR("")};
	struct profile_function fn = {.name = STR("")};
	/* Location ids get a null at position 0 only for find_id's shortcut. */
	struct profile_location l = {0};

	m.build_id = fn.system_name = fn.file = STR("");
	if (!vec_push(&d->mappings, m) || !vec_push(&d->mapping_ids, 0) ||
	    !vec_push(&d->functions, fn) || !vec_push(&d->function_ids, 0) ||
	    !vec_push(&d->locations, l) || !vec_push(&d->location_ids, 0))
		return -ENOMEM;
	return 0;
}

static int read_all(struct decoder *d)
{
	int r = add_null_entries(d);

	if (r == 0)
		r = walk(d, walk_strings);
	if (r == 0)
		r = walk(d, walk_tables);
	if (r == 0 && d->types.n == 0)
		r = bad(d, "it names no sample type");
	if (r == 0)
		r = walk(d, walk_locations);
	if (r == 0)
		r = walk(d, walk_samples);
	return r;
}

/* Moves an array from the decoder to the profile. */
#define hand_over(part)                                                                            \
	do {                                                                                       \
		p->part = d->part.p;                                                               \
		p->n_##part = d->part.n;                                                           \
		d->part.p = NULL;                                                                  \
	} while (0)

static void hand_all_over(struct decoder *d, struct profile *p)
{
	struct str shown;

	*p = d->head;
	hand_over(types);
	hand_over(functions);
	hand_over(mappings);
	hand_over(lines);
	hand_over(locations);
	hand_over(frames);
	hand_over(labels);
	hand_over(samples);
	hand_over(values);
	hand_over(comments);
	check(p->n_values == p->n_types * p->n_samples);
	p->default_type = p->n_types - 1;
	if (d->default_type && read_string(d, d->default_type, &shown))
		for (size_t i = 0; i < p->n_types; i++)
			if (str_eq(p->types[i].type, shown))
				p->default_type = i;
}

static void decoder_fini(struct decoder *d)
{
	buf_free(&d->raw);
	vec_free(&d->strings);
	vec_free(&d->types);
	vec_free(&d->functions);
	vec_free(&d->mappings);
	vec_free(&d->lines);
	vec_free(&d->locations);
	vec_free(&d->frames);
	vec_free(&d->labels);
	vec_free(&d->samples);
	vec_free(&d->values);
	vec_free(&d->comments);
	vec_free(&d->function_ids);
	vec_free(&d->mapping_ids);
	vec_free(&d->location_ids);
	index_free(&d->function_index);
	index_free(&d->mapping_index);
	index_free(&d->location_index);
}

/* The bytes uncompressed, in memory of our own. */
static int unpack(struct decoder *d, struct str data)
{
	int r;

	if (data.n == 0)
		return bad(d, "it is empty");
	if (gzip_is(data)) {
		r = gzip_inflate(data, &d->raw, PROFILE_MAX_BYTES);
		if (r == -EBADMSG)
			return bad(d, "its gzip data are damaged or cut off");
	} else {
		r = data.n > PROFILE_MAX_BYTES ? -E2BIG : buf_str_append(&d->raw, data);
	}
	if (r == -E2BIG)
		return error_set(d->err, r, "the profile is larger than %zu MB uncompressed",
				 PROFILE_MAX_BYTES >> 20);
	return r;
}

int profile_decode(struct str data, struct profile **ret, struct error *err)
{
	struct decoder d = {.err = err};
	struct owned_profile *p;
	int r = unpack(&d, data);

	if (r == 0)
		r = read_all(&d);
	p = r == 0 ? calloc(1, sizeof(*p)) : NULL;
	if (p) {
		hand_all_over(&d, &p->profile);
		p->raw = take_ptr(d.raw.p);
		*ret = &p->profile;
	} else if (r == 0) {
		r = -ENOMEM;
	}
	decoder_fini(&d);
	return r;
}

int profile_read(const char *path, struct profile **ret, struct error *err)
{
	struct buf data = {.limit = PROFILE_MAX_BYTES + 65536};
	int r = file_read(AT_FDCWD, path, &data, PROFILE_MAX_BYTES);

	if (r == -E2BIG)
		error_set(err, r, "the file is larger than %zu MB", PROFILE_MAX_BYTES >> 20);
	else if (r < 0)
		error_errno(err, r, "cannot read the file");
	else
		r = profile_decode(buf_str(&data), ret, err);
	buf_free(&data);
	return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}

void profile_free(struct profile *p)
{
	struct owned_profile *owned = (struct owned_profile *)p;

	if (!p)
		return;
	free(p->types);
	free(p->functions);
	free(p->mappings);
	free(p->lines);
	free(p->locations);
	free(p->frames);
	free(p->labels);
	free(p->samples);
	free(p->values);
	free(p->comments);
	free(owned->raw);
	free(owned);
}

const struct profile_label *profile_label(const struct profile *p, const struct profile_sample *s,
					  struct str key)
{
	for (uint32_t i = 0; i < s->n_labels; i++)
		if (str_eq(p->labels[s->label_start + i].key, key))
			return &p->labels[s->label_start + i];
	return NULL;
}
