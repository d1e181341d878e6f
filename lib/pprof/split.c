/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles in parts. A part has its own tables, of what its samples refer to: so parts of a profile
 * with large tables are small. Contract in split.h. */
#include "pprof/split.h"

#include "base/buf.h"
#include "base/vec.h"
#include "pprof/encode.h"

#include <errno.h>
#include <stdlib.h>

/* Ids in the part's encoder by position in the profile; 0: not added yet. */
struct part {
	const struct profile *p;
	struct pprof_encoder *encoder;
	uint32_t *functions, *mappings, *locations;
	VEC(uint32_t) frames;
	VEC(struct pprof_line) lines;
	VEC(struct pprof_label) labels;
	bool failed;
};

static uint32_t put_string(const struct part *t, struct str s)
{
	return pprof_add_string(t->encoder, s);
}

static uint32_t put_function(struct part *t, uint32_t i)
{
	const struct profile_function *f = &t->p->functions[i];

	if (!t->functions[i])
		t->functions[i] = pprof_add_function(
			t->encoder, &(struct pprof_function){
					    .name = put_string(t, f->name),
					    .system_name = put_string(t, f->system_name),
					    .file = put_string(t, f->file),
					    .start_line = f->start_line});
	return t->functions[i];
}

static uint32_t put_mapping(struct part *t, uint32_t i)
{
	const struct profile_mapping *m = &t->p->mappings[i];

	if (i && !t->mappings[i])
		t->mappings[i] = pprof_add_mapping(
			t->encoder, &(struct pprof_mapping){m->start, m->limit, m->offset,
							    put_string(t, m->file),
							    put_string(t, m->build_id)});
	return t->mappings[i];
}

static uint32_t put_location(struct part *t, uint32_t i)
{
	const struct profile_location *l = &t->p->locations[i];

	if (t->locations[i])
		return t->locations[i];
	t->lines.n = 0;
	for (uint32_t k = 0; k < l->n_lines; k++) {
		const struct profile_line *line = &t->p->lines[l->line_start + k];

		/* A line without a function says nothing that the address does not. */
		if (line->function)
			t->failed |= !vec_push(&t->lines,
					       ((struct pprof_line){put_function(t, line->function),
								    line->line, 0}));
	}
	t->locations[i] = pprof_add_location(
		t->encoder, &(struct pprof_location){l->address, put_mapping(t, l->mapping),
						     (uint32_t)t->lines.n, t->lines.p});
	return t->locations[i];
}

static void put_label(struct part *t, const struct profile_label *l)
{
	struct pprof_label label = {.key = put_string(t, l->key),
				    .text = put_string(t, l->text),
				    .number = l->number,
				    .unit = put_string(t, l->unit)};

	t->failed |= !vec_push(&t->labels, label);
}

static void put_sample(struct part *t, size_t i)
{
	const struct profile_sample *s = &t->p->samples[i];
	struct pprof_sample sample = {.values = t->p->values + i * t->p->n_types};

	t->frames.n = t->labels.n = 0;
	for (uint32_t k = 0; k < s->n_frames; k++)
		t->failed |= !vec_push(&t->frames,
				       put_location(t, t->p->frames[s->frame_start + k]));
	for (uint32_t k = 0; k < s->n_labels; k++)
		put_label(t, &t->p->labels[s->label_start + k]);
	sample.locations = t->frames.p;
	sample.n_locations = (uint32_t)t->frames.n;
	sample.labels = t->labels.p;
	sample.n_labels = (uint32_t)t->labels.n;
	if (!t->failed)
		pprof_add_sample(t->encoder, &sample);
}

static int begin(struct part *t)
{
	const struct profile *p = t->p;

	t->encoder = pprof_encoder_new();
	t->functions = calloc(p->n_functions + 1, sizeof(*t->functions));
	t->mappings = calloc(p->n_mappings + 1, sizeof(*t->mappings));
	t->locations = calloc(p->n_locations + 1, sizeof(*t->locations));
	if (!t->encoder || !t->functions || !t->mappings || !t->locations)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_types; i++)
		pprof_add_type(t->encoder, put_string(t, p->types[i].type),
			       put_string(t, p->types[i].unit));
	for (size_t i = 0; i < p->n_comments; i++)
		pprof_add_comment(t->encoder, put_string(t, p->comments[i]));
	return 0;
}

static void end(struct part *t)
{
	pprof_encoder_free(t->encoder);
	free(t->functions);
	free(t->mappings);
	free(t->locations);
	t->encoder = NULL;
	t->functions = t->mappings = t->locations = NULL;
}

static int finish(struct part *t, const struct pprof_split *split, int64_t time_ns)
{
	const struct profile *p = t->p;
	struct pprof_head head = {.time_ns = time_ns,
				  .duration_ns = p->duration_ns,
				  .period = p->period,
				  .period_type = put_string(t, p->period_type.type),
				  .period_unit = put_string(t, p->period_type.unit)};
	struct buf out = BUF_NULL;
	size_t raw;
	int r = t->failed ? -ENOMEM : pprof_finish(t->encoder, &head, split->level, &out, &raw);

	if (r == 0)
		r = split->part(split->context, buf_str(&out), raw);
	buf_free(&out);
	return r;
}

static bool is_full(const struct part *t, const struct pprof_split *split)
{
	return t->failed || pprof_failed(t->encoder) ||
	       pprof_n_samples(t->encoder) >= split->max_samples ||
	       pprof_size_bound(t->encoder) >= split->max_raw;
}

int pprof_write_parts(const struct profile *p, const struct pprof_split *split)
{
	struct part t = {.p = p};
	int64_t n_parts = 0;
	size_t next = 0;
	int r = p->n_types > PPROF_MAX_TYPES ? -E2BIG : 0;

	while (r == 0 && next < p->n_samples) {
		r = begin(&t);
		while (r == 0 && next < p->n_samples && !is_full(&t, split))
			put_sample(&t, next++);
		if (r == 0 && (pprof_n_samples(t.encoder) || pprof_failed(t.encoder) || t.failed))
			r = finish(&t, split, split->time_ns + n_parts++);
		end(&t);
	}
	vec_free(&t.frames);
	vec_free(&t.lines);
	vec_free(&t.labels);
	return r;
}
