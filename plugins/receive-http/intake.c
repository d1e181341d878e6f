/* SPDX-License-Identifier: Apache-2.0 */
/* Requests become batches. Contract in intake.h. */
#include "receive-http/intake-private.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "receive-http/multipart.h"
#include "receive-http/json/json-body.h"
#include "receive-http/json/otlp-json.h"
#include "receive-http/profile-outline.h"
#include "receive-http/push-request.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_RATE 100
#define MAX_RATE     1000000u
#define MAX_TIME_NS  (INT64_MAX / 2)

/* Alloy's rule: who names no service is one by the name of its profiles; who does keeps that name
 * as app_name. The series is `labels` from `first` on, `name` its `__name__` as it was sent. */
static int add_service_name(series_labels *labels, size_t first, struct str name)
{
	struct target_label l = {STR("service_name"), name};

	for (size_t i = first; i < labels->n; i++)
		if (str_is(labels->p[i].name, "service_name") && labels->p[i].value.n)
			l.name = STR("app_name");
	return vec_push(labels, l) ? 0 : -ENOMEM;
}

static int too_much(struct error *err)
{
	return error_set(err, -E2BIG,
			 "the profiles of the request, with their labels, are more than %zu MiB "
			 "uncompressed",
			 INTAKE_MAX_RAW >> 20);
}

/* Looks a profile over and fills in what that says. `*left` is what the request may still have
 * uncompressed: small bytes can be large profiles, and many of them. */
static int look(struct encoded_profile *p, struct buf *raw, size_t *left,
		struct profile_outline *ret, struct error *err)
{
	size_t max = *left < PROFILE_MAX_RAW ? *left : PROFILE_MAX_RAW;
	int rc = profile_outline(p->bytes, raw, max, ret, err);

	if (rc == -E2BIG && max < PROFILE_MAX_RAW)
		return too_much(err);
	if (rc)
		return rc;
	*left -= ret->raw_bytes;
	p->format = ANDIRON_ENCODED_PPROF;
	p->raw_bytes = ret->raw_bytes;
	p->n_stacks = ret->n_stacks;
	return 0;
}

static int batch_of(const struct encoded_profile *profiles, size_t n,
		    const struct intake_head *head, const struct andiron_batch **ret,
		    struct error *err)
{
	const struct batch_head h = {.start_ns = head->now_ns,
				     .end_ns = head->now_ns,
				     .producer = head->producer,
				     .sequence = head->sequence};
	int rc = encoded_batch(profiles, n, &h, ret);

	return rc == -E2BIG ? error_set(err, rc, "the request has more than %u MiB of profiles",
					ANDIRON_BATCH_MAX_BYTES >> 20)
			    : rc;
}

/* Labels as they are pushed: those of the series and what Alloy adds. */
static int push_labels(const struct push_request *request, const struct pushed *p,
		       series_labels *out)
{
	struct str name = STR_NULL;
	size_t first = out->n;

	for (size_t i = 0; i < p->n_labels; i++) {
		struct target_label l = request->labels.p[p->label_start + i];

		if (str_is(l.name, "__name__"))
			name = l.value;
		if (!vec_push(out, l))
			return -ENOMEM;
	}
	return request->named ? 0 : add_service_name(out, first, name);
}

/* Labels are sorted, copied and looked up for each profile that has them. */
static size_t label_bytes(const struct target_label *labels, size_t n)
{
	size_t bytes = n * sizeof(*labels);

	for (size_t i = 0; i < n; i++)
		bytes += labels[i].name.n + labels[i].value.n;
	return bytes;
}

/* The profiles of a series follow each other and share its labels. */
static bool same_series(const struct pushed *a, const struct pushed *b)
{
	return a->label_start == b->label_start && a->n_labels == b->n_labels;
}

static int read_push(const struct intake_head *head, const struct push_request *push,
		     series_labels *labels, const struct andiron_batch **ret, struct error *err)
{
	struct encoded_profile *profiles = calloc(push->profiles.n, sizeof(*profiles));
	size_t *starts = calloc(push->profiles.n + 1, sizeof(*starts));
	size_t left = INTAKE_MAX_RAW, start = 0, bytes = 0;
	struct buf raw = BUF_NULL;
	struct profile_outline seen;
	int rc = profiles && starts ? 0 : -ENOMEM;

	for (size_t i = 0; i < push->profiles.n && !rc; i++) {
		const struct pushed *p = &push->profiles.p[i];

		if (i == 0 || !same_series(p - 1, p)) {
			start = labels->n;
			rc = push_labels(push, p, labels);
			bytes = label_bytes(labels->p + start, labels->n - start);
		}
		starts[i] = start;
		profiles[i].n_labels = labels->n - start;
		profiles[i].bytes = p->profile;
		if (!rc && bytes > left)
			rc = too_much(err);
		if (!rc) {
			left -= bytes;
			rc = look(&profiles[i], &raw, &left, &seen, err);
		}
	}
	for (size_t i = 0; i < push->profiles.n && !rc; i++) /* the labels are where they stay */
		profiles[i].labels = labels->p + starts[i];
	if (!rc)
		rc = batch_of(profiles, push->profiles.n, head, ret, err);
	buf_free(&raw);
	free(profiles);
	free(starts);
	return rc;
}

static int take_otlp(const struct intake_request *request, const struct intake_head *head,
		     struct str body, const struct andiron_batch **ret, struct error *err)
{
	struct push_request push = {.named = true};
	series_labels labels = {0};
	struct buf wire = BUF_NULL;
	int rc = 0;

	*ret = NULL;
	if (json_body_is(request->content_type)) {
		rc = otlp_json_read(body, &wire, err);
		body = buf_str(&wire);
	}
	if (!rc)
		rc = otlp_request_parse(body, &push, request->rejected, err);
	if (!rc && push.profiles.n)
		rc = read_push(head, &push, &labels, ret, err);
	vec_free(&labels);
	push_request_fini(&push);
	buf_free(&wire);
	return rc;
}

static int take_push(const struct intake_request *request, const struct intake_head *head,
		     struct str body, const struct andiron_batch **ret, struct error *err)
{
	struct push_request push = {0};
	series_labels labels = {0};
	bool json = json_body_is(request->content_type);
	int rc = push_request_parse(body, json, &push, err);

	if (!rc)
		rc = read_push(head, &push, &labels, ret, err);
	vec_free(&labels);
	push_request_fini(&push);
	return rc;
}

int64_t intake_time(struct str text, int64_t now)
{
	int64_t unit = 1;
	uint64_t n;

	if (str_starts(text, STR("now-")) && text.n > 5 && text.p[text.n - 1] == 's' &&
	    str_u64((struct str){text.p + 4, text.n - 5}, &n))
		return n <= (uint64_t)(now / NS_PER_SEC) ? now - (int64_t)n * NS_PER_SEC : now;
	if (!str_u64(text, &n))
		return now;
	if (n < UINT64_C(100000000000))
		unit = NS_PER_SEC;
	else if (n < UINT64_C(100000000000000))
		unit = NS_PER_MSEC;
	else if (n < UINT64_C(100000000000000000))
		unit = 1000;
	return n <= (uint64_t)(MAX_TIME_NS / unit) ? (int64_t)n * unit : now;
}

/* A profile in pprof: raw, or the part `profile` of a form. */
static int take_pprof(struct ingest *in, bool form, const struct andiron_batch **ret,
		      struct error *err)
{
	struct encoded_profile p = {
		.bytes = in->body, .start_ns = in->start_ns, .end_ns = in->end_ns};
	struct str type = in->request->content_type, config = STR_NULL, earlier;
	struct buf raw = BUF_NULL, display = BUF_NULL;
	struct target_label name = {.name = STR("__name__")};
	struct profile_outline seen;
	size_t left = INTAKE_MAX_RAW;
	int rc = 1;

	if (form)
		rc = multipart_find(type, in->body, STR("profile"), &p.bytes);
	if (rc == 0)
		return error_set(err, -EBADMSG, "the form has no part \"profile\"");
	if (form && multipart_find(type, in->body, STR("prev_profile"), &earlier) == 1)
		return error_set(err, -EBADMSG,
				 "the form has a part \"prev_profile\", which nobody takes any "
				 "more; use a newer SDK");
	if (rc == 1 && form)
		rc = multipart_find(type, in->body, STR("sample_type_config"), &config);
	if (rc < 0)
		return error_set(err, rc, "the form is damaged or cut off");
	rc = look(&p, &raw, &left, &seen, err);
	if (!rc) {
		name.value = profile_name(&seen, config, &display);
		rc = vec_push(&in->labels, name) ? 0 : -ENOMEM;
	}
	p.labels = in->labels.p;
	p.n_labels = in->labels.n;
	if (!rc)
		rc = batch_of(&p, 1, in->head, ret, err);
	buf_free(&raw);
	buf_free(&display);
	return rc;
}

/* What is passed on as it came, with what says how to read it. */
static int take_whole(struct ingest *in, uint32_t format, const struct andiron_batch **ret,
		      struct error *err)
{
	const struct intake_request *r = in->request;
	struct encoded_profile p = {.labels = in->labels.p,
				    .n_labels = in->labels.n,
				    .format = format,
				    .bytes = in->body,
				    .content_type = r->content_type,
				    .start_ns = in->start_ns,
				    .end_ns = in->end_ns};
	const struct {
		const char *key;
		struct str value;
	} arguments[] = {{"format", r->format},
			 {"sampleRate", r->sample_rate},
			 {"spyName", r->spy_name},
			 {"units", r->units},
			 {"aggregationType", r->aggregation}};
	struct buf query = BUF_NULL;
	int rc;

	if (!in->body.n)
		return error_set(err, -EBADMSG, "the body is empty");
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct str v = arguments[i].value;

		if (!v.n)
			continue;
		buf_printf(&query, "%s%s=", query.n ? "&" : "", arguments[i].key);
		buf_percent_append(&query, v, "");
	}
	p.query = buf_str(&query);
	rc = query.failed ? -ENOMEM : batch_of(&p, 1, in->head, ret, err);
	buf_free(&query);
	return rc;
}

/* A recording, or a form with one: Java's SDK sends both. */
static int take_jfr(struct ingest *in, const struct andiron_batch **ret, struct error *err)
{
	struct str jfr = in->body;

	if (multipart_is(in->request->content_type)) {
		int rc = multipart_find(in->request->content_type, in->body, STR("jfr"), &jfr);

		if (rc <= 0)
			return error_set(err, -EBADMSG, "the form %s",
					 rc ? "is damaged or cut off" : "has no part \"jfr\"");
	}
	if (!gzip_is(jfr) && !str_starts(jfr, STR("FLR\0")))
		return error_set(err, -EBADMSG,
				 "this is no JFR recording: it begins neither with FLR nor like "
				 "gzip");
	return take_whole(in, ANDIRON_ENCODED_JFR, ret, err);
}

static int take_format(struct ingest *in, const struct andiron_batch **ret, struct error *err)
{
	struct str format = in->request->format, type = in->request->content_type;
	bool form = multipart_is(type);

	if (str_is(format, "jfr"))
		return take_jfr(in, ret, err);
	if (str_is(format, "pprof") || (form && !format.n))
		return take_pprof(in, form, ret, err);
	if (str_is(format, "trie") || str_is(format, "tree") || str_is(format, "speedscope") ||
	    str_starts(type, STR("binary/octet-stream+")))
		return take_whole(in, ANDIRON_ENCODED_INGEST, ret, err);
	if (str_is(format, "lines"))
		return intake_folded(in, false, ret, err);
	if (!format.n || str_is(format, "groups") || str_is(format, "folded") ||
	    str_is(format, "collapsed"))
		return intake_folded(in, true, ret, err);
	return error_set(err, -EINVAL,
			 "format=%.*s is none; there are pprof, jfr, folded, lines, trie, tree and "
			 "speedscope",
			 STR_FMT(str_first(format, 60)));
}

static int take_ingest(const struct intake_request *request, const struct intake_head *head,
		       struct str body, const struct andiron_batch **ret, struct error *err)
{
	struct ingest in = {.request = request,
			    .head = head,
			    .body = body,
			    .start_ns = intake_time(request->from, head->now_ns),
			    .end_ns = intake_time(request->until, head->now_ns),
			    .sample_rate = DEFAULT_RATE};
	uint64_t rate;
	int rc = series_name_parse(request->name, &in.app, &in.labels, err);

	if (str_u64(request->sample_rate, &rate) && rate && rate <= MAX_RATE)
		in.sample_rate = rate;
	if (in.end_ns < in.start_ns)
		in.end_ns = in.start_ns;
	if (!rc && !str_utf8(request->content_type))
		rc = error_set(err, -EBADMSG, "the Content-Type is not UTF-8");
	if (!rc)
		rc = add_service_name(&in.labels, 0, in.app);
	if (!rc && request->spy_name.n && str_utf8(request->spy_name) &&
	    !vec_push(&in.labels,
		      ((struct target_label){STR("pyroscope_spy"), request->spy_name})))
		rc = -ENOMEM;
	if (!rc)
		rc = take_format(&in, ret, err);
	vec_free(&in.labels);
	return rc;
}

int intake_read(const struct intake_request *request, const struct intake_head *head,
		const struct andiron_batch **ret, unsigned int *ret_status, struct error *err)
{
	static int (*const take[])(const struct intake_request *, const struct intake_head *,
				   struct str, const struct andiron_batch **, struct error *) = {
		[INTAKE_PUSH] = take_push,
		[INTAKE_INGEST] = take_ingest,
		[INTAKE_OTLP] = take_otlp,
	};
	struct buf raw = BUF_NULL;
	struct str body = request->body;
	int rc = 0;

	if (str_is(request->content_encoding, "gzip")) {
		rc = gzip_inflate(body, &raw, INTAKE_MAX_RAW);
		body = buf_str(&raw);
		if (rc == -EBADMSG)
			error_set(err, rc, "the body is not what Content-Encoding: gzip says");
		else if (rc == -E2BIG)
			error_set(err, rc, "the body has more than %zu MiB uncompressed",
				  INTAKE_MAX_RAW >> 20);
	}
	if (!rc)
		rc = take[request->api](request, head, body, ret, err);
	buf_free(&raw);
	if (rc)
		*ret_status = rc == -ENOMEM ? 503 : rc == -E2BIG ? 413 : 400;
	return rc;
}
