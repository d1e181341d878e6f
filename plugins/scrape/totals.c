/* SPDX-License-Identifier: Apache-2.0 */
/* Totals to differences. Contract in totals.h.
 *
 * Three passes over the message, since samples stand before what they refer to: functions and
 * locations become hashes by id; samples of one stack are added up; the message is copied. */
#include "scrape/totals.h"

#include "base/hash.h"
#include "base/index.h"
#include "base/search.h"
#include "base/vec.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_TYPES 8

/* Of strings, functions, locations and stacks each. While they are read, one of two bytes takes up
 * to 100. */
#define MAX_ITEMS TOTALS_MAX_STACKS

/* Numbers of the fields in profile.proto. */
enum { SAMPLE_TYPE = 1, SAMPLE = 2, LOCATION = 4, FUNCTION = 5, STRINGS = 6, DURATION = 10 };

/* What is remembered of a stack. */
struct past {
	uint64_t key;
	int64_t values[2];
};

struct totals {
	int which;
	bool begun;
	size_t limit; /* of totals_bytes */
	int64_t last_ns;
	struct past *past; /* sorted by key */
	size_t n_past;
};

struct hashed {
	uint64_t id, hash;
};

struct ids {
	VEC(struct hashed) list;
	struct index index;
};

struct stack {
	uint64_t key;
	struct str rest; /* the first sample of it */
	int64_t values[MAX_TYPES];
	bool written;
};

/* One call. */
struct pass {
	VEC(struct str) strings;
	struct ids functions, locations;
	VEC(struct stack) stacks;
	struct index by_key;
	uint32_t n_types;
	int column[MAX_TYPES]; /* of `past`; -1: not differenced */
	bool has_duration;
	struct error *err;
};

struct totals *totals_new(int which)
{
	struct totals *t = calloc(1, sizeof(*t));

	if (t) {
		t->which = which;
		t->limit = TOTALS_MAX_BYTES;
	}
	return t;
}

void totals_free(struct totals *t)
{
	if (t)
		free(t->past);
	free(t);
}

size_t totals_bytes(const struct totals *t)
{
	return sizeof(*t) + t->n_past * sizeof(*t->past);
}

void totals_limit(struct totals *t, size_t bytes)
{
	t->limit = bytes;
}

static int bad(const struct pass *p, const char *what)
{
	return error_set(p->err, -EBADMSG, "not a valid pprof profile: %s", what);
}

static int too_many(const struct pass *p, const char *what)
{
	return error_set(p->err, -E2BIG, "too large: it has more than %u %s", MAX_ITEMS, what);
}

/* --- Ids --- */

struct probe {
	const void *list;
	uint64_t sought;
};

static bool same_id(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return ((const struct hashed *)probe->list)[position].id == probe->sought;
}

/* The hash of an id; 0 for one that is not there. Most writers count from 1, so the place is tried
 * before the index. */
static uint64_t hash_of(const struct ids *ids, uint64_t id)
{
	struct probe probe = {ids->list.p, id};
	uint32_t at;

	if (id && id <= ids->list.n && ids->list.p[id - 1].id == id)
		return ids->list.p[id - 1].hash;
	at = index_find(&ids->index, hash_u64(id), same_id, &probe);
	return at == INDEX_NONE ? 0 : ids->list.p[at].hash;
}

static int add_id(const struct pass *p, struct ids *ids, uint64_t id, uint64_t hash)
{
	uint32_t at = (uint32_t)ids->list.n;

	/* Equal hashes, of which there could be a million, make an index slow. */
	if (hash_of(ids, id))
		return 0;
	if (at == MAX_ITEMS)
		return too_many(p, ids == &p->functions ? "functions" : "locations");
	if (!vec_push(&ids->list, ((struct hashed){id, hash | 1})))
		return -ENOMEM;
	return id == at + 1 ? 0 : index_add(&ids->index, hash_u64(id), at);
}

static uint64_t hash_string(const struct pass *p, uint64_t index)
{
	return index < p->strings.n ? hash_str(p->strings.p[index]) : 0;
}

/* --- Messages --- */

static int read_function(struct pass *p, struct str in)
{
	uint64_t id = 0, name = 0, file = 0;
	struct wire_field f;

	while (in.n) {
		if (!wire_next(&in, &f))
			return bad(p, "a broken function");
		if (f.number == 1)
			id = f.value;
		else if (f.number == 2)
			name = f.value;
		else if (f.number == 4)
			file = f.value;
	}
	return add_id(p, &p->functions, id,
		      hash_mix(hash_string(p, name), hash_string(p, file)));
}

static bool read_line(const struct pass *p, struct str in, uint64_t *hash)
{
	struct wire_field f;

	while (in.n) {
		if (!wire_next(&in, &f))
			return false;
		if (f.number == 1)
			*hash = hash_mix(*hash, hash_of(&p->functions, f.value));
		else if (f.number == 2)
			*hash = hash_mix(*hash, f.value);
	}
	return true;
}

static int read_location(struct pass *p, struct str in)
{
	uint64_t id = 0, hash = 0;
	struct wire_field f;

	while (in.n) {
		if (!wire_next(&in, &f) ||
		    (f.number == 4 && f.type == WIRE_BYTES && !read_line(p, f.bytes, &hash)))
			return bad(p, "a broken location");
		if (f.number == 1)
			id = f.value;
		else if (f.number == 3)
			hash = hash_mix(hash, f.value);
	}
	return add_id(p, &p->locations, id, hash);
}

static int read_type(struct pass *p, const struct totals *t, struct str in)
{
	static const char *const names[][2] = {[TOTALS_ALLOC] = {"alloc_objects", "alloc_space"},
					       [TOTALS_DELAY] = {"contentions", "delay"}};
	uint64_t type = 0;
	struct wire_field f;

	if (p->n_types == MAX_TYPES)
		return bad(p, "it has more than 8 sample types");
	while (in.n) {
		if (!wire_next(&in, &f))
			return bad(p, "a broken sample type");
		if (f.number == 1)
			type = f.value;
	}
	p->column[p->n_types] = -1;
	for (int i = 0; i < 2; i++)
		if (type < p->strings.n && str_is(p->strings.p[type], names[t->which][i]))
			p->column[p->n_types] = i;
	p->n_types++;
	return 0;
}

/* --- Samples --- */

/* The next number of a list, packed or not; `field` is where it stands. */
static bool next_number(struct wire_field *field, uint64_t *ret)
{
	if (field->type == WIRE_VARINT) {
		*ret = field->value;
		field->type = WIRE_BYTES;
		field->bytes = STR_NULL;
		return true;
	}
	return wire_get(&field->bytes, ret);
}

static bool has_number(const struct wire_field *field)
{
	return field->type == WIRE_VARINT || field->bytes.n;
}

static bool hash_label(const struct pass *p, struct str in, uint64_t *hash)
{
	struct wire_field f;

	while (in.n) {
		if (!wire_next(&in, &f))
			return false;
		*hash = hash_mix(*hash, f.number == 3 ? f.value : hash_string(p, f.value));
	}
	return true;
}

static bool read_sample(const struct pass *p, struct str in, uint64_t *ret_key,
			int64_t values[MAX_TYPES])
{
	uint64_t key = hash_str(STR("stack")), number; /* seeded */
	uint32_t n = 0;
	struct wire_field f;

	while (in.n) {
		if (!wire_next(&in, &f))
			return false;
		if (f.number == 3 && !hash_label(p, f.bytes, &key))
			return false;
		while (f.number < 3 && has_number(&f)) {
			if (!next_number(&f, &number) || (f.number == 2 && n == p->n_types))
				return false;
			if (f.number == 2)
				values[n++] = (int64_t)number;
			else
				key = hash_mix(key, hash_of(&p->locations, number));
		}
	}
	*ret_key = key;
	return n == p->n_types;
}

static bool same_key(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return ((const struct stack *)probe->list)[position].key == probe->sought;
}

static struct stack *find_stack(const struct pass *p, uint64_t key)
{
	struct probe probe = {p->stacks.p, key};
	uint32_t at = index_find(&p->by_key, key, same_key, &probe);

	return at == INDEX_NONE ? NULL : &p->stacks.p[at];
}

static int64_t saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int add_sample(struct pass *p, struct str in)
{
	struct stack new = {.rest = in}, *stack;

	if (!read_sample(p, in, &new.key, new.values))
		return bad(p, "a broken sample");
	stack = find_stack(p, new.key);
	for (uint32_t i = 0; stack && i < p->n_types; i++)
		stack->values[i] = saturated(stack->values[i], new.values[i]);
	if (stack)
		return 0;
	if (p->stacks.n == MAX_ITEMS)
		return too_many(p, "stacks");
	if (!vec_push(&p->stacks, new))
		return -ENOMEM;
	return index_add(&p->by_key, new.key, (uint32_t)p->stacks.n - 1);
}

/* --- Passes --- */

static int add_string(struct pass *p, struct str string)
{
	if (p->strings.n == MAX_ITEMS)
		return too_many(p, "strings");
	return vec_push(&p->strings, string) ? 0 : -ENOMEM;
}

static int gather(struct pass *p, const struct totals *t, struct str profile, uint32_t number)
{
	struct wire_field f;
	int r = 0;

	while (r == 0 && profile.n) {
		if (!wire_next(&profile, &f))
			return bad(p, "it is cut off or not protobuf");
		p->has_duration |= f.number == DURATION;
		if (f.number != number || f.type != WIRE_BYTES)
			continue;
		if (number == STRINGS)
			r = add_string(p, f.bytes);
		else
			r = number == SAMPLE_TYPE ? read_type(p, t, f.bytes)
			    : number == FUNCTION  ? read_function(p, f.bytes)
			    : number == LOCATION  ? read_location(p, f.bytes)
						  : add_sample(p, f.bytes);
	}
	return r;
}

static const struct past *past_of(const struct totals *t, uint64_t key)
{
	size_t at = search_partition(t->n_past, i, t->past[i].key < key);

	return at < t->n_past && t->past[at].key == key ? &t->past[at] : NULL;
}

static int by_key(const void *a, const void *b)
{
	return compare(((const struct past *)a)->key, ((const struct past *)b)->key);
}

/* What will be remembered; NULL when memory is short. */
static struct past *future_of(const struct pass *p)
{
	struct past *past = calloc(p->stacks.n + 1, sizeof(*past));

	for (size_t i = 0; past && i < p->stacks.n; i++) {
		past[i].key = p->stacks.p[i].key;
		for (uint32_t k = 0; k < p->n_types; k++)
			if (p->column[k] >= 0)
				past[i].values[p->column[k]] = p->stacks.p[i].values[k];
	}
	if (past)
		qsort(past, p->stacks.n, sizeof(*past), by_key);
	return past;
}

static bool has_shrunk(const struct totals *t, const struct past *now, size_t n)
{
	for (int column = 0; column < 2; column++) {
		int64_t before = 0, after = 0;

		for (size_t i = 0; i < t->n_past; i++)
			before = saturated(before, t->past[i].values[column]);
		for (size_t i = 0; i < n; i++)
			after = saturated(after, now[i].values[column]);
		if (after < before)
			return true;
	}
	return false;
}

/* A sample with these values and everything else as it was. */
static void put_sample(struct buf *out, const struct pass *p, struct str in,
		       const int64_t values[MAX_TYPES])
{
	struct buf message = BUF_NULL, packed = BUF_NULL;
	struct wire_field f;

	for (uint32_t i = 0; i < p->n_types; i++)
		wire_put(&packed, (uint64_t)values[i]);
	while (in.n) {
		const char *from = in.p;

		if (wire_next(&in, &f) && f.number != 2)
			buf_append(&message, from, (size_t)(in.p - from));
	}
	wire_put_bytes(&message, 2, buf_str(&packed));
	wire_put_bytes(out, SAMPLE, buf_str(&message));
	out->failed |= message.failed || packed.failed;
	buf_free(&message);
	buf_free(&packed);
}

/* Whether the stack has grown, or has a value that is no total. */
static bool subtract(const struct totals *t, const struct pass *p, struct stack *stack, bool reset)
{
	const struct past *past = reset ? NULL : past_of(t, stack->key);
	bool any = false;

	for (uint32_t i = 0; i < p->n_types; i++) {
		int64_t before = past && p->column[i] >= 0 ? past->values[p->column[i]] : 0;

		stack->values[i] = stack->values[i] > before ? stack->values[i] - before : 0;
		any |= stack->values[i] != 0;
	}
	return any;
}

static uint64_t write_all(const struct totals *t, struct pass *p, struct str profile, bool reset,
			  struct buf *out)
{
	uint64_t n = 0, key;
	int64_t values[MAX_TYPES];
	struct wire_field f;

	while (profile.n) {
		const char *from = profile.p;
		struct stack *stack = NULL;

		if (!wire_next(&profile, &f))
			break;
		if (f.number != SAMPLE || f.type != WIRE_BYTES) {
			buf_append(out, from, (size_t)(profile.p - from));
			continue;
		}
		if (read_sample(p, f.bytes, &key, values))
			stack = find_stack(p, key);
		if (!stack || stack->written)
			continue;
		stack->written = true;
		if (!subtract(t, p, stack, reset))
			continue;
		put_sample(out, p, f.bytes, stack->values);
		n++;
	}
	return n;
}

static int read_all(struct pass *p, const struct totals *t, struct str profile)
{
	static const uint32_t order[] = {STRINGS, SAMPLE_TYPE, FUNCTION, LOCATION, SAMPLE};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(order) / sizeof(*order); i++)
		r = gather(p, t, profile, order[i]);
	return r == 0 && !p->n_types ? bad(p, "it names no sample type") : r;
}

static void pass_fini(struct pass *p)
{
	vec_free(&p->strings);
	vec_free(&p->functions.list);
	vec_free(&p->locations.list);
	vec_free(&p->stacks);
	index_free(&p->functions.index);
	index_free(&p->locations.index);
	index_free(&p->by_key);
}

static int check_room(const struct totals *t, const struct pass *p)
{
	if (sizeof(*t) + p->stacks.n * sizeof(*t->past) <= t->limit)
		return 0;
	return error_set(p->err, -E2BIG,
			 "refused: with it, more than %zu MiB would be kept of all totals; let "
			 "another component scrape some of the targets, or use godeltaprof",
			 TOTALS_MAX_BYTES >> 20);
}

int totals_difference(struct totals *t, struct str profile, int64_t now_ns, struct buf *out,
		      uint64_t *ret_samples, struct error *err)
{
	struct pass p = {.err = err};
	struct past *now = NULL;
	size_t before = out->n;
	int r = read_all(&p, t, profile);

	if (r == 0)
		r = check_room(t, &p);
	if (r == 0 && !(now = future_of(&p)))
		r = -ENOMEM;
	if (r == 0 && t->begun) {
		*ret_samples = write_all(t, &p, profile, has_shrunk(t, now, p.stacks.n), out);
		if (!p.has_duration && now_ns > t->last_ns)
			wire_put_field(out, DURATION, (uint64_t)(now_ns - t->last_ns));
		r = out->failed ? -ENOMEM : 0;
	}
	if (r == 0) {
		r = !t->begun;
		free(t->past);
		t->past = now;
		t->n_past = p.stacks.n;
		t->begun = true;
		t->last_ns = now_ns;
	} else {
		free(now);
		out->n = before;
	}
	pass_fini(&p);
	return r;
}
