/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-relabel.so: discovery.relabel. */
#include "abi/log.h"
#include "base/clock.h"
#include "relabel/dropped.h"
#include "relabel/metrics.h"
#include "relabel/options.h"
#include "relabel/relabel.h"

#include <andiron/plugin.h>
#include <errno.h>

struct instance {
	struct abi_context context;
	struct relabel *relabel;
	uint64_t retry; /* a timer */
	bool missing;   /* memory was short: targets must be resent */
};

/* Not every host can send targets again. */
static bool request_all(struct instance *in)
{
	if (!ANDIRON_HAS(in->context.host, andiron_host, request_targets))
		return false;
	in->context.host->request_targets(in->context.instance, "targets");
	return true;
}

static void publish(struct instance *in);

/* Not at once, since memory is short. */
static void retry(void *self)
{
	struct instance *in = self;

	in->retry = 0;
	in->missing = !ANDIRON_HAS(in->context.host, andiron_host, request_targets);
	publish(in);
	request_all(in);
}

/* Sends what changed and sets the health. */
static void publish(struct instance *in)
{
	const struct andiron_host *host = in->context.host;
	const struct andiron_targets *update = NULL;
	struct relabel_totals totals;

	in->missing |= relabel_flush(in->relabel, &update) < 0;
	if (update) {
		host->send_targets(in->context.instance, "output", update);
		update->release(update->owner);
	}
	if (in->missing && !in->retry)
		host->timer_set(in->context.instance, NS_PER_SEC, 0, retry, in, &in->retry);
	relabel_totals(in->relabel, &totals);
	if (in->missing)
		abi_health(&in->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: the output is not up to date");
	else if (totals.large)
		abi_health(&in->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%llu targets were left out: the rules made their labels too large",
			   (unsigned long long)totals.large);
	else
		abi_health(&in->context, ANDIRON_HEALTH_HEALTHY, "%llu of %llu targets are kept",
			   (unsigned long long)totals.kept, (unsigned long long)totals.rows);
}

static void destroy(void *self)
{
	relabel_free(((struct instance *)self)->relabel);
	free(self);
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct error cause = ERROR_NULL;
	struct rules rules = {0};
	struct instance *in;
	int r = rules_from_args(args, &rules, &cause);

	if (r)
		return abi_error(host, err, &cause, r);
	in = calloc(1, sizeof(*in));
	if (in)
		in->relabel = relabel_new(instance);
	if (!in || !in->relabel) {
		rules_free(&rules);
		free(in);
		return -ENOMEM;
	}
	relabel_set_rules(in->relabel, &rules);
	in->context = (struct abi_context){host, instance};
	*ret_self = in;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	publish(self);
	return 0;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct instance *in = self;
	struct error cause = ERROR_NULL;
	struct rules rules = {0};
	int r = -ENOTSUP; /* what the old rules dropped is not kept here */

	if (ANDIRON_HAS(in->context.host, andiron_host, request_targets))
		r = rules_from_args(args, &rules, &cause);
	else
		error_set(&cause, r, "this host cannot send targets again: make a new instance");
	if (r)
		return abi_error(in->context.host, err, &cause, r);
	relabel_set_rules(in->relabel, &rules);
	request_all(in);
	return 0;
}

static void resend(void *self, const char *export_name)
{
	struct instance *in = self;

	relabel_resend(in->relabel);
	if (!request_all(in))
		abi_log(&in->context, ANDIRON_LOG_ERROR,
			"the host asks for targets again, and cannot send any again itself");
}

static void stop(void *self)
{
	struct instance *in = self;

	if (in->retry)
		in->context.host->timer_cancel(in->context.instance, in->retry);
	in->retry = 0;
}

static void targets(void *self, const char *port, const struct andiron_targets *change)
{
	struct instance *in = self;
	int r = relabel_apply(in->relabel, change);

	if (r == -EINVAL)
		abi_log(&in->context, ANDIRON_LOG_ERROR,
			"a target update breaks the ABI and is ignored");
	in->missing |= r == -ENOMEM; /* -EAGAIN: the host sends a snapshot */
	publish(in);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	relabel_metrics(((struct instance *)self)->relabel, sink);
}

static int32_t each(void *self, const struct andiron_targets *update,
		    const struct andiron_dropped_targets_sink *sink)
{
	return dropped_each(((struct instance *)self)->relabel, update, sink);
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_dropped_targets table = {.size = sizeof(table), .each = each};

	return strcmp(id, ANDIRON_DROPPED_TARGETS_ID) == 0 ? &table : NULL;
}

static const char *const offers[] = {ANDIRON_DROPPED_TARGETS_ID, NULL};

static const struct andiron_export exports[] = {
	{"output", ANDIRON_EXPORT_TARGETS, 0, "The targets after the last rule."},
	{"rules", ANDIRON_EXPORT_CAPSULE, 0, "The rules, by name."},
};

static const struct andiron_component relabel = {
	.size = sizeof(relabel),
	.name = "discovery.relabel",
	.summary = "Rewrites, keeps and drops targets by rules.",
	.options = &relabel_options,
	.exports = exports,
	.n_exports = sizeof(exports) / sizeof(*exports),
	.offers = offers,
	.validate = rules_check,
	.create = create,
	.start = start,
	.update = update,
	.stop = stop,
	.destroy = destroy,
	.targets = targets,
	.metrics = metrics,
	.extension = extension,
	.resend = resend,
};

ANDIRON_PLUGIN("relabel", ANDIRON_VERSION, "Apache-2.0", &relabel);
