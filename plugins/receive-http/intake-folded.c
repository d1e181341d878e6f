/* SPDX-License-Identifier: Apache-2.0 */
/* Folded text as rows. What is counted is the suffix of the application's name, as Pyroscope has
 * it: "shop.alloc_space". */
#include "receive-http/intake-private.h"

#include "abi/batch-build.h"
#include "abi/target-row.h"
#include "base/clock.h"
#include "receive-http/folded.h"

#include <errno.h>
#include <stdlib.h>

static const struct suffix {
	const char *suffix, *name, *type, *unit;
} suffixes[] = {
	{"cpu", "process_cpu", "cpu", "nanoseconds"},
	{"itimer", "process_cpu", "cpu", "nanoseconds"},
	{"wall", "wall", "wall", "nanoseconds"},
	{"seconds", "wall", "wall", "nanoseconds"},
	{"nanoseconds", "wall", "wall", "nanoseconds"},
	{"microseconds", "wall", "wall", "nanoseconds"},
	{"milliseconds", "wall", "wall", "nanoseconds"},
	{"inuse_objects", "memory", "inuse_objects", "count"},
	{"inuse_space", "memory", "inuse_space", "bytes"},
	{"alloc_objects", "memory", "alloc_objects", "count"},
	{"alloc_space", "memory", "alloc_space", "bytes"},
	{"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count"},
	{"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes"},
	{"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count"},
	{"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes"},
	{"live", "memory", "live", "count"},
	{"bytes", "memory", "samples", "bytes"},
	{"goroutines", "goroutine", "goroutines", "count"},
	{"mutex_count", "mutex", "contentions", "count"},
	{"mutex_duration", "mutex", "delay", "nanoseconds"},
	{"block_count", "block", "contentions", "count"},
	{"block_duration", "block", "delay", "nanoseconds"},
	{"lock_count", "block", "contentions", "count"},
	{"lock_duration", "block", "delay", "nanoseconds"},
	{"exceptions", "exceptions", "samples", "count"},
};

#define N_SUFFIXES (sizeof(suffixes) / sizeof(suffixes[0]))

/* What is counted, and the application without its suffix; NULL: the suffix is none. */
static const struct suffix *suffix_of(struct str app, struct str *ret_app)
{
	size_t dot = str_rfind(app, '.');

	*ret_app = str_first(app, dot);
	for (size_t i = 0; i < N_SUFFIXES; i++)
		if (dot == app.n || str_is(str_skip(app, dot + 1), suffixes[i].suffix))
			return &suffixes[i];
	return NULL;
}

/* Sampled time, which the values count in periods. */
static bool is_time(const struct suffix *s)
{
	return strcmp(s->type, "cpu") == 0 || strcmp(s->type, "wall") == 0;
}

static uint32_t add_type(struct batch_builder *b, const struct suffix *s, int64_t period)
{
	struct andiron_profile_type type = {
		.name = batch_add_string(b, str_of(s->name)),
		.type = batch_add_string(b, str_of(s->type)),
		.unit = batch_add_string(b, str_of(s->unit)),
		.period_type = batch_add_string(b, is_time(s) ? STR("cpu") : str_of(s->type)),
		.period_unit = batch_add_string(b, str_of(s->unit)),
		.period = period,
	};

	return batch_add_type(b, &type);
}

static int begin_group(struct batch_builder *b, const struct ingest *in)
{
	uint32_t n = 0;
	struct target_label *sorted = target_labels_copy(in->labels.p, in->labels.n, &n);
	uint32_t *labels = sorted ? calloc(n + 1, sizeof(*labels)) : NULL;

	for (uint32_t i = 0; labels && i < n; i++)
		labels[i] = batch_add_str_attribute(b, sorted[i].name, sorted[i].value);
	if (labels)
		batch_group_begin(b, labels, n);
	free(sorted);
	free(labels);
	return sorted && labels ? 0 : -ENOMEM;
}

/* The stack of "root;…;leaf". */
static uint32_t add_stack(struct batch_builder *b, struct str frames)
{
	uint32_t leaf_first[FOLDED_MAX_FRAMES];
	uint32_t n = 0;

	while (frames.n && n < FOLDED_MAX_FRAMES) {
		size_t at = str_rfind(frames, ';');
		struct str name = at == frames.n ? frames : str_skip(frames, at + 1);
		struct andiron_function f = {.name = batch_add_string(b, name)};
		struct andiron_line line;
		struct andiron_location l = {.kind = ANDIRON_FRAME_NATIVE};

		frames = str_first(frames, at == frames.n ? 0 : at);
		if (!name.n)
			continue;
		f.system_name = f.name;
		line = (struct andiron_line){.function = batch_add_function(b, &f)};
		l.address = line.function; /* one location for each function */
		leaf_first[n++] = batch_add_named(b, &l, &line, 1);
	}
	return batch_add_stack(b, leaf_first, n);
}

/* A line counts as many samples as it says where it says samples, that is of sampled time; another
 * amount (bytes, objects, time waited) is no number of samples, and counts as one. */
static int add_rows(struct batch_builder *b, const struct ingest *in, bool counted,
		    const struct suffix *suffix, int64_t period, struct error *err)
{
	uint32_t type = add_type(b, suffix, period);
	struct str rest = in->body;
	struct folded_line line;
	uint64_t number = 0, n_rows = 0, left = ANDIRON_BATCH_MAX_SAMPLES;
	int rc;

	while ((rc = folded_next(&rest, counted, &number, &line, err)) == 1) {
		struct andiron_row row = {.type = type};

		if (!line.value)
			continue;
		if (__builtin_mul_overflow((int64_t)line.value, period, &row.value))
			return error_set(err, -EBADMSG, "line %llu has too large a number",
					 (unsigned long long)number);
		row.samples = is_time(suffix) ? line.value : 1;
		if (row.samples > left)
			return error_set(err, -EBADMSG,
					 "the folded text counts more than 2^40 samples");
		left -= row.samples;
		row.stack = add_stack(b, line.frames);
		if (!batch_add_row(b, &row))
			return 0; /* batch_finish says why */
		n_rows++;
	}
	return rc || n_rows ? rc : error_set(err, -EBADMSG, "the folded text has no stacks");
}

int intake_folded(const struct ingest *in, bool counted, const struct andiron_batch **ret,
		  struct error *err)
{
	const struct batch_head head = {.start_ns = in->start_ns,
					.end_ns = in->end_ns,
					.producer = in->head->producer,
					.sequence = in->head->sequence};
	struct str app;
	const struct suffix *suffix = suffix_of(in->app, &app);
	struct batch_builder *b;
	int64_t period = 1;
	int rc;

	if (!suffix)
		return error_set(err, -EINVAL,
				 "name=%.*s: the word behind the last dot is no type of profile; "
				 "write \"%.*s.cpu\", or another type",
				 STR_FMT(str_first(in->app, 200)), STR_FMT(str_first(app, 200)));
	if (is_time(suffix))
		period = NS_PER_SEC / (int64_t)in->sample_rate;
	b = batch_builder_new();
	rc = b ? begin_group(b, in) : -ENOMEM;
	if (!rc)
		rc = add_rows(b, in, counted, suffix, period, err);
	if (rc) {
		batch_builder_free(b);
		return rc;
	}
	return batch_finish(b, &head, ret);
}
