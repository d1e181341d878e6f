/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles. Contract in otlp.h. Each table is put together in a buffer of its own, what it
 * refers to being interned on the way; the tables become the dictionary when all is known. */
#include "export/otlp.h"

#include "export/frame-type.h"
#include "export/pprof.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/intern.h"
#include "base/vec.h"
#include "protobuf/message.h"
#include "protobuf/otlp.pb-c.h"
#include "protobuf/wire.h"

#include <endian.h>
#include <errno.h>

/* An entry in its table's bytes, without its head. */
struct span {
	size_t start, n;
};

struct encoding {
	const struct profile *p;
	struct intern strings;
	/* By the dictionary's field: the entries in wire form, how many, and where each is by its
	 * content. */
	struct buf tables[8];
	uint32_t n[8];
	struct index found[8];
	VEC(struct span) spans[8];
	uint32_t *mappings, *functions, *locations; /* of the profile's: entry, or 0 */
	struct buf scratch;                         /* an entry under way */
	bool failed;
};

#define MAPPING   1u
#define LOCATION  2u
#define FUNCTION  3u
#define LINK      4u
#define STRING    5u
#define ATTRIBUTE 6u
#define STACK     7u

static uint32_t put_string(struct encoding *e, struct str s)
{
	uint32_t id = intern_add(&e->strings, s);

	e->failed |= id == INDEX_NONE;
	return id;
}

struct wanted {
	const struct encoding *e;
	uint32_t field;
	struct str bytes;
};

static bool same(const void *context, uint32_t position)
{
	const struct wanted *w = context;
	const struct span *s = &w->e->spans[w->field].p[position];

	return str_eq((struct str){w->e->tables[w->field].p + s->start, s->n}, w->bytes);
}

static void append(struct encoding *e, uint32_t field, struct str bytes)
{
	struct buf *table = &e->tables[field];

	wire_put_head(table, field, bytes.n);
	e->failed |= table->failed ||
		     !vec_push(&e->spans[field], ((struct span){table->n, bytes.n}));
	buf_str_append(table, bytes);
	e->failed |= table->failed;
	e->n[field]++;
}

/* The entry with the scratch's content, made if need be; the scratch is empty afterwards. */
static uint32_t put_entry(struct encoding *e, uint32_t field)
{
	struct wanted w = {e, field, buf_str(&e->scratch)};
	uint64_t hash = hash_str(w.bytes);
	uint32_t at = e->scratch.failed || e->failed ? 0
						     : index_find(&e->found[field], hash, same, &w);

	e->failed |= e->scratch.failed;
	if (at == INDEX_NONE) {
		at = e->n[field];
		append(e, field, w.bytes);
		e->failed |= index_add(&e->found[field], hash, at) != 0;
	}
	buf_clear(&e->scratch);
	return e->failed ? 0 : at;
}

/* KeyValueAndUnit{ key=1, value=2{string=1} }. */
static uint32_t put_attribute(struct encoding *e, const char *key, struct str text)
{
	wire_put_field(&e->scratch, 1, put_string(e, str_of(key)));
	wire_put_head(&e->scratch, 2, wire_size(text.n));
	wire_put_bytes(&e->scratch, 1, text);
	return put_entry(e, ATTRIBUTE);
}

/* KeyValueAndUnit{ key=1, value=2{int=3} }. */
static uint32_t put_number(struct encoding *e, const char *key, int64_t number)
{
	wire_put_field(&e->scratch, 1, put_string(e, str_of(key)));
	wire_put_head(&e->scratch, 2, 1 + wire_length((uint64_t)number));
	wire_put_field(&e->scratch, 3, (uint64_t)number);
	return put_entry(e, ATTRIBUTE);
}

static bool is_hex(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("0123456789abcdefABCDEF", s.p[i]) || !s.p[i])
			return false;
	return s.n > 0;
}

/* Appends indices into a table as one packed list. */
static void put_indices(struct buf *b, uint32_t field, const uint32_t *list, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += wire_length(list[i]);
	if (n > 0)
		wire_put_head(b, field, bytes);
	for (size_t i = 0; i < n; i++)
		wire_put(b, list[i]);
}

/* The ids of a mapping's file, apart by spaces (EXPORT_IDS); one that is no hash is Go's. */
static size_t put_ids(struct encoding *e, struct str ids, uint32_t *ret, size_t max)
{
	size_t n = 0;

	while (ids.n && n < max) {
		struct str id = str_cut(&ids, ' ');
		bool hashed = str_starts(id, STR(EXPORT_HTLHASH));

		if (hashed)
			id = str_skip(id, sizeof(EXPORT_HTLHASH) - 1);
		if (id.n)
			ret[n++] = put_attribute(e,
						 hashed ? "process.executable.build_id.htlhash"
						 : is_hex(id) ? "process.executable.build_id.gnu"
							      : "process.executable.build_id.go",
						 id);
	}
	return n;
}

static uint32_t put_mapping(struct encoding *e, uint32_t i)
{
	const struct profile_mapping *m = &e->p->mappings[i];
	uint32_t ids[3], file;
	size_t n;

	if (!i || e->mappings[i])
		return e->mappings[i];
	n = put_ids(e, m->build_id, ids, 3);
	file = put_string(e, m->file);
	if (m->start < m->limit) { /* or both are to be 0 */
		wire_put_field(&e->scratch, 1, m->start);
		wire_put_field(&e->scratch, 2, m->limit);
	}
	wire_put_field(&e->scratch, 3, m->offset);
	wire_put_field(&e->scratch, 4, file);
	put_indices(&e->scratch, 5, ids, n);
	e->mappings[i] = put_entry(e, MAPPING);
	return e->mappings[i];
}

static uint32_t put_function(struct encoding *e, uint32_t i)
{
	const struct profile_function *f = &e->p->functions[i];

	if (!i || e->functions[i])
		return e->functions[i];
	wire_put_field(&e->scratch, 1, put_string(e, f->name));
	wire_put_field(&e->scratch, 2, put_string(e, f->system_name));
	wire_put_field(&e->scratch, 3, put_string(e, f->file));
	wire_put_field(&e->scratch, 4, f->start_line);
	e->functions[i] = put_entry(e, FUNCTION);
	return e->functions[i];
}

static uint32_t put_location(struct encoding *e, uint32_t i)
{
	const struct profile_location *l = &e->p->locations[i];
	struct buf bytes = BUF_NULL;
	struct str type;
	uint32_t attribute;

	if (!i || e->locations[i])
		return e->locations[i];
	type = frame_type(e->p, l);
	attribute = type.n ? put_attribute(e, "profile.frame.type", type) : 0;
	wire_put_field(&bytes, 1, put_mapping(e, l->mapping));
	wire_put_field(&bytes, 2, l->address);
	for (uint32_t k = 0; k < l->n_lines; k++) {
		const struct profile_line *line = &e->p->lines[l->line_start + k];
		uint32_t function = put_function(e, line->function);
		size_t n = (function ? 1 + wire_length(function) : 0) +
			   (line->line ? 1 + wire_length(line->line) : 0);

		wire_put_head(&bytes, 3, n);
		wire_put_field(&bytes, 1, function);
		wire_put_field(&bytes, 2, line->line);
	}
	put_indices(&bytes, 4, &attribute, attribute != 0);
	buf_str_append(&e->scratch, buf_str(&bytes));
	e->failed |= bytes.failed;
	buf_free(&bytes);
	e->locations[i] = put_entry(e, LOCATION);
	return e->locations[i];
}

static uint32_t put_stack(struct encoding *e, const struct profile_sample *s)
{
	struct buf frames = BUF_NULL;

	for (uint32_t i = 0; i < s->n_frames; i++)
		wire_put(&frames, put_location(e, e->p->frames[s->frame_start + i]));
	if (frames.n)
		wire_put_bytes(&e->scratch, 1, buf_str(&frames));
	e->failed |= frames.failed;
	buf_free(&frames);
	return put_entry(e, STACK);
}

/* What is known of the thread that a sample is of, in this order. */
static size_t put_sample_attributes(struct encoding *e, const struct profile_sample *s,
				    uint32_t *ret)
{
	static const char *const keys[][2] = {{"process", "process.executable.name"},
					      {"comm", "thread.name"},
					      {"tid", "thread.id"}};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct profile_label *l = profile_label(e->p, s, str_of(keys[i][0]));

		if (l && (l->text.n || l->number))
			ret[n++] = l->text.n ? put_attribute(e, keys[i][1], l->text)
					     : put_number(e, keys[i][1], l->number);
	}
	return n;
}

/* Sample{ stack=1, attributes=2, values=4 }. */
static void put_sample(struct encoding *e, const struct profile_sample *s, int64_t value,
		       struct buf *out)
{
	uint32_t attributes[3], stack;
	size_t n_attributes = put_sample_attributes(e, s, attributes), bytes = 0, n;

	stack = put_stack(e, s);
	for (size_t i = 0; i < n_attributes; i++)
		bytes += wire_length(attributes[i]);
	n = (stack ? 1 + wire_length(stack) : 0) + (bytes ? wire_size(bytes) : 0) +
	    wire_size(wire_length((uint64_t)value));
	wire_put_head(out, 2, n);
	wire_put_field(out, 1, stack);
	put_indices(out, 2, attributes, n_attributes);
	wire_put_head(out, 4, wire_length((uint64_t)value));
	wire_put(out, (uint64_t)value);
}

static void put_type(struct encoding *e, uint32_t field, struct str type, struct str unit,
		     struct buf *out)
{
	uint32_t t = put_string(e, type), u = put_string(e, unit);

	wire_put_head(out, field, (t ? 1 + wire_length(t) : 0) + (u ? 1 + wire_length(u) : 0));
	wire_put_field(out, 1, t);
	wire_put_field(out, 2, u);
}

/* A profile without samples is refused by some. */
static bool is_empty(const struct profile *p, size_t type)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->values[i * p->n_types + type])
			return false;
	return true;
}

/* Whether all values of the type are whole periods of CPU time. */
static bool is_counted(const struct profile *p, size_t type)
{
	if (!str_is(p->types[type].unit, "nanoseconds") || p->period <= 0 ||
	    !str_eq(p->types[type].type, p->period_type.type) ||
	    !str_is(p->period_type.unit, "nanoseconds"))
		return false;
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->values[i * p->n_types + type] % p->period)
			return false;
	return true;
}

static void put_fixed(struct buf *b, uint32_t field, uint64_t value)
{
	wire_put(b, field << 3 | WIRE_I64);
	value = htole64(value);
	buf_append(b, &value, sizeof(value));
}

/* Profile{ sample_type=1, samples=2, time=3, duration=4, period_type=5, period=6, profile_id=7 }.
 */
static void put_profile(struct encoding *e, size_t type, uint64_t id, struct buf *out)
{
	const struct profile *p = e->p;
	bool counted = is_counted(p, type);
	uint64_t ids[2] = {htobe64((uint64_t)p->time_ns), htobe64(id + type)};

	put_type(e, 1, counted ? STR("samples") : p->types[type].type,
		 counted ? STR("count") : p->types[type].unit, out);
	for (size_t i = 0; i < p->n_samples; i++) {
		int64_t value = p->values[i * p->n_types + type];

		if (value)
			put_sample(e, &p->samples[i], counted ? value / p->period : value, out);
	}
	put_fixed(out, 3, (uint64_t)p->time_ns);
	wire_put_field(out, 4, (uint64_t)p->duration_ns);
	put_type(e, 5, p->period_type.type, p->period_type.unit, out);
	wire_put_field(out, 6, (uint64_t)p->period);
	wire_put_bytes(out, 7, (struct str){(const char *)ids, sizeof(ids)});
}

static void set_attribute(const struct otlp_attribute *a, Otlp__KeyValue *pair,
			  Otlp__AnyValue *value)
{
	uint64_t number;

	otlp__key_value__init(pair);
	otlp__any_value__init(value);
	if (a->is_number && str_u64(a->text, &number)) {
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = (int64_t)number;
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = message_bytes(a->text);
	}
	pair->key = message_bytes(a->key);
	pair->value = value;
}

/* Whether the type is what another one is written as: samples, beside the CPU time of the same. */
static bool is_told(const struct profile *p, size_t type)
{
	if (!str_is(p->types[type].type, "samples") || !str_is(p->types[type].unit, "count"))
		return false;
	for (size_t i = 0; i < p->n_types; i++)
		if (i != type && is_counted(p, i) && !is_empty(p, i))
			return true;
	return false;
}

/* The profiles, one behind the other in `bytes`; how many. */
static size_t put_profiles(struct encoding *e, uint64_t id, struct buf *bytes, size_t *ends)
{
	size_t n = 0;

	for (size_t i = 0; i < e->p->n_types; i++)
		if (!is_empty(e->p, i) && !is_told(e->p, i)) {
			put_profile(e, i, id, bytes);
			ends[n++] = bytes->n;
		}
	e->failed |= bytes->failed;
	return n;
}

/* What is allocated for a request's envelope. */
struct envelope {
	size_t *ends; /* of the profiles */
	ProtobufCBinaryData *profiles;
	Otlp__KeyValue *pairs, **list;
	Otlp__AnyValue *values;
};

static bool envelope_init(struct envelope *v, size_t n_types, size_t n_attributes)
{
	v->ends = calloc(n_types + 1, sizeof(*v->ends));
	v->profiles = calloc(n_types + 1, sizeof(*v->profiles));
	v->pairs = calloc(n_attributes + 1, sizeof(*v->pairs));
	v->list = calloc(n_attributes + 1, sizeof(Otlp__KeyValue *));
	v->values = calloc(n_attributes + 1, sizeof(*v->values));
	return v->ends && v->profiles && v->pairs && v->list && v->values;
}

static void envelope_fini(struct envelope *v)
{
	free(v->ends);
	free(v->profiles);
	free(v->pairs);
	free(v->list);
	free(v->values);
}

static void put_strings(struct encoding *e)
{
	for (uint32_t i = 0; i < e->strings.strings.n; i++)
		if (i) /* the empty one is there */
			append(e, STRING, intern_get(&e->strings, i));
}

static bool begin(struct encoding *e)
{
	const struct profile *p = e->p;

	e->mappings = calloc(p->n_mappings + 1, sizeof(*e->mappings));
	e->functions = calloc(p->n_functions + 1, sizeof(*e->functions));
	e->locations = calloc(p->n_locations + 1, sizeof(*e->locations));
	if (!e->mappings || !e->functions || !e->locations || intern_add(&e->strings, STR("")) != 0)
		return false;
	for (uint32_t field = MAPPING; field <= STACK; field++) /* entry 0 */
		if (field == STRING || field == LINK)
			append(e, field, STR_NULL);
		else
			put_entry(e, field);
	return !e->failed;
}

static void end(struct encoding *e)
{
	for (uint32_t field = 0; field < 8; field++) {
		buf_free(&e->tables[field]);
		index_free(&e->found[field]);
		vec_free(&e->spans[field]);
	}
	intern_free(&e->strings);
	buf_free(&e->scratch);
	free(e->mappings);
	free(e->functions);
	free(e->locations);
}

static void put_request(const struct envelope *v, const struct otlp_head *head, size_t n_profiles,
			struct str dictionary, struct buf *out)
{
	Otlp__InstrumentationScope by = OTLP__INSTRUMENTATION_SCOPE__INIT;
	Otlp__ScopeProfiles scope = OTLP__SCOPE_PROFILES__INIT, *scopes = &scope;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__ResourceProfiles one = OTLP__RESOURCE_PROFILES__INIT, *all = &one;
	Otlp__ExportProfilesServiceRequest request = OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;

	for (size_t i = 0; i < head->n_resource; i++) {
		set_attribute(&head->resource[i], &v->pairs[i], &v->values[i]);
		v->list[i] = &v->pairs[i];
	}
	resource.n_attributes = head->n_resource;
	resource.attributes = v->list;
	by.name = message_bytes(head->scope);
	by.version = message_bytes(head->version);
	scope.scope = &by;
	scope.n_profiles = n_profiles;
	scope.profiles = v->profiles;
	one.resource = &resource;
	one.n_scope_profiles = 1;
	one.scope_profiles = &scopes;
	request.n_resource_profiles = 1;
	request.resource_profiles = &all;
	request.dictionary = message_bytes(dictionary);
	message_pack(&request, out);
}

int otlp_encode(const struct profile *p, const struct otlp_head *head, struct buf *out)
{
	struct encoding e = {.p = p};
	struct buf profiles = BUF_NULL, dictionary = BUF_NULL;
	size_t before = out->n, n = 0, start = 0;
	struct envelope v = {0};

	e.failed = !envelope_init(&v, p->n_types, head->n_resource) || !begin(&e);
	if (!e.failed)
		n = put_profiles(&e, head->id, &profiles, v.ends);
	if (!e.failed)
		put_strings(&e);
	for (uint32_t field = MAPPING; field <= STACK && !e.failed; field++)
		buf_str_append(&dictionary, buf_str(&e.tables[field]));
	for (size_t i = 0; i < n; i++) {
		v.profiles[i] = message_bytes((struct str){profiles.p + start, v.ends[i] - start});
		start = v.ends[i];
	}
	e.failed |= dictionary.failed;
	if (!e.failed)
		put_request(&v, head, n, buf_str(&dictionary), out);
	e.failed |= out->failed;
	if (e.failed)
		out->n = before;
	end(&e);
	envelope_fini(&v);
	buf_free(&profiles);
	buf_free(&dictionary);
	return e.failed ? -ENOMEM : 0;
}
