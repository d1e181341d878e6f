/* SPDX-License-Identifier: Apache-2.0 */
/* Is it a profile? Contract in answer.h. */
#include "scrape/answer.h"

#include "pprof/gzip.h"
#include "protobuf/wire.h"

#include <errno.h>

#define PREVIEW 60

/* What a person sees of a text, and no more. */
static void preview(struct str body, char out[PREVIEW + 1])
{
	size_t n = 0;

	body = str_first(str_trim(body), PREVIEW);
	for (; n < body.n; n++)
		out[n] = body.p[n] >= ' ' && body.p[n] < 0x7f ? body.p[n] : ' ';
	out[n] = '\0';
}

/* A page or a message. A profile begins with a field's number and a length, which are control
 * characters. */
static bool is_text(struct str body)
{
	struct str start = str_first(body, 512), shown = str_trim(start);

	if (shown.n > 1 && (shown.p[0] == '<' || shown.p[0] == '{') && shown.p[1] >= ' ')
		return true;
	for (size_t i = 0; i < start.n; i++) {
		unsigned char c = (unsigned char)start.p[i];

		if (c >= 0x7f || (c < ' ' && c != '\n' && c != '\r' && c != '\t'))
			return false;
	}
	return start.n > 0;
}

static bool well_formed(struct str in)
{
	struct wire_field f;

	while (in.n)
		if (!wire_next(&in, &f))
			return false;
	return true;
}

/* The fields that are messages: sample_type, sample, mapping, location, function. */
static int walk(struct str raw, struct profile_size *size, struct error *err)
{
	uint64_t n_types = 0, n_strings = 0;
	struct wire_field f;

	for (struct str in = raw; in.n;) {
		if (!wire_next(&in, &f))
			return error_set(err, -EBADMSG, "is cut off or not a pprof profile");
		if (f.number >= 1 && f.number <= 5 &&
		    (f.type != WIRE_BYTES || !well_formed(f.bytes)))
			return error_set(err, -EBADMSG,
					 "is not a pprof profile: its field %u is broken",
					 f.number);
		n_types += f.number == 1;
		size->n_stacks += f.number == 2;
		if (f.number == 6 && n_strings++ == 0 && f.bytes.n)
			return error_set(err, -EBADMSG,
					 "is not a pprof profile: its first string is not empty");
	}
	if (!n_types || !n_strings)
		return error_set(err, -EBADMSG, "is not a pprof profile: it has no sample type");
	size->raw_bytes = raw.n;
	return 0;
}

/* The body uncompressed, in `scratch`. gzip within gzip takes the body's place, whose size is held
 * against bounds: what is gzip hardly shrinks once more. */
static int inflate(struct buf *body, struct buf *scratch)
{
	int r = gzip_inflate(buf_str(body), scratch, ANSWER_MAX_RAW);

	if (r || !gzip_is(buf_str(scratch)))
		return r;
	if (scratch->n > body->n + body->n / 8 + 1024)
		return -EBADMSG;
	buf_clear(body);
	if (buf_str_append(body, buf_str(scratch)) < 0)
		return -ENOMEM;
	buf_clear(scratch);
	return gzip_inflate(buf_str(body), scratch, ANSWER_MAX_RAW);
}

int answer_read(struct buf *body, struct buf *scratch, struct profile_size *ret,
		struct str *ret_raw, struct error *err)
{
	struct profile_size size = {0};
	struct str raw = buf_str(body);
	char text[PREVIEW + 1];
	int r = 0;

	buf_clear(scratch);
	if (!raw.n)
		return error_set(err, -EBADMSG, "is empty");
	if (is_text(raw)) {
		preview(raw, text);
		return error_set(err, -EBADMSG, "is a text and not a profile: \"%s\"", text);
	}
	if (gzip_is(raw)) {
		r = inflate(body, scratch);
		raw = buf_str(scratch);
	} else if (raw.n > ANSWER_MAX_RAW) {
		r = -E2BIG;
	}
	if (r == -EBADMSG)
		return error_set(err, r, "is damaged: it begins like gzip and cannot be read");
	if (r == -E2BIG)
		return error_set(err, r, "is larger than %zu MiB uncompressed",
				 ANSWER_MAX_RAW >> 20);
	r = r ? r : walk(raw, &size, err);
	if (r < 0)
		return r;
	*ret = size;
	*ret_raw = raw;
	return 0;
}

int answer_subtract(struct str raw, struct totals *totals, int64_t now_ns, struct buf *ret_body,
		    struct profile_size *ret, struct error *err)
{
	struct buf out = BUF_NULL;
	struct gzip_writer w = {0};
	struct error cause = ERROR_NULL;
	uint64_t n = 0;
	int r = totals_difference(totals, raw, now_ns, &out, &n, &cause);

	if (r == 0) {
		*ret = (struct profile_size){out.n, n};
		r = gzip_open(&w, ret_body, 1);
	}
	if (r == 0) {
		gzip_write(&w, buf_str(&out));
		r = gzip_close(&w);
	}
	buf_free(&out);
	return r < 0 && cause.code ? error_set(err, r, "is %s", cause.text) : r;
}
