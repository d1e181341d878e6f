/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder. Contract in decode.h.
 *
 * protobuf-c makes a tree of the file (protobuf/pprof.proto). Its counts say how long each array
 * is; so the profile is one arena, and the tree is gone when its strings are copied. References are
 * resolved in the order functions and mappings, locations, samples, whatever order they had in the
 * file. */
#include "pprof/decode.h"

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/index.h"
#include "pprof/gzip.h"
#include "pprof/owned.h"
#include "protobuf/message.h"
#include "protobuf/pprof.pb-c.h"

#include <errno.h>
#include <fcntl.h>

/* A tree takes six times the bytes of an ordinary profile, and fifteen times those of one whose
 * stacks are a frame deep. */
#define TREE_FACTOR 20
#define TREE_BASE   ((size_t)1 << 20)

/* Positions by the file's ids. Those that are their own position, as most writers have it, need no
 * index. */
struct ids {
	uint64_t *ids; /* by position; 0 is the null entry's */
	size_t n;
	struct index others;
};

struct decoder {
	const Pprof__Profile *in;
	struct arena tree;
	struct arena memory; /* the profile's */
	struct profile *out;
	struct str *strings;
	struct ids functions, mappings, locations;
	struct error *err;
};

static int bad(const struct decoder *d, const char *what)
{
	return error_set(d->err, -EBADMSG, "not a valid pprof profile: %s", what);
}

static bool read_string(const struct decoder *d, int64_t index, struct str *ret)
{
	bool none = index == 0 && d->in->n_string_table == 0;

	if (!none && (index < 0 || (uint64_t)index >= d->in->n_string_table))
		return false;
	*ret = none ? STR("") : d->strings[index];
	return true;
}

static int begin_ids(struct decoder *d, struct ids *ids, size_t n)
{
	ids->n = 1;
	ids->ids = arena_array(&d->tree, uint64_t, n + 1);
	return ids->ids ? 0 : -ENOMEM;
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

static uint32_t find_id(const struct ids *ids, uint64_t id)
{
	struct id_probe probe = {ids->ids, id};

	if (id < ids->n && ids->ids[id] == id)
		return (uint32_t)id;
	return index_find(&ids->others, hash_u64(id), same_id, &probe);
}

/* Of the next position. */
static int add_id(struct decoder *d, struct ids *ids, uint64_t id, const char *fault)
{
	if (id == 0 || find_id(ids, id) != INDEX_NONE)
		return bad(d, fault);
	ids->ids[ids->n] = id;
	if (id != ids->n && index_add(&ids->others, hash_u64(id), (uint32_t)ids->n) < 0)
		return -ENOMEM;
	ids->n++;
	return 0;
}

static bool read_type(const struct decoder *d, const Pprof__ValueType *in, struct profile_type *ret)
{
	return read_string(d, in->type, &ret->type) && read_string(d, in->unit, &ret->unit);
}

static uint32_t line_number(int64_t line)
{
	return line < 0 || line > UINT32_MAX ? 0 : (uint32_t)line;
}

static int read_function(struct decoder *d, const Pprof__Function *in, struct profile_function *ret)
{
	if (!read_string(d, in->name, &ret->name) ||
	    !read_string(d, in->system_name, &ret->system_name) ||
	    !read_string(d, in->filename, &ret->file))
		return bad(d, "a broken function");
	ret->start_line = line_number(in->start_line);
	return add_id(d, &d->functions, in->id, "a function whose id is 0 or not unique");
}

static int read_mapping(struct decoder *d, const Pprof__Mapping *in, struct profile_mapping *ret)
{
	if (!read_string(d, in->filename, &ret->file) ||
	    !read_string(d, in->build_id, &ret->build_id))
		return bad(d, "a broken mapping");
	ret->start = in->memory_start;
	ret->limit = in->memory_limit;
	ret->offset = in->file_offset;
	ret->has_functions = in->has_functions != 0;
	return add_id(d, &d->mappings, in->id, "a mapping whose id is 0 or not unique");
}

static int read_location(struct decoder *d, const Pprof__Location *in, struct profile_location *ret)
{
	struct profile *p = d->out;

	*ret = (struct profile_location){in->address, find_id(&d->mappings, in->mapping_id),
					 (uint32_t)p->n_lines, (uint32_t)in->n_line};
	if (ret->mapping == INDEX_NONE)
		return bad(d, "a location refers to a mapping that is not there");
	for (size_t i = 0; i < in->n_line; i++) {
		uint32_t function = find_id(&d->functions, in->line[i]->function_id);

		if (function == INDEX_NONE)
			return bad(d, "a line refers to a function that is not there");
		p->lines[p->n_lines++] =
			(struct profile_line){function, line_number(in->line[i]->line)};
	}
	return add_id(d, &d->locations, in->id, "a location whose id is 0 or not unique");
}

static int read_labels(struct decoder *d, const Pprof__Sample *in)
{
	for (size_t i = 0; i < in->n_label; i++) {
		const Pprof__Label *from = in->label[i];
		struct profile_label *l = &d->out->labels[d->out->n_labels++];

		if (!read_string(d, from->key, &l->key) || !read_string(d, from->str, &l->text) ||
		    !read_string(d, from->num_unit, &l->unit))
			return bad(d, "a broken label");
		l->number = from->num;
	}
	return 0;
}

static int read_sample(struct decoder *d, const Pprof__Sample *in, struct profile_sample *ret)
{
	struct profile *p = d->out;

	*ret = (struct profile_sample){(uint32_t)p->n_frames, (uint32_t)in->n_location_id,
				       (uint32_t)p->n_labels, (uint32_t)in->n_label};
	for (size_t i = 0; i < in->n_location_id; i++) {
		uint64_t id = in->location_id[i];
		uint32_t at = id ? find_id(&d->locations, id) : INDEX_NONE;

		if (at == INDEX_NONE)
			return bad(d, "a sample refers to a location that is not there");
		p->frames[p->n_frames++] = at;
	}
	if (in->n_value != p->n_types)
		return bad(d, "a sample with another number of values than there are types");
	memcpy(p->values + p->n_values, in->value, in->n_value * sizeof(*in->value));
	p->n_values += in->n_value;
	return read_labels(d, in);
}

/* The strings, one behind the other, in memory that stays. */
static int copy_strings(struct decoder *d)
{
	const Pprof__Profile *in = d->in;
	size_t sum = 0;
	char *to;

	for (size_t i = 0; i < in->n_string_table; i++)
		sum += in->string_table[i].len;
	to = arena_alloc(&d->memory, sum + 1);
	d->strings = arena_array(&d->tree, struct str, in->n_string_table + 1);
	if (!to || !d->strings)
		return -ENOMEM;
	for (size_t i = 0; i < in->n_string_table; i++) {
		struct str s = message_str(in->string_table[i]);

		if (s.n)
			memcpy(to, s.p, s.n);
		d->strings[i] = (struct str){to, s.n};
		to += s.n;
	}
	return 0;
}

/* The profile's arrays, as long as the tree says they will be. */
static int make_arrays(struct decoder *d)
{
	const Pprof__Profile *in = d->in;
	size_t lines = 0, frames = 0, labels = 0, values = in->n_sample * in->n_sample_type;
	struct arena *a = &d->memory;
	struct profile *p = d->out;

	for (size_t i = 0; i < in->n_location; i++)
		lines += in->location[i]->n_line;
	for (size_t i = 0; i < in->n_sample; i++) {
		frames += in->sample[i]->n_location_id;
		labels += in->sample[i]->n_label;
		if (in->sample[i]->n_value != in->n_sample_type)
			values = 0; /* it will be refused; do not allocate by it */
	}
	p->types = arena_array(a, struct profile_type, in->n_sample_type);
	p->functions = arena_array(a, struct profile_function, in->n_function + 1);
	p->mappings = arena_array(a, struct profile_mapping, in->n_mapping + 1);
	p->lines = arena_array(a, struct profile_line, lines);
	p->locations = arena_array(a, struct profile_location, in->n_location + 1);
	p->frames = arena_array(a, uint32_t, frames);
	p->labels = arena_array(a, struct profile_label, labels);
	p->samples = arena_array(a, struct profile_sample, in->n_sample);
	p->values = arena_array(a, int64_t, values);
	p->comments = arena_array(a, struct str, in->n_comment);
	return p->types && p->functions && p->mappings && p->lines && p->locations && p->frames &&
			       p->labels && p->samples && p->values && p->comments
		       ? 0
		       : -ENOMEM;
}

static int read_head(struct decoder *d)
{
	const Pprof__Profile *in = d->in;
	struct profile *p = d->out;
	struct str shown;

	for (; p->n_types < in->n_sample_type; p->n_types++)
		if (!read_type(d, in->sample_type[p->n_types], &p->types[p->n_types]))
			return bad(d, "a broken sample type");
	if (p->n_types == 0)
		return bad(d, "it names no sample type");
	if (in->period_type && !read_type(d, in->period_type, &p->period_type))
		return bad(d, "a broken period type");
	for (; p->n_comments < in->n_comment; p->n_comments++)
		if (!read_string(d, in->comment[p->n_comments], &p->comments[p->n_comments]))
			return bad(d, "a comment that is not in the string table");
	p->time_ns = in->time_nanos;
	p->duration_ns = in->duration_nanos;
	p->period = in->period;
	p->default_type = p->n_types - 1;
	if (in->default_sample_type && read_string(d, in->default_sample_type, &shown))
		for (size_t i = 0; i < p->n_types; i++)
			if (str_eq(p->types[i].type, shown))
				p->default_type = i;
	return 0;
}

/* Each table has a null entry at position 0. */
static int read_tables(struct decoder *d)
{
	const Pprof__Profile *in = d->in;
	struct profile *p = d->out;
	int r = 0;

	p->functions[0] = (struct profile_function){.name = STR(""), STR(""), STR("")};
	p->mappings[0] = (struct profile_mapping){.file = STR(""), .build_id = STR("")};
	p->n_functions = p->n_mappings = p->n_locations = 1;
	for (size_t i = 0; r == 0 && i < in->n_function; i++)
		r = read_function(d, in->function[i], &p->functions[p->n_functions++]);
	for (size_t i = 0; r == 0 && i < in->n_mapping; i++)
		r = read_mapping(d, in->mapping[i], &p->mappings[p->n_mappings++]);
	for (size_t i = 0; r == 0 && i < in->n_location; i++)
		r = read_location(d, in->location[i], &p->locations[p->n_locations++]);
	return r;
}

static int read_samples(struct decoder *d)
{
	struct profile *p = d->out;

	for (size_t i = 0; i < d->in->n_sample; i++) {
		int r = read_sample(d, d->in->sample[i], &p->samples[p->n_samples++]);

		if (r < 0)
			return r;
	}
	check(p->n_values == p->n_types * p->n_samples);
	return 0;
}

static int read_all(struct decoder *d)
{
	int r = copy_strings(d);

	if (r == 0)
		r = make_arrays(d);
	if (r == 0)
		r = begin_ids(d, &d->functions, d->in->n_function);
	if (r == 0)
		r = begin_ids(d, &d->mappings, d->in->n_mapping);
	if (r == 0)
		r = begin_ids(d, &d->locations, d->in->n_location);
	if (r == 0)
		r = read_head(d);
	if (r == 0)
		r = read_tables(d);
	return r < 0 ? r : read_samples(d);
}

static int too_large(struct decoder *d)
{
	return error_set(d->err, -E2BIG, "the profile is larger than %zu MB uncompressed",
			 PROFILE_MAX_BYTES >> 20);
}

/* The tree of plain bytes. */
static int unpack(struct decoder *d, struct str plain)
{
	const struct message_bounds bounds = {.bytes = PROFILE_MAX_BYTES,
					      .fields = SIZE_MAX,
					      .memory = plain.n * TREE_FACTOR + TREE_BASE};
	const void *tree = NULL;
	int r;

	if (plain.n > PROFILE_MAX_BYTES)
		return too_large(d);
	r = message_unpack(&pprof__profile__descriptor, plain, &bounds, &d->tree, &tree);
	if (r == -EBADMSG)
		return bad(d, "it is no protocol buffer, or is cut off");
	if (r == -E2BIG)
		return bad(d, "it has too many empty parts for its size");
	d->in = tree;
	return r;
}

static int unpack_gzip(struct decoder *d, struct str data)
{
	struct buf plain = BUF_NULL;
	int r = gzip_inflate(data, &plain, PROFILE_MAX_BYTES);

	if (r == -EBADMSG)
		bad(d, "its gzip data are damaged or cut off");
	else if (r == -E2BIG)
		too_large(d);
	else if (r == 0)
		r = unpack(d, buf_str(&plain));
	buf_free(&plain);
	return r;
}

int profile_decode(struct str data, struct profile **ret, struct error *err)
{
	struct decoder d = {.err = err};
	struct owned_profile *owned = arena_array(&d.memory, struct owned_profile, 1);
	int r = -ENOMEM;

	if (data.n == 0)
		r = bad(&d, "it is empty");
	else if (owned)
		r = gzip_is(data) ? unpack_gzip(&d, data) : unpack(&d, data);
	if (r == 0) {
		d.out = &owned->profile;
		r = read_all(&d);
	}
	index_free(&d.functions.others);
	index_free(&d.mappings.others);
	index_free(&d.locations.others);
	arena_free(&d.tree);
	if (r < 0) {
		arena_free(&d.memory);
		return r;
	}
	owned->memory = d.memory;
	*ret = &owned->profile;
	return 0;
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
	struct arena memory;

	if (!p)
		return;
	memory = owned->memory; /* in which it lies itself */
	arena_free(&memory);
}

const struct profile_label *profile_label(const struct profile *p, const struct profile_sample *s,
					  struct str key)
{
	for (uint32_t i = 0; i < s->n_labels; i++)
		if (str_eq(p->labels[s->label_start + i].key, key))
			return &p->labels[s->label_start + i];
	return NULL;
}
