/* SPDX-License-Identifier: Apache-2.0 */
/* See values.h. */
#include "agents/collectd/values.h"

#include "agents/kit/exposition.h"
#include "agents/kit/metric-choice.h"
#include "base/buf.h"
#include "base/clock.h"

#include <collectd/core/daemon/plugin.h>
#include <math.h>

static void put(const char *instance, const char *type, const char *type_instance, value_t value,
		cdtime_t time, cdtime_t interval)
{
	value_list_t list = {
		.values = &value,
		.values_len = 1,
		.time = time,
		.interval = interval,
		.plugin = "andiron",
	};

	snprintf(list.plugin_instance, sizeof(list.plugin_instance), "%s", instance);
	snprintf(list.type, sizeof(list.type), "%s", type);
	snprintf(list.type_instance, sizeof(list.type_instance), "%s", type_instance);
	plugin_dispatch_values(&list);
}

static void put_ms(const char *type_instance, uint64_t ms)
{
	put("", "total_time_in_ms", type_instance, (value_t){.derive = (derive_t)ms}, 0, 0);
}

void values_put_cpu(const struct cpu_usage_sum *sum)
{
	put(sum->service, "total_time_in_ms", sum->target,
	    (value_t){.derive = sum->cpu_ns / NS_PER_MSEC}, NS_TO_CDTIME_T((uint64_t)sum->end_ns),
	    NS_TO_CDTIME_T((uint64_t)sum->interval_ns));
}

void values_put_own_cost(const struct own_cost *cost)
{
	put_ms("own_threads", own_cost_threads_ms(cost));
	put_ms("own_children", own_cost_children_ms(cost));
}

static bool is_wanted(struct str name, const settings_texts *wanted)
{
	vec_each (wanted, pattern)
		if (metric_fits(name, str_of(*pattern)))
			return true;
	return metric_is_usual(name);
}

static void put_part(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		buf_putc(b, text.p[i] < ' ' || text.p[i] == '/' || text.p[i] == '\\' ? '_'
										     : text.p[i]);
}

/* False when memory was short. */
static bool name_metric(struct buf *b, const struct exposition_sample *s, struct str suffix)
{
	struct str name = s->name, labels = s->labels, value;

	if (str_starts(name, STR("andiron_")))
		name = str_skip(name, strlen("andiron_"));
	if (str_ends(name, suffix))
		name.n -= suffix.n;
	buf_clear(b);
	put_part(b, name);
	while (exposition_label(&labels, &value)) {
		buf_putc(b, '-');
		put_part(b, value);
	}
	buf_putc(b, 0);
	return !b->failed;
}

static void put_metric(const struct exposition_sample *s, struct buf *name)
{
	bool seconds = s->counter && str_ends(s->name, STR("_seconds_total"));
	double number = seconds ? s->value * 1000 : s->value;
	value_t value = {.gauge = number};

	if (!name_metric(name, s, seconds ? STR("_seconds_total") : STR("_total")))
		return;
	if (s->counter && !(number >= 0 && number < (double)INT64_MAX))
		return;
	if (s->counter)
		value.derive = (derive_t)number;
	put("",
	    seconds      ? "total_time_in_ms"
	    : s->counter ? "derive"
			 : "gauge",
	    name->p, value, 0, 0);
}

void values_put_metrics(const char *text, const settings_texts *wanted)
{
	struct exposition x = {.rest = str_of(text)};
	struct exposition_sample sample;
	struct buf name = BUF_NULL;

	while (exposition_next(&x, &sample))
		if (is_wanted(sample.name, wanted))
			put_metric(&sample, &name);
	buf_free(&name);
}
