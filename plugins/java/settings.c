/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to settings. Contract in settings.h. The defaults of profiling_config stand here
 * again, since a block that was not written has no value. */
#include "java/settings.h"

#include "abi/log.h"
#include "abi/value.h"
#include "base/buf.h"
#include "base/clock.h"
#include "java/agent-options.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_FLAGS 128
/* The JVM takes 1,024 bytes for one argument; paths and a time limit come on top. */
#define MAX_AGENT 512
#define MAX_PATH  160

static const struct andiron_value *config_of(const struct andiron_value *args)
{
	static const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	const struct andiron_value *v = value_get(args, "profiling_config");

	return v ? v : &none;
}

static int custom_words(struct buf *out, const struct andiron_value *list, struct error *err)
{
	struct str flags[MAX_FLAGS];
	size_t n = 0;
	int r;

	for (uint64_t i = 0; i < list->n_items && n < MAX_FLAGS; i++)
		flags[n++] = abi_str(list->items[i].string);
	if (n < list->n_items)
		return error_set(err, -EINVAL, "custom_arguments has more than %d words",
				 MAX_FLAGS);
	r = agent_flags(out, flags, n, err);
	return r < 0 ? error_wrap(err, r, "custom_arguments") : 0;
}

static int cpu_words(struct buf *out, const struct andiron_value *config, struct error *err)
{
	int r = agent_event(out, value_str(config, "event", STR("itimer")), err);

	if (value_bool(config, "per_thread", false))
		buf_str_append(out, STR(",threads"));
	buf_printf(out, ",interval=%lld",
		   (long long)(NS_PER_SEC / value_int(config, "sample_rate", 100)));
	return r;
}

static int words(struct buf *out, const struct andiron_value *config, struct error *err)
{
	struct str alloc = value_str(config, "alloc", STR("512k"));
	struct str lock = value_str(config, "lock", STR("10ms"));
	struct str level = value_str(config, "log_level", STR("INFO"));
	bool tlab = value_bool(config, "tlab", false);
	int r = 0;

	if (tlab && !alloc.n)
		return error_set(err, -EINVAL, "tlab needs alloc: say how many bytes a sample is");
	if (value_bool(config, "cpu", true))
		r = cpu_words(out, config, err);
	if (r == 0 && alloc.n)
		r = agent_value(out, "alloc", alloc, "alloc", err);
	if (tlab)
		buf_str_append(out, STR(",tlab"));
	if (r == 0 && lock.n)
		r = agent_value(out, "lock", lock, "lock", err);
	if (value_bool(config, "quiet", false))
		buf_str_append(out, STR(",quiet"));
	if (r == 0 && level.n)
		r = agent_value(out, "loglevel", level, "log_level", err);
	return r;
}

/* Without cpu, alloc and lock async-profiler would take CPU time all the same. */
static int check_any(const struct andiron_value *config, struct error *err)
{
	const struct andiron_value *custom = value_get(config, "custom_arguments");

	if ((custom && custom->n_items) || value_bool(config, "cpu", true) ||
	    value_str(config, "alloc", STR("512k")).n || value_str(config, "lock", STR("10ms")).n)
		return 0;
	return error_set(err, -EINVAL,
			 "profiling_config profiles nothing: set cpu, alloc, lock or "
			 "custom_arguments");
}

static int check_path(struct str path, const char *what, struct error *err)
{
	for (size_t i = 0; i < path.n; i++)
		if ((unsigned char)path.p[i] <= ' ' || path.p[i] == ',' || path.p[i] == '%')
			return error_set(err, -EINVAL,
					 "%s must have no blank, comma or percent sign, at which "
					 "async-profiler takes its settings apart",
					 what);
	if (!path.n || path.p[0] != '/')
		return error_set(err, -EINVAL, "%s must be an absolute path", what);
	if (path.n > MAX_PATH)
		return error_set(err, -EINVAL, "%s must have at most %d bytes", what, MAX_PATH);
	return 0;
}

static int fill(struct settings *s, const struct andiron_value *args, struct error *err)
{
	const struct andiron_value *config = config_of(args);
	const struct andiron_value *custom = value_get(config, "custom_arguments");
	struct buf agent = BUF_NULL;
	int r;

	s->interval_ns = value_int(config, "interval", 60 * NS_PER_SEC);
	s->sample_rate = value_int(config, "sample_rate", 100);
	s->tmp_dir = arena_str(&s->arena, value_str(args, "tmp_dir", STR("/tmp")));
	s->dist = arena_str(&s->arena, value_str(args, "dist", STR("")));
	r = check_path(s->tmp_dir, "tmp_dir", err);
	if (r == 0 && s->dist.n)
		r = check_path(s->dist, "dist", err);
	if (r == 0)
		r = check_any(config, err);
	if (r == 0)
		r = custom && custom->n_items ? custom_words(&agent, custom, err)
					      : words(&agent, config, err);
	if (r == 0 && agent.n > MAX_AGENT)
		r = error_set(err, -EINVAL,
			      "profiling_config is %zu bytes for async-profiler; a JVM takes %d",
			      agent.n, MAX_AGENT);
	s->agent = arena_str(&s->arena, buf_str(&agent));
	if (r == 0 && (agent.failed || !s->agent.p || !s->tmp_dir.p || !s->dist.p))
		r = -ENOMEM;
	buf_free(&agent);
	return r;
}

int settings_new(const struct andiron_value *args, struct settings **ret, struct error *err)
{
	struct settings *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->references = 1;
	r = fill(s, args, err);
	if (r < 0)
		settings_release(s);
	else
		*ret = s;
	return r;
}

struct settings *settings_retain(struct settings *s)
{
	s->references++;
	return s;
}

void settings_release(struct settings *s)
{
	if (!s || --s->references)
		return;
	arena_free(&s->arena);
	free(s);
}

void settings_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report)
{
	struct error err = ERROR_NULL;
	struct settings *s = NULL;

	if (settings_new(args, &s, &err) == -EINVAL)
		abi_report(host, report, ANDIRON_REPORT_ERROR, NULL, "%s", err.text);
	settings_release(s);
}
