/* SPDX-License-Identifier: Apache-2.0 */
/* One profile of OTLP's as pprof. An entry of the dictionary is read when the profile first needs
 * it, and is remembered for that profile. Contract in otlp-private.h. */
#include "receive-http/otlp-private.h"

#include "protobuf/wire.h"
#include "receive-http/profile-outline.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAX_LINES  256u /* of a location: inlined calls */
#define MAX_FRAMES 16384u
#define GZIP_LEVEL 6

/* The profile is at fault. */
static int bad(struct otlp_reading *r, const char *what)
{
	return error_set(r->err, -EBADMSG, "%s", what);
}

int otlp_field(struct otlp_reading *r, struct str *in, struct wire_field *ret)
{
	if (wire_next(in, ret))
		return 0;
	*ret = (struct wire_field){0};
	return bad(r, "a message is cut off, or no protobuf");
}

/* Whether so many bytes may still be read. Where they may not, the next entry says so, too. */
static bool spend(struct otlp_reading *r, size_t n)
{
	bool can = n < r->work_left;

	r->work_left = can ? r->work_left - n - 1 : 0;
	return can;
}

/* An entry of a table. */
static int entry_at(struct otlp_reading *r, uint32_t table, uint64_t at, struct str *ret)
{
	if (at >= r->tables[table].n)
		return error_set(r->err, -EBADMSG,
				 "entry %" PRIu64 " of the dictionary's table %u is not there", at,
				 table);
	*ret = r->tables[table].p[at];
	if (!spend(r, ret->n))
		return error_set(r->err, -E2BIG,
				 "the profiles refer to more than %u MiB of the dictionary",
				 OTLP_MAX_WORK >> 20);
	return 0;
}

static int string(struct otlp_reading *r, uint64_t at, uint32_t *ret)
{
	struct str text;
	int rc = entry_at(r, OTLP_STRING, at, &text);

	*ret = rc == 0 ? pprof_add_string(r->encoder, text) : 0;
	return rc;
}

/* Whether this profile has read the entry before: then *ret_id is its id. */
static bool remembered(struct otlp_reading *r, uint32_t table, uint64_t at, uint32_t *ret_id)
{
	const struct otlp_made *m = r->made[table];

	if (at >= r->tables[table].n || m[at].stamp != r->stamp || r->work_left == 0)
		return false;
	r->work_left--;
	*ret_id = m[at].id;
	return true;
}

static uint32_t remember(struct otlp_reading *r, uint32_t table, uint64_t at, uint32_t id)
{
	r->made[table][at] = (struct otlp_made){r->stamp, id};
	return id;
}

struct str otlp_text(struct otlp_reading *r, uint64_t at)
{
	struct str text = at < r->tables[OTLP_STRING].n ? r->tables[OTLP_STRING].p[at] : STR_NULL;

	return spend(r, text.n) ? text : STR_NULL;
}

/* The text of an AnyValue, if it is one. */
static struct str any_text(struct otlp_reading *r, struct str in)
{
	struct str text = STR_NULL;
	struct wire_field f;

	while (in.n && wire_next(&in, &f)) {
		if (f.type == WIRE_BYTES && f.number == 1)
			text = f.bytes;
		else if (f.type == WIRE_VARINT && f.number == 8)
			text = otlp_text(r, f.value);
	}
	return text;
}

/* The text of an attribute with this key, or nothing. */
static struct str attribute_text(struct otlp_reading *r, uint64_t at, const char *key)
{
	struct str in, name = STR_NULL, text = STR_NULL;
	struct wire_field f;

	if (at >= r->tables[OTLP_ATTRIBUTE].n)
		return STR_NULL;
	in = r->tables[OTLP_ATTRIBUTE].p[at];
	if (!spend(r, in.n))
		return STR_NULL;
	while (in.n && wire_next(&in, &f)) {
		if (f.type == WIRE_VARINT && f.number == 1)
			name = otlp_text(r, f.value);
		else if (f.type == WIRE_BYTES && f.number == 2)
			text = any_text(r, f.bytes);
	}
	return str_is(name, key) ? text : STR_NULL;
}

/* Of those whose indices are one packed list, or a single one. */
static struct str attribute_of(struct otlp_reading *r, const struct wire_field *f, const char *key)
{
	struct str list = f->bytes, text = STR_NULL;
	uint64_t at;

	if (f->type == WIRE_VARINT)
		return attribute_text(r, f->value, key);
	while (!text.n && wire_get(&list, &at))
		text = attribute_text(r, at, key);
	return text;
}

static int function(struct otlp_reading *r, uint64_t at, uint32_t *ret)
{
	struct pprof_function function = {0};
	struct wire_field f;
	struct str in;
	int rc;

	*ret = 0;
	if (remembered(r, OTLP_FUNCTION, at, ret))
		return 0;
	rc = entry_at(r, OTLP_FUNCTION, at, &in);
	if (rc || at == 0)
		return rc;
	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (rc || f.type != WIRE_VARINT)
			continue;
		if (f.number == 1)
			rc = string(r, f.value, &function.name);
		else if (f.number == 2)
			rc = string(r, f.value, &function.system_name);
		else if (f.number == 3)
			rc = string(r, f.value, &function.file);
		else if (f.number == 4)
			function.start_line = f.value <= INT32_MAX ? (uint32_t)f.value : 0;
	}
	if (!rc)
		*ret = remember(r, OTLP_FUNCTION, at, pprof_add_function(r->encoder, &function));
	return rc;
}

static int mapping(struct otlp_reading *r, uint64_t at, uint32_t *ret)
{
	struct pprof_mapping mapping = {0};
	struct str in, gnu = STR_NULL, go = STR_NULL;
	struct wire_field f;
	int rc;

	*ret = 0;
	if (remembered(r, OTLP_MAPPING, at, ret))
		return 0;
	rc = entry_at(r, OTLP_MAPPING, at, &in);
	if (rc || at == 0)
		return rc;
	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (rc)
			break;
		if (f.number == 5) {
			gnu = gnu.n ? gnu : attribute_of(r, &f, "process.executable.build_id.gnu");
			go = go.n ? go : attribute_of(r, &f, "process.executable.build_id.go");
		} else if (f.type != WIRE_VARINT) {
			continue;
		} else if (f.number == 4) {
			rc = string(r, f.value, &mapping.file);
		} else if (f.number <= 3) {
			uint64_t *const to[] = {&mapping.start, &mapping.limit, &mapping.offset};

			*to[f.number - 1] = f.value;
		}
	}
	if (rc)
		return rc;
	mapping.build_id = pprof_add_string(r->encoder, gnu.n ? gnu : go);
	*ret = remember(r, OTLP_MAPPING, at, pprof_add_mapping(r->encoder, &mapping));
	return 0;
}

static int line(struct otlp_reading *r, struct str in, struct pprof_line *ret)
{
	struct wire_field f;
	int rc = 0;

	*ret = (struct pprof_line){0};
	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (rc || f.type != WIRE_VARINT)
			continue;
		if (f.number == 1)
			rc = function(r, f.value, &ret->function);
		else if (f.number == 2 && f.value <= INT32_MAX)
			ret->line = (uint32_t)f.value;
		else if (f.number == 3 && f.value <= INT32_MAX)
			ret->column = (uint32_t)f.value;
	}
	return rc;
}

/* A frame of a language whose code is in no file. */
static uint32_t mapping_of_type(struct otlp_reading *r, struct str type)
{
	struct pprof_mapping mapping = {0};

	if (!type.n || str_is(type, "native") || str_is(type, "kernel"))
		return 0;
	mapping.file = pprof_add_string(r->encoder, type);
	return pprof_add_mapping(r->encoder, &mapping);
}

/* A frame of which nothing is known. */
static struct pprof_line unknown_line(struct otlp_reading *r)
{
	const struct pprof_function function = {
		.name = pprof_add_string(r->encoder, STR("[unknown]"))};

	return (struct pprof_line){.function = pprof_add_function(r->encoder, &function)};
}

static uint32_t unknown_location(struct otlp_reading *r)
{
	const struct pprof_line line = unknown_line(r);

	return pprof_add_location(r->encoder,
				  &(struct pprof_location){.lines = &line, .n_lines = 1});
}

/* A location as its fields say. */
static int read_location(struct otlp_reading *r, struct str in, struct pprof_location *l,
			 struct pprof_line *lines, struct str *ret_type)
{
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (f.type == WIRE_VARINT && f.number == 1)
			rc = mapping(r, f.value, &l->mapping);
		else if (f.type == WIRE_VARINT && f.number == 2)
			l->address = f.value;
		else if (f.type == WIRE_BYTES && f.number == 3 && l->n_lines < MAX_LINES)
			rc = line(r, f.bytes, &lines[l->n_lines++]);
		else if (f.number == 4 && !ret_type->n)
			*ret_type = attribute_of(r, &f, "profile.frame.type");
	}
	return rc;
}

/* One that has neither a name nor an address is dropped by servers, with its samples. */
static void complete_location(struct otlp_reading *r, struct pprof_location *l,
			      struct pprof_line *lines, struct str type)
{
	if (l->n_lines == 1 && !lines[0].function)
		l->n_lines = 0;
	if (!l->n_lines && !l->address)
		lines[l->n_lines++] = unknown_line(r);
	for (uint32_t i = 0; i < l->n_lines; i++)
		if (!lines[i].function)
			lines[i].function = unknown_line(r).function;
	if (!l->mapping)
		l->mapping = mapping_of_type(r, type);
}

static int location(struct otlp_reading *r, uint64_t at, uint32_t *ret)
{
	struct pprof_line lines[MAX_LINES];
	struct pprof_location location = {.lines = lines};
	struct str in, type = STR_NULL;
	int rc;

	if (remembered(r, OTLP_LOCATION, at, ret))
		return 0;
	rc = entry_at(r, OTLP_LOCATION, at, &in);
	if (!rc)
		rc = read_location(r, in, &location, lines, &type);
	if (rc)
		return rc;
	complete_location(r, &location, lines, type);
	*ret = remember(r, OTLP_LOCATION, at, pprof_add_location(r->encoder, &location));
	return 0;
}

static int check_size(struct otlp_reading *r)
{
	return pprof_size_bound(r->encoder) <= PROFILE_MAX_RAW
		       ? 0
		       : bad(r, "a profile has more than 32 MiB as pprof");
}

/* The stack's locations to r->frames, leaf first. */
static int stack(struct otlp_reading *r, uint64_t at)
{
	struct wire_field f;
	struct str in;
	int rc = entry_at(r, OTLP_STACK, at, &in);

	r->frames.n = 0;
	while (in.n && !rc) {
		uint64_t index;

		rc = otlp_field(r, &in, &f);
		if (rc || f.number != 1)
			continue;
		while (!rc && (f.type == WIRE_VARINT || f.bytes.n)) {
			uint32_t id;

			if (f.type == WIRE_VARINT)
				index = f.value;
			else if (!wire_get(&f.bytes, &index))
				return bad(r, "a stack is cut off");
			if (r->frames.n >= MAX_FRAMES)
				return bad(r, "a stack has more than 16384 frames");
			rc = location(r, index, &id);
			if (!rc)
				rc = check_size(r);
			if (!rc && !vec_push(&r->frames, id))
				rc = -ENOMEM;
			if (f.type == WIRE_VARINT)
				break;
		}
	}
	return rc;
}

/* What its values, or its points in time, come to. */
static int64_t value_of(struct str in)
{
	int64_t sum = 0, points = 0;
	struct wire_field f;
	bool any = false;

	while (in.n && wire_next(&in, &f)) {
		uint64_t value;

		if (f.number == 5)
			points += f.type == WIRE_BYTES ? (int64_t)(f.bytes.n / 8) : 1;
		if (f.number != 4)
			continue;
		any |= f.type == WIRE_VARINT || f.bytes.n;
		if (f.type == WIRE_VARINT)
			sum = pprof_sum(sum, (int64_t)f.value);
		while (f.type == WIRE_BYTES && wire_get(&f.bytes, &value))
			sum = pprof_sum(sum, (int64_t)value);
	}
	return any ? sum : points;
}

static int sample(struct otlp_reading *r, const struct otlp_shape *shape, struct str in)
{
	int64_t value = value_of(in);
	struct pprof_sample sample = {.values = &value};
	uint64_t at = 0;
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_VARINT && f.number == 1)
			at = f.value;
	}
	if (!rc)
		rc = stack(r, at);
	if (!rc && !r->frames.n && !vec_push(&r->frames, unknown_location(r)))
		rc = -ENOMEM;
	if (rc)
		return rc;
	if (shape->counted && __builtin_mul_overflow(value, shape->period, &value))
		value = value < 0 ? INT64_MIN : INT64_MAX;
	sample.locations = r->frames.p;
	sample.n_locations = (uint32_t)r->frames.n;
	pprof_add_sample(r->encoder, &sample);
	return check_size(r);
}

static int value_type(struct otlp_reading *r, struct str in, struct str *ret_type,
		      struct str *ret_unit)
{
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_VARINT && (f.number == 1 || f.number == 2))
			rc = entry_at(r, OTLP_STRING, f.value, f.number == 1 ? ret_type : ret_unit);
	}
	return rc;
}

static uint64_t fixed(struct str bytes)
{
	uint64_t value;

	memcpy(&value, bytes.p - 8, sizeof(value));
	return le64toh(value);
}

static void shape_number(struct otlp_shape *s, const struct wire_field *f, struct str behind)
{
	if (f->type == WIRE_I64 && f->number == 3)
		s->time_ns = (int64_t)fixed(behind);
	else if (f->type == WIRE_VARINT && f->number == 4)
		s->duration_ns = (int64_t)f->value;
	else if (f->type == WIRE_VARINT && f->number == 6)
		s->period = (int64_t)f->value;
}

/* All but its samples. */
static int read_shape(struct otlp_reading *r, struct str in, struct otlp_shape *ret)
{
	struct wire_field f;
	int rc = 0;

	*ret = (struct otlp_shape){0};
	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		shape_number(ret, &f, in);
		if (f.type == WIRE_BYTES && f.number == 1)
			rc = value_type(r, f.bytes, &ret->type, &ret->unit);
		else if (f.type == WIRE_BYTES && f.number == 5)
			rc = value_type(r, f.bytes, &ret->period_type, &ret->period_unit);
	}
	ret->counted = ret->period > 0 && str_is(ret->unit, "count") && ret->period_type.n &&
		       str_is(ret->period_unit, "nanoseconds");
	return rc || ret->type.n ? rc : bad(r, "a profile has no sample type");
}

static int read_samples(struct otlp_reading *r, struct str in, const struct otlp_shape *shape)
{
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 2)
			rc = sample(r, shape, f.bytes);
	}
	return rc;
}

static uint32_t text(struct otlp_reading *r, struct str s)
{
	return pprof_add_string(r->encoder, s);
}

static int write_profile(struct otlp_reading *r, const struct otlp_shape *shape, struct str *ret)
{
	const struct pprof_head head = {.time_ns = shape->time_ns,
					.duration_ns = shape->duration_ns,
					.period = shape->period,
					.period_type = text(r, shape->period_type),
					.period_unit = text(r, shape->period_unit)};
	struct buf out = BUF_NULL;
	size_t raw = pprof_size_bound(r->encoder);
	int rc;

	if (raw > r->raw_left)
		return error_set(r->err, -E2BIG,
				 "the profiles of the request are more than %u MiB as pprof",
				 OTLP_MAX_RAW >> 20);
	rc = pprof_finish(r->encoder, &head, GZIP_LEVEL, &out, &raw);
	r->raw_left -= raw;
	*ret = rc == 0 ? arena_str(&r->out->arena, buf_str(&out)) : STR_NULL;
	buf_free(&out);
	return rc == 0 && !ret->p ? -ENOMEM : rc;
}

/* As pprof; STR_NULL: it has no samples. */
int otlp_profile(struct otlp_reading *r, struct str in, struct otlp_shape *shape, struct str *ret)
{
	int rc = read_shape(r, in, shape);

	*ret = STR_NULL;
	if (rc)
		return rc;
	r->encoder = pprof_encoder_new();
	if (!r->encoder)
		return -ENOMEM;
	r->stamp++;
	if (shape->counted)
		pprof_add_type(r->encoder, text(r, shape->period_type),
			       text(r, shape->period_unit));
	else
		pprof_add_type(r->encoder, text(r, shape->type), text(r, shape->unit));
	rc = read_samples(r, in, shape);
	if (!rc && pprof_failed(r->encoder))
		rc = -ENOMEM;
	if (!rc && pprof_n_samples(r->encoder))
		rc = write_profile(r, shape, ret);
	pprof_encoder_free(r->encoder);
	r->encoder = NULL;
	return rc;
}
