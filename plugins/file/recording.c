/* SPDX-License-Identifier: Apache-2.0 */
/* A run's profile. Contracts in recording.h. */
#include "file/recording.h"

#include "base/clock.h"
#include "base/file.h"
#include "export/pprof.h"
#include "export/flame.h"
#include "file/folded.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define GZIP_LEVEL 6

#define EXPORT_FLAGS (EXPORT_SAMPLES | EXPORT_LABELS | EXPORT_LOSSES | EXPORT_WHOLE)

struct recording {
	struct pprof_export *export;
	struct arena arena;
	struct str *paths, *groups;
	size_t n_paths, n_groups;
	struct str title;
	size_t max_bytes;
	int64_t begun_ns;
	uint64_t n_encoded;
	bool broken; /* memory was short within an add: the export takes no more */
};

enum form { FORM_NONE, FORM_PPROF, FORM_FOLDED, FORM_HTML };

static enum form form_of(struct str path)
{
	if (str_ends(path, STR(".pb.gz")))
		return FORM_PPROF;
	if (str_ends(path, STR(".folded")))
		return FORM_FOLDED;
	return str_ends(path, STR(".html")) ? FORM_HTML : FORM_NONE;
}

bool recording_knows(struct str path)
{
	return form_of(path) != FORM_NONE;
}

/* A copy of a list; *ret_n is what it holds. NULL when memory is short. */
static struct str *copy_texts(struct arena *arena, const struct str *texts, size_t n, size_t *ret_n)
{
	struct str *copy = arena_array(arena, struct str, n ? n : 1);

	for (*ret_n = 0; copy && *ret_n < n; ++*ret_n) {
		copy[*ret_n] = arena_str(arena, texts[*ret_n]);
		if (!copy[*ret_n].p)
			return NULL;
	}
	return copy;
}

struct recording *recording_new(const struct str *paths, size_t n,
				const struct recording_options *options)
{
	struct recording *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->max_bytes = options->max_bytes;
	r->begun_ns = clock_real();
	r->export = pprof_export_new(STR(""),
				     EXPORT_FLAGS | (options->addresses ? EXPORT_ADDRESSES : 0));
	r->paths = copy_texts(&r->arena, paths, n, &r->n_paths);
	r->groups = copy_texts(&r->arena, options->groups, options->n_groups, &r->n_groups);
	r->title = arena_str(&r->arena, options->title);
	if (r->export && r->paths && r->groups && r->title.p)
		return r;
	recording_free(r);
	return NULL;
}

void recording_free(struct recording *r)
{
	if (!r)
		return;
	pprof_export_free(r->export);
	arena_free(&r->arena);
	free(r);
}

void recording_add(struct recording *r, const struct andiron_batch *batch, uint64_t *ret_full,
		   uint64_t *ret_lost)
{
	struct batch_view view;
	uint64_t n;

	*ret_full = *ret_lost = 0;
	if (r->broken || batch_view_init(&view, batch) < 0 ||
	    pprof_export_begin(r->export, &view) < 0) {
		*ret_lost = batch->samples;
		return;
	}
	r->n_encoded += batch_count(&view, ANDIRON_COL_ENCODED);
	*ret_lost += batch_count(&view, ANDIRON_COL_ENCODED);
	n = batch_count(&view, ANDIRON_COL_ROW);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t samples = batch_row(&view, i).samples;

		if (pprof_export_size(r->export) >= r->max_bytes) {
			*ret_full += samples;
			continue;
		}
		if (r->broken) {
			*ret_lost += samples;
			continue;
		}
		switch (pprof_export_row(r->export, i)) {
		case 0:
			break;
		case -ENOMEM:
			r->broken = true;
			*ret_lost += samples;
			break;
		default:
			*ret_lost += samples;
		}
	}
}

uint64_t recording_samples(const struct recording *r)
{
	return pprof_export_weight(r->export);
}

uint64_t recording_n_encoded(const struct recording *r)
{
	return r->n_encoded;
}

/* The profile as it will be read back, and its tree. */
static int draw(struct recording *r, struct profile **ret_profile, struct call_tree **ret_tree)
{
	struct buf raw = BUF_NULL;
	int64_t time_ns = recording_samples(r) ? 0 : r->begun_ns;
	int e = pprof_export_finish(r->export, time_ns, 0, &raw, NULL);

	if (e == 0)
		e = profile_decode(buf_str(&raw), ret_profile, NULL);
	buf_free(&raw);
	return e == 0 ? call_tree_build(*ret_profile, 0, ret_tree) : e;
}

static int make(struct recording *r, enum form form, struct buf *out)
{
	int64_t time_ns = recording_samples(r) ? 0 : r->begun_ns;
	struct profile *profile = NULL;
	struct call_tree *tree = NULL;
	struct flame_caption caption = {
		.title = r->title, .groups = r->groups, .n_groups = r->n_groups};
	char host[256] = "";
	int e;

	if (form == FORM_NONE)
		return -EINVAL;
	if (form == FORM_PPROF)
		return pprof_export_finish(r->export, time_ns, GZIP_LEVEL, out, NULL);
	gethostname(host, sizeof(host) - 1);
	caption.host = str_of(host);
	e = draw(r, &profile, &tree);
	if (e == 0)
		e = form == FORM_HTML ? flame_write(tree, profile, &caption, out)
				      : folded_write(tree, r->groups, r->n_groups, out);
	call_tree_free(tree);
	profile_free(profile);
	return e;
}

int recording_write(struct recording *r, struct error *err)
{
	int first = r->broken && recording_samples(r) == 0 ? -ENOMEM : 0;

	for (size_t i = 0; i < r->n_paths && first != -ENOMEM; i++) {
		struct error *mine = first ? NULL : err;
		struct buf out = BUF_NULL;
		int e = make(r, form_of(r->paths[i]), &out);

		if (e < 0)
			error_errno(mine, e, "cannot make %s", r->paths[i].p);
		else
			e = file_replace(r->paths[i].p, out.p, out.n, mine);
		buf_free(&out);
		if (first == 0)
			first = e;
	}
	return first;
}
