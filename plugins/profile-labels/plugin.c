/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-profile-labels.so: pyroscope.relabel and pyroscope.enrich, which change the labels of
 * profiles that pass. */
#include "profile-labels/options.h"
#include "profile-labels/profile-enrich.h"
#include "profile-labels/profile-relabel.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

static int32_t relabel_create(const struct andiron_host *host, uint64_t instance,
			      const struct andiron_value *args, void **ret_self,
			      struct andiron_error *err)
{
	struct profile_relabel *p = calloc(1, sizeof(*p));
	struct error cause = ERROR_NULL;
	int r = p ? rules_from_args(args, &p->rules, &cause) : -ENOMEM;

	if (r) {
		free(p);
		return abi_error(host, err, &cause, r);
	}
	p->context = (struct abi_context){host, instance};
	p->work = LABELS_NULL;
	*ret_self = p;
	return 0;
}

static int32_t relabel_start(void *self, struct andiron_error *err)
{
	const struct profile_relabel *p = self;

	abi_health(&p->context, ANDIRON_HEALTH_HEALTHY, "relabeling by %zu rules", p->rules.n);
	return 0;
}

static int32_t relabel_update(void *self, const struct andiron_value *args,
			      struct andiron_error *err)
{
	struct profile_relabel *p = self;
	struct error cause = ERROR_NULL;
	struct rules rules;
	int r = rules_from_args(args, &rules, &cause);

	if (r)
		return abi_error(p->context.host, err, &cause, r);
	rules_free(&p->rules);
	p->rules = rules;
	return relabel_start(self, err);
}

static void stop(void *self)
{
}

static void relabel_destroy(void *self)
{
	profile_relabel_fini(self);
	free(self);
}

static const struct andiron_export relabel_exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes the profiles to relabel."},
	{"rules", ANDIRON_EXPORT_CAPSULE, 0, "The rules, by name."},
};

static const struct andiron_component relabel = {
	.size = sizeof(relabel),
	.name = "pyroscope.relabel",
	.summary = "Rewrites the labels of profiles, keeps and drops profiles by rules.",
	.options = &profile_relabel_options,
	.exports = relabel_exports,
	.n_exports = sizeof(relabel_exports) / sizeof(*relabel_exports),
	.validate = rules_check,
	.create = relabel_create,
	.start = relabel_start,
	.update = relabel_update,
	.stop = stop,
	.destroy = relabel_destroy,
	.batch = profile_relabel_batch,
	.metrics = profile_relabel_metrics,
};

static void enrich_destroy(void *self)
{
	enrich_fini(self);
	free(self);
}

static int32_t enrich_create(const struct andiron_host *host, uint64_t instance,
			     const struct andiron_value *args, void **ret_self,
			     struct andiron_error *err)
{
	struct enrich *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	r = enrich_init(e, &(struct abi_context){host, instance});
	if (r == 0)
		r = enrich_set_args(e, args);
	if (r)
		enrich_destroy(e);
	else
		*ret_self = e;
	return r;
}

static int32_t enrich_start(void *self, struct andiron_error *err)
{
	const struct enrich *e = self;

	abi_health(&e->context, ANDIRON_HEALTH_HEALTHY, "no targets yet");
	return 0;
}

static int32_t enrich_update(void *self, const struct andiron_value *args,
			     struct andiron_error *err)
{
	return enrich_set_args(self, args);
}

static const struct andiron_export enrich_exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes the profiles that get labels."},
};

static const struct andiron_component enrich = {
	.size = sizeof(enrich),
	.name = "pyroscope.enrich",
	.summary = "Gives profiles the labels of the target that a label of theirs names.",
	.options = &enrich_arguments,
	.exports = enrich_exports,
	.n_exports = 1,
	.create = enrich_create,
	.start = enrich_start,
	.update = enrich_update,
	.stop = stop,
	.destroy = enrich_destroy,
	.targets = enrich_targets,
	.batch = enrich_batch,
	.metrics = enrich_metrics,
};

ANDIRON_PLUGIN("profile-labels", ANDIRON_VERSION, "Apache-2.0", &relabel, &enrich);
