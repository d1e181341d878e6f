/* SPDX-License-Identifier: Apache-2.0 */
/* Push requests. Contract in push-request.h. */
#include "receive-http/push-request.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "protobuf/wire.h"
#include "receive-http/json/json-body.h"

#include <errno.h>

static int damaged(struct error *err, const char *what)
{
	return error_set(err, -EBADMSG, "the push request is damaged: %s", what);
}

/* `start`: of the series' labels. */
static int add_label(struct push_request *r, size_t start, struct str name, struct str value,
		     struct error *err)
{
	if (!str_utf8(name) || !str_utf8(value))
		return damaged(err, "a label is not UTF-8");
	if (r->labels.n >= PUSH_MAX_LABELS)
		return error_set(err, -E2BIG, "the push request has more than %u labels",
				 PUSH_MAX_LABELS);
	if (r->labels.n - start >= PUSH_MAX_SERIES_LABELS)
		return error_set(err, -EBADMSG,
				 "a series of the push request has more than %u labels",
				 PUSH_MAX_SERIES_LABELS);
	return vec_push(&r->labels, ((struct target_label){name, value})) ? 0 : -ENOMEM;
}

static int add_profile(struct push_request *r, size_t label_start, struct str profile,
		       struct error *err)
{
	if (!profile.n)
		return damaged(err, "a profile is empty");
	if (r->profiles.n >= PUSH_MAX_PROFILES)
		return error_set(err, -E2BIG, "the push request has more than %u profiles",
				 PUSH_MAX_PROFILES);
	return vec_push(&r->profiles, ((struct pushed){label_start, 0, profile})) ? 0 : -ENOMEM;
}

/* The labels of a series may stand behind its profiles. */
static void end_series(struct push_request *r, size_t first_profile)
{
	for (size_t i = first_profile; i < r->profiles.n; i++)
		r->profiles.p[i].n_labels = r->labels.n - r->profiles.p[i].label_start;
}

/* A message's texts 1 and 2; those that are absent are STR_NULL. */
static bool read_pair(struct str in, struct str *ret_one, struct str *ret_two)
{
	struct wire_field f;

	*ret_one = *ret_two = STR_NULL;
	while (in.n) {
		if (!wire_next(&in, &f))
			return false;
		if (f.type == WIRE_BYTES && f.number == 1)
			*ret_one = f.bytes;
		else if (f.type == WIRE_BYTES && f.number == 2)
			*ret_two = f.bytes;
	}
	return true;
}

static int read_series(struct push_request *r, struct str in, struct error *err)
{
	size_t label_start = r->labels.n, first = r->profiles.n;
	struct wire_field f;
	struct str one, two;
	int rc = 0;

	while (in.n && !rc) {
		if (!wire_next(&in, &f))
			return damaged(err, "a series is cut off");
		if (f.type != WIRE_BYTES || (f.number != 1 && f.number != 2))
			continue;
		if (!read_pair(f.bytes, &one, &two))
			return damaged(err, "a label or a sample is cut off");
		rc = f.number == 1 ? add_label(r, label_start, one, two, err)
				   : add_profile(r, label_start, one, err);
	}
	end_series(r, first);
	return rc;
}

static int parse_proto(struct str in, struct push_request *r, struct error *err)
{
	struct wire_field f;
	int rc = 0;

	while (in.n && !rc) {
		if (!wire_next(&in, &f))
			return damaged(err, "it is cut off, or no protobuf");
		if (f.type == WIRE_BYTES && f.number == 1)
			rc = read_series(r, f.bytes, err);
	}
	return rc;
}

static struct str text_of(const json_t *value)
{
	return (struct str){json_string_value(value), json_string_length(value)};
}

/* Either spelling of a name, as protobuf's JSON allows. */
static json_t *member(const json_t *object, const char *camel, const char *snake)
{
	json_t *value = json_object_get(object, camel);

	return value ? value : json_object_get(object, snake);
}

static int json_label(struct push_request *r, size_t start, const json_t *pair, struct error *err)
{
	struct str name = text_of(json_object_get(pair, "name"));
	struct str value = text_of(json_object_get(pair, "value"));
	struct str copies[2] = {name, value};

	for (int i = 0; i < 2; i++) {
		char *copy = copies[i].n ? arena_alloc(&r->arena, copies[i].n) : NULL;

		if (copies[i].n && !copy)
			return -ENOMEM;
		if (copy)
			memcpy(copy, copies[i].p, copies[i].n);
		copies[i].p = copy;
	}
	return add_label(r, start, copies[0], copies[1], err);
}

static int json_sample(struct push_request *r, size_t label_start, const json_t *sample,
		       struct error *err)
{
	struct str text = text_of(member(sample, "rawProfile", "raw_profile"));
	char *bytes;
	ssize_t n;

	if (!text.n)
		return damaged(err, "a sample has no rawProfile");
	bytes = arena_alloc(&r->arena, text.n / 4 * 3 + 2);
	if (!bytes)
		return -ENOMEM;
	/* Either alphabet, with padding or without, as protobuf's JSON allows. */
	n = base64_decode(bytes, text, BUF_BASE64, false);
	if (n < 0)
		n = base64_decode(bytes, text, BUF_BASE64_URL, false);
	if (n < 0)
		return damaged(err, "a rawProfile is not base64");
	return add_profile(r, label_start, (struct str){bytes, (size_t)n}, err);
}

static int json_series(struct push_request *r, const json_t *series, struct error *err)
{
	const json_t *labels = json_object_get(series, "labels");
	const json_t *samples = json_object_get(series, "samples");
	size_t label_start = r->labels.n, first = r->profiles.n;
	int rc = 0;

	for (size_t i = 0; i < json_array_size(labels) && !rc; i++)
		rc = json_label(r, label_start, json_array_get(labels, i), err);
	for (size_t i = 0; i < json_array_size(samples) && !rc; i++)
		rc = json_sample(r, label_start, json_array_get(samples, i), err);
	end_series(r, first);
	return rc;
}

static int parse_json(struct str in, struct push_request *r, struct error *err)
{
	_cleanup_(json_decrefp) json_t *root = NULL;
	const json_t *series;
	int rc = json_body_load(in, &root, err);

	if (rc)
		return rc;
	series = json_object_get(root, "series");
	for (size_t i = 0; i < json_array_size(series) && !rc; i++)
		rc = json_series(r, json_array_get(series, i), err);
	return rc;
}

int push_request_parse(struct str body, bool json, struct push_request *ret, struct error *err)
{
	int rc = json ? parse_json(body, ret, err) : parse_proto(body, ret, err);

	if (!rc && !ret->profiles.n)
		return error_set(err, -EBADMSG, "the push request has no profiles");
	return rc;
}

void push_request_fini(struct push_request *request)
{
	vec_free(&request->labels);
	vec_free(&request->profiles);
	arena_free(&request->arena);
}
