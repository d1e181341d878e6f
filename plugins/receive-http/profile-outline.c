/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's outline. Contract in profile-outline.h. Field numbers are those of profile.proto. */
#include "receive-http/profile-outline.h"

#include "base/cleanup.h"
#include "pprof/gzip.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <jansson.h>

enum { FIELD_TYPE = 1, FIELD_SAMPLE = 2, FIELD_STRING = 6 };

#define MAX_CONFIG (64u << 10)

static int refuse(struct error *err, const char *why)
{
	return error_set(err, -EBADMSG, "this is no pprof profile: %s", why);
}

/* The first number of a ValueType: which string names it. */
static bool read_type(struct str in, uint64_t *ret)
{
	struct wire_field f;

	*ret = 0;
	while (in.n) {
		if (!wire_next(&in, &f))
			return false;
		if (f.number == 1 && f.type == WIRE_VARINT)
			*ret = f.value;
	}
	return true;
}

static int count(struct str in, struct profile_outline *outline, uint64_t *names, struct error *err)
{
	struct wire_field f;
	bool strings = false;

	while (in.n) {
		if (!wire_next(&in, &f))
			return refuse(err, "it is damaged or cut off");
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == FIELD_SAMPLE) {
			outline->n_stacks++;
		} else if (f.number == FIELD_TYPE) {
			if (outline->n_types == PROFILE_MAX_TYPES)
				return refuse(err, "it has more than 32 sample types");
			if (!read_type(f.bytes, &names[outline->n_types++]))
				return refuse(err, "a sample type is damaged");
		} else if (f.number == FIELD_STRING && !strings) {
			strings = true;
			if (f.bytes.n)
				return refuse(err, "its first string is not empty");
		}
	}
	return outline->n_types ? 0 : refuse(err, "it has no sample types");
}

static void resolve(struct str in, struct profile_outline *outline, const uint64_t *names)
{
	struct wire_field f;
	uint64_t n = 0;

	while (in.n && wire_next(&in, &f)) {
		if (f.number != FIELD_STRING || f.type != WIRE_BYTES)
			continue;
		for (size_t i = 0; i < outline->n_types; i++)
			if (names[i] == n)
				outline->types[i] = f.bytes;
		n++;
	}
}

int profile_outline(struct str data, struct buf *raw, size_t max, struct profile_outline *ret,
		    struct error *err)
{
	struct profile_outline outline = {0};
	uint64_t names[PROFILE_MAX_TYPES];
	int rc = 0;

	buf_clear(raw);
	if (gzip_is(data)) {
		rc = gzip_inflate(data, raw, max);
		data = buf_str(raw);
	} else if (data.n > max) {
		rc = -E2BIG;
	}
	if (rc == -E2BIG)
		return error_set(err, rc, "the profile has more than %zu MiB uncompressed",
				 max >> 20);
	if (rc == -EBADMSG)
		return refuse(err, "its gzip is damaged or cut off");
	if (rc)
		return rc;
	if (!data.n)
		return refuse(err, "it is empty");
	outline.raw_bytes = data.n;
	rc = count(data, &outline, names, err);
	if (rc)
		return rc;
	resolve(data, &outline, names);
	for (size_t i = 0; i < outline.n_types; i++)
		if (!outline.types[i].n || !str_utf8(outline.types[i]))
			return refuse(err, "a sample type has no name");
	*ret = outline;
	return 0;
}

static bool has(struct str s, const char *part)
{
	return str_search(s, str_of(part)) < s.n;
}

/* The name that one type decides, NULL: none. */
static const char *name_of(struct str type)
{
	if (has(type, "cpu"))
		return "process_cpu";
	if (has(type, "alloc_") || has(type, "inuse_") || str_is(type, "space") ||
	    str_is(type, "objects"))
		return "memory";
	if (has(type, "mutex_"))
		return "mutex";
	if (has(type, "block_"))
		return "block";
	return has(type, "goroutines") ? "goroutines" : NULL;
}

/* What the form says that a type is shown as, else the type. */
static struct str shown_as(const json_t *config, struct str type)
{
	const json_t *one = json_object_getn(config, type.p, type.n);
	const json_t *name = json_object_get(one, "display-name");

	return json_string_length(name)
		       ? (struct str){json_string_value(name), json_string_length(name)}
		       : type;
}

struct str profile_name(const struct profile_outline *outline, struct str config,
			struct buf *display)
{
	_cleanup_(json_decrefp) json_t *json =
		config.n && config.n <= MAX_CONFIG ? json_loadb(config.p, config.n, 0, NULL) : NULL;
	struct str last = STR_NULL;

	for (size_t i = 0; i < outline->n_types; i++)
		if (str_is(outline->types[i], "wall"))
			return outline->types[i];
	for (size_t i = 0; i < outline->n_types; i++) {
		const char *name;

		last = shown_as(json, outline->types[i]);
		name = name_of(last);
		if (name)
			return str_of(name);
	}
	buf_clear(display);
	buf_str_append(display, last);
	return display->failed ? STR_NULL : buf_str(display);
}
