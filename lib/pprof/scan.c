/* SPDX-License-Identifier: Apache-2.0 */
/* The look over a profile. Only fields of the message itself are read: what is within samples,
 * locations and strings is for whoever decodes. Contract in scan.h. */
#include "pprof/scan.h"

#include "pprof/gzip.h"
#include "protobuf/wire.h"

#include <errno.h>

/* Fields of Profile (google/pprof, proto/profile.proto). */
#define SAMPLE_TYPE 1u
#define SAMPLE      2u
#define TIME        9u
#define DURATION    10u
#define PERIOD_TYPE 11u

static bool walk(struct str raw, struct pprof_scan *s)
{
	struct wire_field f;

	while (raw.n) {
		if (!wire_next(&raw, &f))
			return false;
		if (f.type == WIRE_VARINT && f.number == TIME)
			s->time_ns = (int64_t)f.value;
		if (f.type == WIRE_VARINT && f.number == DURATION)
			s->duration_ns = (int64_t)f.value;
		if (f.type != WIRE_BYTES)
			continue;
		s->n_types += f.number == SAMPLE_TYPE;
		s->n_samples += f.number == SAMPLE;
		s->has_period_type |= f.number == PERIOD_TYPE;
	}
	return s->n_types > 0;
}

/* What it may be instead, for whoever has to find out. */
static const char *seems(struct str raw)
{
	struct str text = str_trim(str_first(raw, 64));

	if (text.n && text.p[0] == '<')
		return "it looks like HTML";
	if (str_starts(raw, STR("--- ")) || str_starts(raw, STR("heap profile: ")) ||
	    str_starts(raw, STR("goroutine profile: ")))
		return "it is the text form of a profile: ask for it without debug=1";
	if (str_starts(raw, STR("FLR")))
		return "it is a Java flight recording";
	return text.n ? "its bytes are something else, or cut off" : "it is empty";
}

static int look(struct str raw, struct pprof_scan *ret, struct error *err)
{
	struct pprof_scan s = {.raw_bytes = raw.n};

	if (!walk(raw, &s))
		return error_set(err, -EBADMSG, "not a pprof profile: %s", seems(raw));
	*ret = s;
	return 0;
}

int pprof_scan(struct str data, size_t max, struct pprof_scan *ret, struct error *err)
{
	struct buf raw = BUF_NULL;
	int r;

	if (data.n > max)
		return error_set(err, -E2BIG, "the profile has more than %zu bytes", max);
	if (!gzip_is(data))
		return look(data, ret, err);
	r = gzip_inflate(data, &raw, max);
	if (r == 0)
		r = look(buf_str(&raw), ret, err);
	else if (r == -E2BIG)
		error_set(err, r, "the profile has more than %zu bytes uncompressed", max);
	else if (r == -EBADMSG)
		error_set(err, r, "not a pprof profile: its gzip is damaged or cut off");
	buf_free(&raw);
	return r;
}
