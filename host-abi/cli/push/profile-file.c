/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and names. Contract in profile-file.h. */
#include "cli/push/profile-file.h"

#include "base/clock.h"
#include "pprof/gzip.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Pyroscope takes 2 MiB at once, labels included; the rest is what those may take. */
#define PYROSCOPE_RAW     ((2u << 20) - (64u << 10))
#define PYROSCOPE_SAMPLES 16000u
#define PYROSCOPE_OLD_NS  (59 * 60 * NS_PER_SEC)
#define PYROSCOPE_NEW_NS  (9 * 60 * NS_PER_SEC)
#define PARCA_PACKED      ((64u << 20) - (256u << 10)) /* a gRPC message, less its labels */
#define MAX_LABELS        30u
#define MAX_NAME          1024u
#define MAX_VALUE         2048u
#define FIELD_TIME        9 /* of profile.proto */
#define GZIP_LEVEL        6

static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i], letter = (char)(c | 0x20);
		bool digit = c >= '0' && c <= '9';

		if (!(letter >= 'a' && letter <= 'z') && c != '_' && !(digit && i))
			return false;
	}
	return s.n > 0;
}

/* What is wrong with the values: neither server stores a profile that is all zeros, and Pyroscope
 * leaves single samples out. */
static int check_values(const struct profile *p, enum push_kind kind, struct error *err)
{
	bool any = false;

	for (size_t i = 0; i < p->n_samples; i++) {
		bool zero = true;

		for (size_t t = 0; t < p->n_types; t++) {
			int64_t value = p->values[i * p->n_types + t];

			zero = zero && value == 0;
			if (value < 0 && kind == PUSH_PYROSCOPE)
				return error_set(
					err, -EINVAL,
					"sample %zu is negative (%" PRId64
					"), and Pyroscope leaves such ones out; push the two "
					"profiles that this is the difference of",
					i + 1, value);
		}
		any = any || !zero;
		if (zero && kind == PUSH_PYROSCOPE && !p->period_type.type.n)
			return error_set(err, -EINVAL,
					 "sample %zu is zero and there is no period type, which "
					 "Pyroscope cannot read; write the profile with a period "
					 "type",
					 i + 1);
	}
	if (!any)
		return error_set(
			err, -EINVAL,
			"it has no samples but zeros, and a server keeps nothing of it; was "
			"anything running when it was taken?");
	return 0;
}

/* Names are parts of a query, between colons, and are shown. */
static bool is_part(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f || s.p[i] == ':')
			return false;
	return str_utf8(s);
}

static int check_profile(const struct profile *p, enum push_kind kind, struct error *err)
{
	bool typed = is_part(p->period_type.type) && is_part(p->period_type.unit);

	for (size_t i = 0; i < p->n_types; i++) {
		struct str type = p->types[i].type;

		typed = typed && type.n && is_part(type) && is_part(p->types[i].unit) &&
			str_find(type, '-') == type.n;
	}
	if (!typed)
		return error_set(
			err, -EINVAL,
			"one of its types has no name, or one that servers refuse, with "
			"\"-\", \":\" or control characters; write the profile with others");
	if (kind == PUSH_PARCA && !p->period_type.type.n)
		return error_set(err, -EINVAL,
				 "it has no period type, which ends Parca's process; write the "
				 "profile with one (Go's PeriodType)");
	return check_values(p, kind, err);
}

static int check_time(int64_t time_ns, const struct push_how *how, struct error *err)
{
	int64_t age = how->present_ns - time_ns;
	char text[64];

	if (how->kind != PUSH_PYROSCOPE || (age <= PYROSCOPE_OLD_NS && age >= -PYROSCOPE_NEW_NS))
		return 0;
	duration_format((age < 0 ? -age : age) / NS_PER_SEC * NS_PER_SEC, text, sizeof(text));
	return error_set(
		err, -ERANGE,
		"it was taken %s %s, and Pyroscope takes the last hour alone; --now sends it "
		"under the present time, --force as it is",
		text, age < 0 ? "from now" : "ago");
}

static int check_size(const struct push_file *f, size_t raw, enum push_kind kind, struct error *err)
{
	if (kind == PUSH_PARCA && f->packed.n > PARCA_PACKED)
		return error_set(err, -ERANGE, "it has %zu bytes, and Parca takes 64 MiB at once",
				 f->packed.n);
	if (kind == PUSH_PARCA)
		return 0;
	if (raw > PYROSCOPE_RAW)
		return error_set(
			err, -ERANGE,
			"it has %zu bytes uncompressed, and Pyroscope's default limit is 2 "
			"MiB at once; take a shorter profile, or raise ingestion_burst_size_mb "
			"and use --force",
			raw);
	if (f->profile->n_samples > PYROSCOPE_SAMPLES)
		return error_set(err, -ERANGE,
				 "it has %zu samples, and Pyroscope's default limit is %u; take a "
				 "shorter profile, or raise max_profile_stacktrace_samples and use "
				 "--force",
				 f->profile->n_samples, PYROSCOPE_SAMPLES);
	return 0;
}

/* The file's own time is taken out: Go's decoder takes a second one for a second profile. */
static void put_with_time(struct buf *out, struct str raw, int64_t time_ns)
{
	struct str rest = raw;
	struct wire_field f;

	while (rest.n && wire_next(&rest, &f)) {
		if (f.number != FIELD_TIME)
			buf_append(out, raw.p, raw.n - rest.n);
		raw = rest;
	}
	wire_put_field(out, FIELD_TIME, (uint64_t)time_ns);
}

static int pack(struct push_file *f, struct str raw, bool set_time)
{
	struct gzip_writer w = {0};
	struct buf timed = BUF_NULL;
	int r;

	if (set_time)
		put_with_time(&timed, raw, f->time_ns);
	r = timed.failed ? -ENOMEM : gzip_open(&w, &f->packed, GZIP_LEVEL);
	if (r == 0) {
		gzip_write(&w, set_time ? buf_str(&timed) : raw);
		r = gzip_close(&w);
	}
	buf_free(&timed);
	return r;
}

int push_file_make(struct push_file *f, struct str data, const struct push_how *how,
		   struct error *err)
{
	struct buf raw = BUF_NULL;
	bool set_time;
	int r;

	*f = (struct push_file){0};
	r = profile_decode(data, &f->profile, err);
	if (r < 0)
		return r;
	set_time = how->now || !f->profile->time_ns;
	f->time_ns = set_time ? how->present_ns : f->profile->time_ns;
	r = gzip_is(data) ? gzip_inflate(data, &raw, PROFILE_MAX_BYTES)
			  : buf_str_append(&raw, data);
	if (r == 0)
		r = gzip_is(data) && !set_time ? buf_str_append(&f->packed, data)
					       : pack(f, buf_str(&raw), set_time);
	if (r == 0)
		r = check_profile(f->profile, how->kind, err);
	if (r == 0 && !how->force)
		r = check_time(f->time_ns, how, err);
	if (r == 0 && !how->force)
		r = check_size(f, raw.n, how->kind, err);
	buf_free(&raw);
	return r;
}

void push_file_fini(struct push_file *f)
{
	profile_free(f->profile);
	buf_free(&f->packed);
}

struct str push_file_name(const struct profile *p)
{
	static const struct {
		const char *type, *name;
	} known[] = {
		{"cpu", "process_cpu"},       {"inuse_space", "memory"},
		{"alloc_space", "memory"},    {"delay", "mutex"},
		{"contentions", "mutex"},     {"goroutine", "goroutines"},
		{"goroutines", "goroutines"},
	};
	struct str last = p->types[p->n_types - 1].type;

	if (str_is(p->period_type.type, "cpu"))
		return STR("process_cpu");
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		for (size_t i = 0; i < p->n_types; i++)
			if (str_is(p->types[i].type, known[k].type))
				return str_of(known[k].name);
	return is_word(last) ? last : STR("profile");
}

/* Parca gives counts of what has a period in time back as time. */
static bool is_timed(const struct profile *p, size_t type, enum push_kind kind)
{
	return kind == PUSH_PARCA && str_is(p->types[type].type, "samples") &&
	       str_is(p->types[type].unit, "count") && str_is(p->period_type.unit, "nanoseconds");
}

int64_t push_file_total(const struct push_file *f, size_t type, enum push_kind kind)
{
	const struct profile *p = f->profile;
	uint64_t sum = 0; /* wraps, as the server's does */

	for (size_t i = 0; i < p->n_samples; i++)
		sum += (uint64_t)p->values[i * p->n_types + type];
	return (int64_t)(is_timed(p, type, kind) ? sum * (uint64_t)p->period : sum);
}

void push_file_put_type(struct buf *out, const struct push_file *f, size_t type, struct str name,
			enum push_kind kind)
{
	const struct profile *p = f->profile;

	buf_printf(out, "%.*s:%.*s:%.*s:%.*s:%.*s%s", STR_FMT(name), STR_FMT(p->types[type].type),
		   STR_FMT(p->types[type].unit), STR_FMT(p->period_type.type),
		   STR_FMT(p->period_type.unit),
		   kind == PUSH_PARCA && p->duration_ns > 0 ? ":delta" : "");
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static int check_labels(const struct label *labels, size_t n, struct error *err)
{
	if (n > MAX_LABELS)
		return error_set(err, -EINVAL, "%zu labels are more than the %u that servers take",
				 n, MAX_LABELS);
	for (size_t i = 0; i < n; i++) {
		struct str name = str_first(labels[i].name, 100);

		if (labels[i].name.n > MAX_NAME || labels[i].value.n > MAX_VALUE)
			return error_set(err, -EINVAL,
					 "label \"%.*s\" is longer than servers take: %u bytes of "
					 "a name, %u of a value",
					 STR_FMT(name), MAX_NAME, MAX_VALUE);
		if (!str_utf8(labels[i].name) || !str_utf8(labels[i].value))
			return error_set(err, -EINVAL, "label %zu is not UTF-8", i + 1);
		if (str_is(labels[i].name, "__name__") && !is_word(labels[i].value))
			return error_set(
				err, -EINVAL,
				"__name__ takes letters, digits and \"_\", as in process_cpu");
		if (i && str_eq(labels[i].name, labels[i - 1].name))
			return error_set(err, -EINVAL, "label \"%.*s\" is given twice",
					 STR_FMT(name));
	}
	return 0;
}

int push_labels(const struct texts *texts, struct str service, struct str name, struct label *out,
		struct error *err)
{
	bool named = false;
	size_t n = 0;
	int r;

	out[n++] = (struct label){STR("service_name"), service};
	for (size_t i = 0; i < texts->n; i++) {
		struct str rest = str_of(texts->p[i]);
		size_t at = str_find(rest, '=');

		if (at == 0 || at == rest.n)
			return error_set(err, -EINVAL, "\"%s\" is not NAME=VALUE", texts->p[i]);
		out[n++] = (struct label){str_first(rest, at), str_skip(rest, at + 1)};
		named = named || str_is(out[n - 1].name, "__name__");
	}
	if (!named)
		out[n++] = (struct label){STR("__name__"), name};
	qsort(out, n, sizeof(*out), by_name);
	r = check_labels(out, n, err);
	return r < 0 ? r : (int)n;
}

void push_put_selector(struct buf *out, const struct label *labels, size_t n)
{
	const char *before = "";

	buf_putc(out, '{');
	for (size_t i = 0; i < n; i++) {
		if (str_is(labels[i].name, "__name__") || !is_word(labels[i].name) ||
		    !labels[i].value.n)
			continue;
		buf_printf(out, "%s%.*s=\"", before, STR_FMT(labels[i].name));
		for (size_t k = 0; k < labels[i].value.n; k++) {
			char c = labels[i].value.p[k];

			if (c == '"' || c == '\\')
				buf_putc(out, '\\');
			buf_str_append(out, c == '\n' ? STR("\\n") : (struct str){&c, 1});
		}
		buf_putc(out, '"');
		before = ",";
	}
	buf_putc(out, '}');
}
