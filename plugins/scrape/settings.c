/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to settings. One list of rules serves `validate`, which reports all that is
 * broken, and settings_new, which stops at the first. The table of kinds repeats the defaults of
 * options.c, since a block that was not written has no value. */
#include "scrape/settings.h"

#include "abi/log.h"
#include "abi/value.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define INTERVAL_NS (15 * NS_PER_SEC)

static const struct {
	const char *block, *name, *path;
	bool enabled, timed;
	int totals;
} builtin[] = {
	{"memory", "memory", "/debug/pprof/allocs", true, false, TOTALS_ALLOC},
	{"block", "block", "/debug/pprof/block", true, false, TOTALS_DELAY},
	{"goroutine", "goroutine", "/debug/pprof/goroutine", true, false, TOTALS_NONE},
	{"mutex", "mutex", "/debug/pprof/mutex", true, false, TOTALS_DELAY},
	{"process_cpu", "process_cpu", "/debug/pprof/profile", true, true, TOTALS_NONE},
	{"fgprof", "fgprof", "/debug/fgprof", false, true, TOTALS_NONE},
	/* That godeltaprof did the subtraction is nobody's business. */
	{"godeltaprof_memory", "memory", "/debug/pprof/delta_heap", false, false, TOTALS_NONE},
	{"godeltaprof_mutex", "mutex", "/debug/pprof/delta_mutex", false, false, TOTALS_NONE},
	{"godeltaprof_block", "block", "/debug/pprof/delta_block", false, false, TOTALS_NONE},
};

typedef void (*finding_fn)(void *context, uint32_t severity, const struct andiron_value *at,
			   const char *text);

/* --- Kinds --- */

static const struct andiron_value *customs_of(const struct andiron_value *profiling)
{
	return profiling ? value_get(profiling, "profile.custom") : NULL;
}

/* A custom profile of that name stands in for a built-in one, as in Alloy. */
static bool is_replaced(const struct andiron_value *profiling, const char *block)
{
	const struct andiron_value *customs = customs_of(profiling);

	for (uint64_t i = 0; customs && i < customs->n_items; i++)
		if (str_is(value_str(&customs->items[i], "", STR_NULL), block))
			return true;
	return false;
}

static bool add_kind(struct settings *s, struct kind kind)
{
	kind.name = arena_str(&s->arena, kind.name);
	kind.path = arena_str(&s->arena, kind.path);
	s->kinds[s->n_kinds++] = kind;
	return kind.name.p && kind.path.p;
}

static bool read_builtin(struct settings *s, const struct andiron_value *profiling)
{
	bool good = true;

	for (size_t i = 0; good && i < sizeof(builtin) / sizeof(*builtin); i++) {
		const struct andiron_value *none = &(struct andiron_value){
			.kind = ANDIRON_VALUE_MAP};
		const struct andiron_value *block = NULL;
		char name[64];

		snprintf(name, sizeof(name), "profile.%s", builtin[i].block);
		block = profiling ? value_get(profiling, name) : NULL;
		block = block ? block : none;
		if (is_replaced(profiling, builtin[i].block) ||
		    !value_bool(block, "enabled", builtin[i].enabled))
			continue;
		good = add_kind(s, (struct kind){
					   str_of(builtin[i].name),
					   value_str(block, "path", str_of(builtin[i].path)),
					   value_bool(block, "delta", builtin[i].timed),
					   builtin[i].totals});
	}
	return good;
}

static bool read_customs(struct settings *s, const struct andiron_value *profiling)
{
	const struct andiron_value *customs = customs_of(profiling);
	bool good = true;

	for (uint64_t i = 0; good && customs && i < customs->n_items; i++) {
		const struct andiron_value *c = &customs->items[i];
		struct str name = value_str(c, "", STR_NULL);
		int totals = str_is(name, "memory")                              ? TOTALS_ALLOC
			     : str_is(name, "mutex") || str_is(name, "block") ? TOTALS_DELAY
									      : TOTALS_NONE;

		if (value_bool(c, "enabled", false) && s->n_kinds < SETTINGS_MAX_KINDS)
			good = add_kind(s, (struct kind){name, value_str(c, "path", STR("")),
							 value_bool(c, "delta", false), totals});
	}
	return good;
}

static bool any_timed(const struct settings *s)
{
	for (uint32_t i = 0; i < s->n_kinds; i++)
		if (s->kinds[i].timed)
			return true;
	return false;
}

/* --- What may be said --- */

/* A list of values for one name, or a text. */
static size_t n_values(const struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_LIST ? v->n_items : 1;
}

static const struct andiron_value *value_at(const struct andiron_value *v, size_t i)
{
	return v->kind == ANDIRON_VALUE_LIST ? &v->items[i] : v;
}

static void check_params(const struct andiron_value *args, finding_fn found, void *context)
{
	const struct andiron_value *params = value_get(args, "params");
	bool good = !params || params->kind == ANDIRON_VALUE_MAP;

	for (uint64_t i = 0; good && params && i < params->n_items; i++)
		for (size_t k = 0; k < n_values(&params->items[i]); k++)
			good &= value_at(&params->items[i], k)->kind == ANDIRON_VALUE_STRING;
	if (!good)
		found(context, ANDIRON_REPORT_ERROR, params,
		      "params must be an object of strings, or of lists of strings, "
		      "{\"name\" = [\"value\"]}");
}

static bool is_given(const struct andiron_value *v)
{
	return v && !(v->flags & ANDIRON_VALUE_DEFAULTED);
}

/* Alloy refuses an interval into which its default of 14s does not go; here it is no default: what
 * is not written is as long as the interval lets it be. */
static int64_t timed_ns(const struct andiron_value *args, int64_t interval_ns)
{
	const struct andiron_value *v = value_get(args, "delta_profiling_duration");

	return is_given(v) ? v->integer : interval_ns - NS_PER_SEC;
}

static void check_times(const struct settings *s, const struct andiron_value *args,
			finding_fn found, void *context)
{
	const struct andiron_value *v = value_get(args, "delta_profiling_duration");
	int64_t ns = timed_ns(args, s->interval_ns);

	if (!any_timed(s))
		return;
	if (s->interval_ns < 2 * NS_PER_SEC)
		found(context, ANDIRON_REPORT_ERROR, value_get(args, "scrape_interval"),
		      "scrape_interval must be at least 2s where a profile has delta = true, since "
		      "the target profiles for a second less");
	else if (is_given(v) && ns < NS_PER_SEC)
		found(context, ANDIRON_REPORT_ERROR, v,
		      "delta_profiling_duration must be at least 1s");
	else if (is_given(v) && ns > s->interval_ns - NS_PER_SEC)
		found(context, ANDIRON_REPORT_ERROR, v,
		      "delta_profiling_duration must be at least 1s less than scrape_interval");
}

static void check_kinds(const struct settings *s, const struct andiron_value *args,
			finding_fn found, void *context)
{
	const struct andiron_value *profiling = value_get(args, "profiling_config");
	const struct andiron_value *customs = customs_of(profiling);
	const struct andiron_value *clustering = value_get(args, "clustering");

	if (customs && customs->n_items > SETTINGS_MAX_KINDS - sizeof(builtin) / sizeof(*builtin))
		found(context, ANDIRON_REPORT_ERROR, customs,
		      "more than 55 custom profiles are not scraped by one component");
	for (uint64_t i = 0; customs && i < customs->n_items; i++)
		if (!value_str(&customs->items[i], "", STR("")).n)
			found(context, ANDIRON_REPORT_ERROR, &customs->items[i],
			      "profile.custom needs a label, which is the profile's name");
	if (!s->n_kinds)
		found(context, ANDIRON_REPORT_WARNING, profiling,
		      "no profile is enabled, so nothing is scraped");
	if (clustering && value_bool(clustering, "enabled", false))
		found(context, ANDIRON_REPORT_WARNING, clustering,
		      "targets are not shared out among agents: each agent scrapes all that it is "
		      "given");
}

/* --- From arguments --- */

static bool copy_str(struct settings *s, const struct andiron_value *map, const char *name,
		     struct str *ret)
{
	*ret = arena_str(&s->arena, map ? value_str(map, name, STR("")) : STR(""));
	return ret->p;
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct param *)a)->name, ((const struct param *)b)->name);
}

static bool read_params(struct settings *s, const struct andiron_value *args)
{
	const struct andiron_value *map = value_get(args, "params");
	struct param *params;
	size_t n = 0;

	if (!map || map->kind != ANDIRON_VALUE_MAP)
		return true;
	for (uint64_t i = 0; i < map->n_items; i++)
		n += n_values(&map->items[i]);
	params = arena_array(&s->arena, struct param, n + 1);
	if (!params)
		return false;
	for (uint64_t i = 0; i < map->n_items; i++)
		for (size_t k = 0; k < n_values(&map->items[i]); k++) {
			const struct andiron_value *v = value_at(&map->items[i], k);
			struct param *p = &params[s->n_params++];

			if (v->kind == ANDIRON_VALUE_STRING)
				p->value = arena_str(&s->arena, abi_str(v->string));
			p->name = arena_str(&s->arena, abi_str(map->keys[i]));
			if (!p->name.p || (v->kind == ANDIRON_VALUE_STRING && !p->value.p))
				return false;
		}
	qsort(params, n, sizeof(*params), by_name);
	s->params = params;
	return true;
}

/* All but the client's part; false when memory is short. */
static bool read_own(struct settings *s, const struct andiron_value *args)
{
	const struct andiron_value *profiling = value_get(args, "profiling_config");

	s->interval_ns = value_int(args, "scrape_interval", INTERVAL_NS);
	s->timeout_ns = value_int(args, "scrape_timeout", 10 * NS_PER_SEC);
	s->seconds = timed_ns(args, s->interval_ns) / NS_PER_SEC;
	s->max_bytes = (uint64_t)value_int(args, "body_size_limit", 16 << 20);
	if (!copy_str(s, args, "job_name", &s->job_name) ||
	    !copy_str(s, args, "scheme", &s->scheme) ||
	    !copy_str(s, profiling, "path_prefix", &s->path_prefix))
		return false;
	if (!s->scheme.n)
		s->scheme = STR("http");
	return read_params(s, args) && read_builtin(s, profiling) && read_customs(s, profiling);
}

static void each_finding(const struct settings *s, const struct andiron_value *args,
			 finding_fn found, void *context)
{
	check_params(args, found, context);
	check_times(s, args, found, context);
	check_kinds(s, args, found, context);
}

struct reporter {
	const struct andiron_host *host;
	struct andiron_report *report;
};

static void report_finding(void *context, uint32_t severity, const struct andiron_value *at,
			   const char *text)
{
	struct reporter *r = context;

	abi_report(r->host, r->report, severity, at, "%s", text);
}

void settings_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report)
{
	struct settings *s = calloc(1, sizeof(*s));
	struct reporter r = {host, report};

	client_check(host, args, report);
	if (s && read_own(s, args))
		each_finding(s, args, report_finding, &r);
	if (s)
		arena_free(&s->arena);
	free(s);
}

static void keep_first(void *context, uint32_t severity, const struct andiron_value *at,
		       const char *text)
{
	struct error *err = context;

	if (!err->code && severity == ANDIRON_REPORT_ERROR)
		error_set(err, -EINVAL, "%s", text);
}

int settings_new(const struct andiron_value *args, struct settings **ret, struct error *err)
{
	struct settings *s = calloc(1, sizeof(*s));
	struct error first = ERROR_NULL;
	int r = -ENOMEM;

	if (!s || !read_own(s, args))
		goto failed;
	each_finding(s, args, keep_first, &first);
	r = first.code ? error_set(err, first.code, "%s", first.text)
		       : client_config_init(&s->client, args, err);
	if (r < 0)
		goto failed;
	*ret = s;
	return 0;
failed:
	if (s)
		arena_free(&s->arena);
	free(s);
	return r;
}

void settings_free(struct settings *s)
{
	if (!s)
		return;
	client_config_fini(&s->client);
	arena_free(&s->arena);
	free(s);
}
