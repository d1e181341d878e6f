/* SPDX-License-Identifier: Apache-2.0 */
/* See cprofiles.h. Which key becomes which field is said by tables: maps become messages. */
#include "agents/fluent-bit/cprofiles.h"

#include "agents/fluent-bit/msgpack.h"
#include "base/buf.h"
#include "protobuf/wire.h"

#include <errno.h>

#define NOTHING "\xc0" /* nil */

enum shape { NUMBER, FIXED, PACKED, MESSAGE, MESSAGES };

/* A key of a map, and the field that it becomes. */
struct rule {
	const char *key;
	uint32_t field;
	enum shape shape;
	const struct rule *of; /* of MESSAGE and MESSAGES */
};

/* ProfilesDictionary's tables, and what their entries are made of. */
#define MAPPINGS   1u
#define LOCATIONS  2u
#define FUNCTIONS  3u
#define STRINGS    5u
#define ATTRIBUTES 6u
#define STACKS     7u

static const struct rule mapping[] = {
	{"memory_start", 1, NUMBER, NULL}, {"memory_limit", 2, NUMBER, NULL},
	{"file_offset", 3, NUMBER, NULL},  {"filename", 4, NUMBER, NULL},
	{"attributes", 5, PACKED, NULL},   {0},
};
static const struct rule line[] = {
	{"function_index", 1, NUMBER, NULL},
	{"line", 2, NUMBER, NULL},
	{"column", 3, NUMBER, NULL},
	{0},
};
static const struct rule location[] = {
	{"mapping_index", 1, NUMBER, NULL},
	{"address", 2, NUMBER, NULL},
	{"lines", 3, MESSAGES, line},
	{"attributes", 4, PACKED, NULL},
	{0},
};
static const struct rule function[] = {
	{"name", 1, NUMBER, NULL},
	{"system_name", 2, NUMBER, NULL},
	{"filename", 3, NUMBER, NULL},
	{"start_line", 4, NUMBER, NULL},
	{0},
};
static const struct rule tables[] = {
	{"mappings", MAPPINGS, MESSAGES, mapping},
	{"locations", LOCATIONS, MESSAGES, location},
	{"functions", FUNCTIONS, MESSAGES, function},
	{0},
};
static const struct rule type[] = {
	{"type", 1, NUMBER, NULL},
	{"unit", 2, NUMBER, NULL},
	{0},
};
/* sample_types and sample stand in lists of their own. */
static const struct rule profile[] = {
	{"time_nanos", 3, FIXED, NULL},
	{"duration_nanos", 4, NUMBER, NULL},
	{"period_type", 5, MESSAGE, type},
	{"period", 6, NUMBER, NULL},
	{0},
};
static const struct rule sample[] = {
	{"values", 4, PACKED, NULL},
	{"timestamps_unix_nano", 5, FIXED, NULL},
	{0},
};
static const struct rule stack[] = {{"location_index", 1, PACKED, NULL}, {0}};

/* --- Values --- */

/* The entries of an array or a map at the front, or 0 for nothing. */
static int begin(struct str *in, enum token_kind kind, uint64_t *ret)
{
	struct token t;

	if (!msgpack_next(in, &t) || (t.kind != kind && t.kind != TOKEN_OTHER))
		return -EBADMSG;
	*ret = t.entries;
	return 0;
}

static int put_numbers(struct str *in, uint32_t field, bool fixed, struct buf *out)
{
	struct buf packed = BUF_NULL;
	struct token t;
	uint64_t n;
	int r = begin(in, TOKEN_ARRAY, &n);

	for (; r == 0 && n > 0; n--) {
		if (!msgpack_next(in, &t) || t.kind != TOKEN_NUMBER)
			r = -EBADMSG;
		else if (fixed)
			buf_append(&packed, &t.number, sizeof(t.number));
		else
			wire_put(&packed, t.number);
	}
	if (packed.n)
		wire_put_bytes(out, field, buf_str(&packed));
	out->failed |= packed.failed;
	buf_free(&packed);
	return r;
}

static int put_number(struct str *in, uint32_t field, bool fixed, struct buf *out)
{
	struct token t;

	if (!msgpack_next(in, &t) || t.kind != TOKEN_NUMBER)
		return -EBADMSG;
	if (!fixed) {
		wire_put_field(out, field, t.number);
		return 0;
	}
	wire_put(out, field << 3 | WIRE_I64);
	buf_append(out, &t.number, sizeof(t.number));
	return 0;
}

static int put_map(struct str *in, const struct rule *rules, struct buf *out);

static int put_message(struct str *in, const struct rule *rule, struct buf *out)
{
	struct buf message = BUF_NULL;
	int r = put_map(in, rule->of, &message);

	wire_put_bytes(out, rule->field, buf_str(&message));
	out->failed |= message.failed;
	buf_free(&message);
	return r;
}

static int put_messages(struct str *in, const struct rule *rule, struct buf *out)
{
	uint64_t n;
	int r = begin(in, TOKEN_ARRAY, &n);

	for (; r == 0 && n > 0; n--)
		r = put_message(in, rule, out);
	return r;
}

static bool is_array(struct str in)
{
	struct token t;

	return msgpack_next(&in, &t) && t.kind == TOKEN_ARRAY;
}

static int put_value(struct str *in, const struct rule *rule, struct buf *out)
{
	switch (rule->shape) {
	case MESSAGE:
		return put_message(in, rule, out);
	case MESSAGES:
		return put_messages(in, rule, out);
	case NUMBER:
	case FIXED:
	case PACKED:
	default:
		return is_array(*in) ? put_numbers(in, rule->field, rule->shape == FIXED, out)
				     : put_number(in, rule->field, rule->shape == FIXED, out);
	}
}

/* Nesting is that of the rules. */
static int put_map(struct str *in, const struct rule *rules, struct buf *out)
{
	struct token key;
	uint64_t n;
	int r = begin(in, TOKEN_MAP, &n);

	for (; r == 0 && n > 0; n--) {
		const struct rule *rule = rules;

		if (!msgpack_next(in, &key) || key.kind != TOKEN_TEXT)
			return -EBADMSG;
		while (rule->key && !str_eq(key.text, str_of(rule->key)))
			rule++;
		if (rule->key)
			r = put_value(in, rule, out);
		else if (!msgpack_skip(in))
			r = -EBADMSG;
	}
	return r;
}

/* --- Attributes --- */

/* AnyValue: texts, numbers and truths; of others nothing is said. */
static int put_any(struct str *in, uint32_t field, struct buf *out)
{
	struct str whole = *in;
	struct token t;

	if (!msgpack_next(&whole, &t) || !msgpack_skip(in))
		return -EBADMSG;
	if (t.kind == TOKEN_TEXT) {
		wire_put_head(out, field, wire_size(t.text.n));
		wire_put_bytes(out, 1, t.text);
	} else if (t.kind == TOKEN_NUMBER) {
		wire_put_head(out, field, 1 + wire_length(t.number));
		wire_put(out, 3 << 3 | WIRE_VARINT);
		wire_put(out, t.number);
	}
	return 0;
}

/* The keys and values of a map, each pair a message in `field`. With `strings` a key is added to
 * those, of which there are *n_strings, and named by its position. */
static int put_pairs(struct str in, uint32_t field, struct buf *strings, uint64_t *n_strings,
		     struct buf *out)
{
	uint64_t n;
	int r = begin(&in, TOKEN_MAP, &n);

	for (; r == 0 && n > 0; n--) {
		struct buf pair = BUF_NULL;
		struct token key;

		if (!msgpack_next(&in, &key) || key.kind != TOKEN_TEXT)
			return -EBADMSG;
		if (!strings) {
			wire_put_bytes(&pair, 1, key.text);
		} else if (key.text.n) {
			wire_put_field(&pair, 1, (*n_strings)++);
			wire_put_bytes(strings, STRINGS, key.text);
		}
		r = put_any(&in, 2, &pair);
		wire_put_bytes(out, field, buf_str(&pair));
		out->failed |= pair.failed;
		buf_free(&pair);
	}
	return r;
}

/* --- Profiles --- */

/* More than any profiler has; each costs a profile. */
#define MAX_TYPES 16

struct value_type {
	uint64_t type, unit; /* of the string table */
};

struct types {
	struct value_type of[MAX_TYPES], of_period;
	uint64_t n, period;
};

struct reading {
	/* A profile is built of these; `resource` serves all of its own. */
	struct buf resource, profile, dictionary, request;
	size_t bytes_left; /* of requests */
	cprofiles_fn fn;
	void *context;
};

static int put_strings(struct str in, struct buf *out, uint64_t *ret_n)
{
	struct token t;
	uint64_t n;
	int r = begin(&in, TOKEN_ARRAY, &n);

	*ret_n = n;
	for (; r == 0 && n > 0; n--) {
		if (!msgpack_next(&in, &t) || t.kind > TOKEN_TEXT)
			return -EBADMSG;
		wire_put_bytes(out, STRINGS, t.text);
	}
	return r;
}

/* What stands under a key of the map, or nothing; nothing is in nothing. */
static int part(struct str in, struct str key, struct str *ret)
{
	bool nothing = in.n > 0 && in.p[0] == NOTHING[0];
	int found = nothing ? 0 : msgpack_find(in, key, ret);

	if (found == 0)
		*ret = STR(NOTHING);
	return found < 0 ? found : 0;
}

static int number_of(struct str in, struct str key, uint64_t *ret)
{
	struct token t;
	struct str at;
	int rc = part(in, key, &at);

	if (rc == 0 && (!msgpack_next(&at, &t) || t.kind > TOKEN_NUMBER))
		return -EBADMSG;
	if (rc == 0)
		*ret = t.number;
	return rc;
}

/* Of the sample's values the one of type `which`. */
static int put_one_value(struct str in, uint64_t which, struct buf *out)
{
	struct token t = {0};
	struct str at;
	uint64_t n;
	int rc = part(in, STR("values"), &at);

	if (rc == 0)
		rc = begin(&at, TOKEN_ARRAY, &n);
	for (uint64_t i = 0; rc == 0 && i < n && i <= which; i++)
		if (!msgpack_next(&at, &t) || t.kind != TOKEN_NUMBER)
			return -EBADMSG;
	if (rc == 0) {
		uint64_t value = which < n ? t.number : 0;

		wire_put_head(out, 4, wire_length(value));
		wire_put(out, value);
	}
	return rc;
}

/* Each has a stack of its own; the first of the table is nothing. */
static int put_stacks(struct reading *r, struct str in)
{
	uint64_t n;
	int rc = begin(&in, TOKEN_ARRAY, &n);

	wire_put_bytes(&r->dictionary, STACKS, STR(""));
	for (; rc == 0 && n > 0; n--)
		rc = put_message(&in, &(struct rule){NULL, STACKS, MESSAGE, stack}, &r->dictionary);
	return rc;
}

/* Of a profile of one type a sample's values are one for each point in time; of several, one for
 * each type. */
static int put_samples(struct reading *r, struct str in, const struct types *types, uint64_t which)
{
	uint64_t n, i;
	int rc = begin(&in, TOKEN_ARRAY, &n);

	for (i = 1; rc == 0 && i <= n; i++) {
		struct buf b = BUF_NULL;

		wire_put_field(&b, 1, i);
		if (types->n <= 1)
			rc = put_map(&in, sample, &b);
		else
			rc = put_one_value(in, which, &b);
		if (rc == 0 && types->n > 1 && !msgpack_skip(&in))
			rc = -EBADMSG;
		wire_put_bytes(&r->profile, 2, buf_str(&b));
		r->profile.failed |= b.failed;
		buf_free(&b);
	}
	return rc;
}

static int put_tables(struct reading *r, struct str in)
{
	uint64_t n_strings = 0;
	struct str at;
	int rc = part(in, STR("string_table"), &at);

	if (rc == 0)
		rc = put_strings(at, &r->dictionary, &n_strings);
	if (rc == 0)
		rc = part(in, STR("attribute_table"), &at);
	if (rc == 0) {
		struct buf table = BUF_NULL;

		rc = put_pairs(at, ATTRIBUTES, &r->dictionary, &n_strings, &table);
		buf_str_append(&r->dictionary, buf_str(&table));
		r->dictionary.failed |= table.failed;
		buf_free(&table);
	}
	if (rc == 0)
		rc = part(in, STR("sample"), &at);
	if (rc == 0)
		rc = put_stacks(r, at);
	return rc == 0 ? put_map(&in, tables, &r->dictionary) : rc;
}

static int read_type(struct str in, struct value_type *ret)
{
	int rc = number_of(in, STR("type"), &ret->type);

	return rc == 0 ? number_of(in, STR("unit"), &ret->unit) : rc;
}

static int read_types(struct str in, struct types *ret)
{
	struct str at, period;
	int rc = part(in, STR("sample_types"), &at);

	*ret = (struct types){0};
	if (rc == 0)
		rc = begin(&at, TOKEN_ARRAY, &ret->n);
	if (rc == 0 && ret->n > MAX_TYPES)
		rc = -EBADMSG;
	for (uint64_t i = 0; rc == 0 && i < ret->n; i++) {
		rc = read_type(at, &ret->of[i]);
		if (rc == 0 && !msgpack_skip(&at))
			rc = -EBADMSG;
	}
	if (rc == 0)
		rc = number_of(in, STR("period"), &ret->period);
	if (rc == 0)
		rc = part(in, STR("period_type"), &period);
	return rc == 0 ? read_type(period, &ret->of_period) : rc;
}

static bool text_is(struct str strings, uint64_t at, const char *text)
{
	struct token t;
	uint64_t n;

	if (begin(&strings, TOKEN_ARRAY, &n) != 0 || at >= n)
		return false;
	do
		if (!msgpack_next(&strings, &t))
			return false;
	while (at-- > 0);
	return str_is(t.text, text);
}

/* Samples of a clock become its time where they are read. Beside the time itself, as in
 * [samples, cpu], that would be there twice. */
static bool is_there_as_time(struct str strings, const struct types *types, uint64_t which)
{
	bool has_time = false;

	for (uint64_t i = 0; i < types->n; i++)
		has_time |= i != which && types->of[i].type == types->of_period.type &&
			    types->of[i].unit == types->of_period.unit;
	return has_time && types->period > 0 && text_is(strings, types->of[which].unit, "count") &&
	       text_is(strings, types->of_period.unit, "nanoseconds");
}

/* With the type `which`, unless there is none. */
static int put_profile(struct reading *r, struct str in, const struct types *types, uint64_t which)
{
	struct str at;
	int rc = part(in, STR("sample"), &at);

	buf_clear(&r->profile);
	if (which < types->n) {
		const struct value_type *t = &types->of[which];

		wire_put_head(&r->profile, 1, 2 + wire_length(t->type) + wire_length(t->unit));
		wire_put(&r->profile, 1 << 3 | WIRE_VARINT);
		wire_put(&r->profile, t->type);
		wire_put(&r->profile, 2 << 3 | WIRE_VARINT);
		wire_put(&r->profile, t->unit);
	}
	if (rc == 0)
		rc = put_samples(r, at, types, which);
	return rc == 0 ? put_map(&in, profile, &r->profile) : rc;
}

/* ExportProfilesServiceRequest{ ResourceProfiles{ Resource, ScopeProfiles }, dictionary } */
static int put_request(struct reading *r)
{
	size_t scope = wire_size(r->profile.n);
	size_t all = wire_size(r->resource.n) + 1 + wire_length(scope) + scope;
	size_t n = r->resource.n + r->profile.n + r->dictionary.n;

	if (r->resource.failed || r->profile.failed || r->dictionary.failed)
		return -ENOMEM;
	if (n > r->bytes_left)
		return -E2BIG;
	r->bytes_left -= n;
	buf_clear(&r->request);
	wire_put_head(&r->request, 1, all);
	wire_put_bytes(&r->request, 1, buf_str(&r->resource));
	wire_put_head(&r->request, 2, scope);
	wire_put_bytes(&r->request, 2, buf_str(&r->profile));
	wire_put_bytes(&r->request, 2, buf_str(&r->dictionary));
	return r->request.failed ? -ENOMEM : 0;
}

/* A profile of OTLP has one type, so one of several becomes several. */
static int read_profile(struct reading *r, struct str in)
{
	struct types types;
	struct str strings;
	uint64_t which = 0;
	int rc = read_types(in, &types);

	buf_clear(&r->dictionary);
	if (rc == 0)
		rc = put_tables(r, in);
	if (rc == 0)
		rc = part(in, STR("string_table"), &strings);
	for (; rc == 0 && which < (types.n ? types.n : 1); which++) {
		if (types.n > 1 && is_there_as_time(strings, &types, which))
			continue;
		rc = put_profile(r, in, &types, which);
		if (rc == 0)
			rc = put_request(r);
		if (rc == 0)
			rc = r->fn(r->context, 0, buf_str(&r->request));
	}
	return rc;
}

typedef int (*read_fn)(struct reading *r, struct str in);

/* The value at the front. One at fault is passed over; behind one that is cut off there is nothing.
 */
static int read_one(struct reading *r, struct str *in, read_fn read)
{
	struct str rest = *in;
	bool whole = msgpack_skip(&rest);
	int rc = read(r, *in);

	if (!whole)
		return rc == -ENOMEM ? rc : -EBADMSG;
	*in = rest;
	return rc == -EBADMSG || rc == -E2BIG ? r->fn(r->context, rc, STR_NULL) : rc;
}

static int read_each(struct reading *r, struct str in, read_fn read)
{
	uint64_t n;
	int rc = begin(&in, TOKEN_ARRAY, &n);

	for (; rc == 0 && n > 0; n--)
		rc = read_one(r, &in, read);
	return rc;
}

static int read_scope(struct reading *r, struct str in)
{
	struct str at;
	int rc = part(in, STR("profiles"), &at);

	return rc == 0 ? read_each(r, at, read_profile) : rc;
}

static int read_resource(struct reading *r, struct str in)
{
	struct str at;
	int rc = part(in, STR("resource"), &at);

	buf_clear(&r->resource);
	if (rc == 0)
		rc = part(at, STR("attributes"), &at);
	if (rc == 0)
		rc = put_pairs(at, 1, NULL, NULL, &r->resource);
	if (rc == 0)
		rc = part(in, STR("scope_profiles"), &at);
	return rc == 0 ? read_each(r, at, read_scope) : rc;
}

static int read_message(struct reading *r, struct str in)
{
	struct str at;
	int rc = part(in, STR("profiles"), &at);

	return rc == 0 ? read_each(r, at, read_resource) : rc;
}

int cprofiles_read(struct str chunk, cprofiles_fn fn, void *context)
{
	struct reading r = {.bytes_left = CPROFILES_MAX_BYTES, .fn = fn, .context = context};
	int rc = 0;

	while (rc == 0 && chunk.n > 0)
		rc = read_one(&r, &chunk, read_message);
	buf_free(&r.resource);
	buf_free(&r.profile);
	buf_free(&r.dictionary);
	buf_free(&r.request);
	return rc;
}
