/* SPDX-License-Identifier: Apache-2.0 */
/* The last seconds. Contract in live-profile.h. */
#include "cli/top/live-profile.h"

#include "abi/batch-view.h"
#include "abi/log.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "export/pprof.h"
#include "export/recent.h"
#include "pprof/decode.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define MAX_BYTES ((uint64_t)64 << 20)

struct live_profile {
	pthread_mutex_t lock; /* a worker brings batches, the loop looks */
	struct recent kept;
	bool ended;
};

static struct live_profile *only;

struct live_profile *live_profile_new(int64_t window_ns)
{
	check(!only);
	only = calloc(1, sizeof(*only));
	if (!only)
		return NULL;
	pthread_mutex_init(&only->lock, NULL);
	only->kept = (struct recent){.keep_ns = window_ns, .max_bytes = MAX_BYTES};
	return only;
}

void live_profile_end(struct live_profile *l)
{
	pthread_mutex_lock(&l->lock);
	recent_fini(&l->kept);
	l->ended = true;
	pthread_mutex_unlock(&l->lock);
}

void live_profile_free(struct live_profile *l)
{
	if (!l)
		return;
	check(l->kept.batches.n == 0);
	pthread_mutex_destroy(&l->lock);
	free(l);
	only = NULL;
}

static void keep(struct live_profile *l, const struct andiron_batch *batch)
{
	pthread_mutex_lock(&l->lock);
	if (!l->ended)
		recent_take(&l->kept, batch);
	pthread_mutex_unlock(&l->lock);
}

static int export_all(struct live_profile *l, struct pprof_export *x)
{
	int r = 0;

	pthread_mutex_lock(&l->lock);
	/* An idle machine sends nothing, and yet time passes. */
	recent_forget(&l->kept, clock_real() - l->kept.keep_ns * 3 / 2);
	for (size_t i = 0; i < l->kept.batches.n && r == 0; i++) {
		struct batch_view view;

		if (batch_view_init(&view, l->kept.batches.p[i]) == 0)
			r = pprof_export_batch(x, &view);
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

static int64_t covered(struct live_profile *l)
{
	int64_t ns = 0;

	pthread_mutex_lock(&l->lock);
	vec_each (&l->kept.batches, at)
		ns += (*at)->end_ns - (*at)->start_ns;
	pthread_mutex_unlock(&l->lock);
	return ns;
}

static int build(struct live_view *v, struct str pprof)
{
	int r = profile_decode(pprof, &v->p, NULL);

	if (r == 0)
		r = call_tree_build(v->p, CALL_TREE_BY_FILE, &v->tree);
	if (r == 0)
		r = top_build(v->tree, &v->functions);
	return r == 0 ? top_build_by(v->tree, STR("process"), &v->programs) : r;
}

int live_profile_look(struct live_profile *l, struct live_view *ret)
{
	struct pprof_export *x =
		pprof_export_new(STR(""), EXPORT_SAMPLES | EXPORT_LABELS | EXPORT_WHOLE);
	struct buf pprof = BUF_NULL;
	int r = x ? export_all(l, x) : -ENOMEM;

	*ret = (struct live_view){0};
	if (r == 0 && pprof_export_n_samples(x) > 0) {
		ret->covered_ns = covered(l);
		ret->samples = pprof_export_weight(x);
		r = pprof_export_finish(x, 0, 0, &pprof, NULL);
		if (r == 0)
			r = build(ret, buf_str(&pprof));
	}
	buf_free(&pprof);
	pprof_export_free(x);
	return r;
}

void live_view_fini(struct live_view *v)
{
	top_fini(&v->programs);
	top_fini(&v->functions);
	call_tree_free(v->tree);
	profile_free(v->p);
}

/* The component */

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct abi_context *self = malloc(sizeof(*self));

	if (!self)
		return -ENOMEM;
	*self = (struct abi_context){host, instance};
	*ret_self = self;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	return 0;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	return 0;
}

static void stop(void *self)
{
}

static void destroy(void *self)
{
	free(self);
}

static void take(void *self, const struct andiron_batch *batch)
{
	keep(only, batch);
	abi_ledger(self, ANDIRON_LEDGER_DELIVERED, NULL, batch->samples);
}

static const struct andiron_options no_options = {
	.stride = (uint32_t)sizeof(struct andiron_option),
};
static const struct andiron_export receiver[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles to be shown."},
};
static const struct andiron_component screen = {
	.size = sizeof(screen),
	.flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES,
	.name = "top.screen",
	.summary = "Shows profiles of `andiron top`.",
	.options = &no_options,
	.exports = receiver,
	.n_exports = 1,
	.create = create,
	.start = start,
	.update = update,
	.stop = stop,
	.destroy = destroy,
	.batch = take,
};
static const struct andiron_component *const components[] = {&screen};

const struct andiron_plugin live_profile_plugin = {
	.size = sizeof(live_profile_plugin),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "top",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};
