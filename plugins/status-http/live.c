/* SPDX-License-Identifier: Apache-2.0 */
/* The last minutes. Contract in live.h. */
#include "status-http/live.h"

#include "abi/batch-view.h"
#include "base/clock.h"
#include "export/diff.h"
#include "export/flame.h"
#include "export/pprof.h"

#include <errno.h>
#include <stdio.h>

#define EXPORT_FLAGS (EXPORT_SAMPLES | EXPORT_LABELS | EXPORT_LOSSES | EXPORT_WHOLE)
#define GZIP_LEVEL   1

static void release(const struct andiron_batch *batch)
{
	batch->release(batch->owner);
}

/* Those that ended within the time. */
static int refer(struct recent_batches *to, const struct recent *kept, int64_t from_ns,
		 int64_t until_ns)
{
	vec_each (&kept->batches, at) {
		if ((*at)->end_ns <= from_ns || (*at)->end_ns > until_ns)
			continue;
		if (!vec_push(to, *at))
			return -ENOMEM;
		(*at)->retain((*at)->owner);
	}
	return 0;
}

int live_look_init(struct live_look *k, const struct recent *kept, int64_t now_ns)
{
	int64_t then = now_ns - k->against_ns;
	int r = refer(&k->after, kept, now_ns - k->last_ns, INT64_MAX);

	if (r == 0 && k->form == LIVE_COMPARED)
		r = refer(&k->before, kept, then - k->last_ns, then);
	return r;
}

void live_look_fini(struct live_look *k)
{
	vec_each (&k->after, at)
		release(*at);
	vec_each (&k->before, at)
		release(*at);
	vec_free(&k->after);
	vec_free(&k->before);
	buf_free(&k->out);
}

static int write_pprof(const struct recent_batches *batches, int level, struct buf *out)
{
	struct pprof_export *x = pprof_export_new(STR(""), EXPORT_FLAGS);
	int r = x ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < batches->n; i++) {
		struct batch_view view;

		if (batch_view_init(&view, batches->p[i]) == 0)
			r = pprof_export_batch(x, &view);
	}
	if (r == 0)
		r = pprof_export_n_samples(x) ? pprof_export_finish(x, 0, level, out, NULL)
					      : -ENODATA;
	pprof_export_free(x);
	return r;
}

static int read_back(const struct recent_batches *batches, struct profile **ret)
{
	struct buf raw = BUF_NULL;
	int r = write_pprof(batches, 0, &raw);

	if (r == 0)
		r = profile_decode(buf_str(&raw), ret, NULL);
	buf_free(&raw);
	return r;
}

static int draw_one(const struct profile *p, int64_t last_ns, struct buf *out)
{
	char time[64], title[80];
	const struct str groups[] = {STR("process")};
	struct flame_caption caption = {.groups = groups, .n_groups = 1};
	struct call_tree *tree = NULL;
	int r = call_tree_build(p, 0, &tree);

	snprintf(title, sizeof(title), "The last %s", duration_format(last_ns, time, sizeof(time)));
	caption.title = str_of(title);
	if (r == 0)
		r = flame_write(tree, p, &caption, out);
	call_tree_free(tree);
	return r;
}

static int draw_pair(const struct profile *before, const struct profile *after, struct buf *out)
{
	struct diff d = {0};
	int r = diff_build(before, after, &d);

	if (r == 0) {
		const struct flame_pair pair = {
			.profiles = {before, after},
			.names = {STR("earlier"), STR("now")},
			.weight = {d.weight[0], d.weight[1]},
			.limit = d.limit,
		};
		const struct flame_caption caption = {.pair = &pair, .title = STR("earlier → now")};

		r = flame_write(d.tree, after, &caption, out);
	}
	diff_fini(&d);
	return r;
}

static int draw(struct live_look *k)
{
	struct profile *after = NULL, *before = NULL;
	int r;

	if (k->form == LIVE_PPROF)
		return write_pprof(&k->after, GZIP_LEVEL, &k->out);
	r = read_back(&k->after, &after);
	if (r == 0 && k->form == LIVE_COMPARED)
		r = read_back(&k->before, &before);
	k->lacks_before = after && r == -ENODATA;
	if (r == 0)
		r = before ? draw_pair(before, after, &k->out)
			   : draw_one(after, k->last_ns, &k->out);
	profile_free(after);
	profile_free(before);
	return r;
}

void live_look_draw(struct live_look *k)
{
	k->result = draw(k);
}
