/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and their profiles. Contract in otlp-request.h. Tables of the dictionary are split into
 * entries first, since they may stand behind the profiles. */
#include "receive-http/otlp-private.h"

#include "base/ascii.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Of a resource; its profiles have two labels more. Pyroscope refuses longer ones. */
#define MAX_ATTRIBUTES (PUSH_MAX_SERIES_LABELS - 2)
#define MAX_NAME       1024u
#define MAX_VALUE      2048u

static int add_label(struct otlp_reading *r, size_t start, struct str name, struct str value)
{
	struct push_request *out = r->out;

	if (out->labels.n >= PUSH_MAX_LABELS || out->labels.n - start >= PUSH_MAX_SERIES_LABELS)
		return error_set(r->err, -E2BIG,
				 "the resources of the request have more than %u attributes",
				 PUSH_MAX_LABELS);
	return vec_push(&out->labels, ((struct target_label){name, value})) ? 0 : -ENOMEM;
}

/* As a label is called: k8s.pod.name as k8s_pod_name. */
static struct str label_name(struct otlp_reading *r, struct str key)
{
	char *name = arena_alloc(&r->out->arena, key.n + 2);

	if (!name)
		return STR_NULL;
	name[0] = '_'; /* for one that begins with a digit */
	for (size_t i = 0; i < key.n; i++)
		name[i + 1] = ascii_is_alnum(key.p[i]) ? key.p[i] : '_';
	if (ascii_is_digit(key.p[0]))
		return (struct str){name, key.n + 1};
	return (struct str){name + 1, key.n};
}

/* AnyValue as a text; lists and the like have none. */
static int any_text(struct otlp_reading *r, struct str in, struct str *ret)
{
	struct wire_field f, number = {0};
	const char *text;
	int rc = 0;

	*ret = STR_NULL;
	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (f.type == WIRE_BYTES && f.number == 1)
			*ret = f.bytes;
		else if (f.type == WIRE_VARINT && f.number == 8)
			*ret = otlp_text(r, f.value);
		else if (f.type == WIRE_VARINT && (f.number == 2 || f.number == 3))
			number = f; /* a bool is 0 or 1 */
	}
	if (rc || !number.number)
		return rc;
	text = arena_printf(&r->out->arena, "%" PRId64, (int64_t)number.value);
	*ret = text ? str_of(text) : STR_NULL;
	return text ? 0 : -ENOMEM;
}

/* The value is an AnyValue. */
static int key_and_value(struct otlp_reading *r, struct str in, struct str *ret_key,
			 struct str *ret_value)
{
	struct wire_field f;
	int rc = 0;

	*ret_key = *ret_value = STR_NULL;
	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (f.type == WIRE_BYTES && f.number == 1)
			*ret_key = f.bytes;
		else if (f.type == WIRE_VARINT && f.number == 3)
			*ret_key = otlp_text(r, f.value);
		else if (f.type == WIRE_BYTES && f.number == 2)
			*ret_value = f.bytes;
	}
	return rc;
}

/* What a resource says of its service, wherever among its attributes. */
struct service {
	struct str name, label; /* service.name, and service_name where somebody has made it so */
	struct str executable;
};

/* An attribute that is a label, unless it cannot be one or is one too many. */
static int plain_attribute(struct otlp_reading *r, size_t start, struct str key, struct str value,
			   struct service *service)
{
	bool full = r->out->labels.n - start >= MAX_ATTRIBUTES;

	if (full || value.n > MAX_VALUE)
		return 0;
	key = label_name(r, key);
	if (!key.p)
		return -ENOMEM;
	if (!str_is(key, "service_name"))
		return add_label(r, start, key, value);
	service->label = value;
	return 0;
}

static int attribute(struct otlp_reading *r, size_t start, struct str in, struct service *service)
{
	bool full = r->out->labels.n - start >= MAX_ATTRIBUTES, names, runs;
	struct str key, value;
	int rc = key_and_value(r, in, &key, &value);

	/* The first one counts. */
	names = str_is(key, "service.name") && !service->name.n;
	runs = str_is(key, "process.executable.name") && !service->executable.n;
	if (rc || !key.n || key.n > MAX_NAME || (full && !names && !runs))
		return rc;
	rc = any_text(r, value, &value);
	if (rc || !value.n || !str_utf8(value))
		return rc;
	if (names)
		service->name = value;
	if (runs)
		service->executable = value;
	return names ? 0 : plain_attribute(r, start, key, value, service);
}

/* A name that is too long for a label: as many characters as fit. */
static struct str cut_name(struct str name)
{
	size_t n = MAX_VALUE;

	if (name.n <= MAX_VALUE)
		return name;
	while (n > 0 && ((unsigned char)name.p[n] & 0xc0) == 0x80)
		n--;
	return (struct str){name.p, n};
}

/* The labels of a resource; the name of its service is one of them in any case, and is the last, so
 * that it counts. */
static int read_resource(struct otlp_reading *r, struct str in)
{
	struct service service = {0};
	size_t start = r->out->labels.n;
	struct str name = STR("unknown_service");
	struct wire_field f;
	const char *text;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 1)
			rc = attribute(r, start, f.bytes, &service);
	}
	if (rc)
		return rc;
	if (service.name.n) {
		name = service.name;
	} else if (service.label.n) {
		name = service.label;
	} else if (service.executable.n) {
		name = cut_name(service.executable);
		text = arena_printf(&r->out->arena, "unknown_service:%.*s", STR_FMT(name));
		if (!text)
			return -ENOMEM;
		name = str_of(text);
	}
	return add_label(r, start, STR("service_name"), cut_name(name));
}

/* As servers call such a profile. Samples of a clock are counted in its periods, so that says which
 * clock it is. */
static struct str name_of(const struct otlp_shape *shape)
{
	if (str_is(shape->type, "off_cpu") || str_is(shape->type, "wall"))
		return shape->type;
	if (shape->period_type.n && !str_is(shape->period_type, "cpu") &&
	    shape->period_type.n <= MAX_VALUE && str_utf8(shape->period_type))
		return shape->period_type;
	return STR("process_cpu");
}

/* The labels of a resource's profile of this name: those of the one before where that has the same,
 * and the first one's name stands behind the resource's own. */
static int add_series(struct otlp_reading *r, size_t first, size_t n, struct str name,
		      struct pushed *p)
{
	struct push_request *out = r->out;
	size_t end = out->labels.n;
	int rc = 0;

	if (end > first + n && str_eq(out->labels.p[end - 1].value, name)) {
		p->label_start = end - n - 1;
		p->n_labels = n + 1;
		return 0;
	}
	p->label_start = end == first + n ? first : end;
	for (size_t i = out->labels.n - p->label_start; i < n && !rc; i++) {
		struct target_label label = out->labels.p[first + i];

		rc = add_label(r, p->label_start, label.name, label.value);
	}
	p->n_labels = n + 1;
	return rc ? rc : add_label(r, p->label_start, STR("__name__"), name);
}

/* A profile of a resource that has these labels. */
static int take_profile(struct otlp_reading *r, size_t first, size_t n, struct str in)
{
	struct push_request *out = r->out;
	struct pushed pushed = {0};
	struct otlp_shape shape;
	int rc;

	if (r->n_profiles++ >= PUSH_MAX_PROFILES)
		return error_set(r->err, -E2BIG, "the request has more than %u profiles",
				 PUSH_MAX_PROFILES);
	rc = otlp_profile(r, in, &shape, &pushed.profile);

	if (rc == -EBADMSG) { /* the others are none the worse */
		if (!r->rejected->n++)
			r->rejected->why = *r->err;
		*r->err = ERROR_NULL;
		return 0;
	}
	if (rc || !pushed.profile.n)
		return rc;
	rc = add_series(r, first, n, name_of(&shape), &pushed);
	if (!rc && !vec_push(&out->profiles, pushed))
		rc = -ENOMEM;
	return rc;
}

static int read_scope(struct otlp_reading *r, size_t first, size_t n, struct str in)
{
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 2)
			rc = take_profile(r, first, n, f.bytes);
	}
	return rc;
}

static int read_resource_profiles(struct otlp_reading *r, struct str in)
{
	size_t first = r->out->labels.n;
	struct str rest = in, resource = STR_NULL;
	struct wire_field f;
	int rc = 0;

	while (rest.n && !rc) {
		rc = otlp_field(r, &rest, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 1)
			resource = f.bytes;
	}
	if (!rc)
		rc = read_resource(r, resource);
	for (size_t n = r->out->labels.n - first; in.n && !rc;) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 2)
			rc = read_scope(r, first, n, f.bytes);
	}
	return rc;
}

static int read_dictionary(struct otlp_reading *r, struct str in)
{
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (rc || f.type != WIRE_BYTES || f.number >= OTLP_TABLES)
			continue;
		if (r->entries_left-- == 0)
			rc = error_set(r->err, -E2BIG,
				       "the dictionary of the request has more than %u entries",
				       OTLP_MAX_ENTRIES);
		else if (!vec_push(&r->tables[f.number], f.bytes))
			rc = -ENOMEM;
	}
	return rc;
}

static int read_request(struct otlp_reading *r, struct str body)
{
	struct str in = body;
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		rc = otlp_field(r, &in, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 2)
			rc = read_dictionary(r, f.bytes);
	}
	for (uint32_t i = OTLP_MAPPING; i <= OTLP_FUNCTION && !rc; i++) {
		r->made[i] = calloc(r->tables[i].n + 1, sizeof(*r->made[i]));
		rc = r->made[i] ? 0 : -ENOMEM;
	}
	while (body.n && !rc) {
		rc = otlp_field(r, &body, &f);
		if (!rc && f.type == WIRE_BYTES && f.number == 1)
			rc = read_resource_profiles(r, f.bytes);
	}
	return rc;
}

int otlp_request_parse(struct str body, struct push_request *ret, struct otlp_rejected *rejected,
		       struct error *err)
{
	struct otlp_reading r = {
		.out = ret,
		.rejected = rejected,
		.err = err,
		.entries_left = OTLP_MAX_ENTRIES,
		.work_left = OTLP_MAX_WORK,
		.raw_left = OTLP_MAX_RAW,
	};
	int rc;

	*rejected = (struct otlp_rejected){0};
	rc = read_request(&r, body);
	if (!rc && rejected->n && !ret->profiles.n) {
		*err = rejected->why;
		rc = -EBADMSG;
	}
	for (uint32_t i = 0; i < OTLP_TABLES; i++)
		vec_free(&r.tables[i]);
	for (uint32_t i = OTLP_MAPPING; i <= OTLP_FUNCTION; i++)
		free(r.made[i]);
	vec_free(&r.frames);
	return rc;
}
