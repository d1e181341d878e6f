/* SPDX-License-Identifier: Apache-2.0 */
/* Words for async-profiler's library. Contract in agent-options.h. */
#include "java/agent-options.h"

#include <errno.h>

enum kind {
	WORD,   /* no value */
	VALUE,  /* as it is */
	PLUSES, /* its commas become pluses */
	SEMIS,  /* its commas become semicolons */
	EVENT,
	OURS,   /* set by the component */
	HELPER, /* needs a process of asprof's */
};

static const struct flag {
	const char *name, *other;
	const char *word;
	enum kind kind;
} flags[] = {
	{"-e", "--event", NULL, EVENT},
	{"-i", "--interval", "interval", VALUE},
	{"-j", "--jstackdepth", "jstackdepth", VALUE},
	{"-t", "--threads", "threads", WORD},
	{"-s", "--simple", "simple", WORD},
	{"-n", "--norm", "norm", WORD},
	{"-g", "--sig", "sig", WORD},
	{"-a", "--ann", "ann", WORD},
	{"-l", "--lib", "lib", WORD},
	{"-I", "--include", "include", VALUE},
	{"-X", "--exclude", "exclude", VALUE},
	{"-L", "--log", "loglevel", VALUE},
	{"-F", "--features", "features", PLUSES},
	{"--filter", NULL, "filter", SEMIS},
	{"--alloc", NULL, "alloc", VALUE},
	{"--nativemem", NULL, "nativemem", VALUE},
	{"--nativelock", NULL, "nativelock", VALUE},
	{"--lock", NULL, "lock", VALUE},
	{"--wall", NULL, "wall", VALUE},
	{"--trace", NULL, "trace", VALUE},
	{"--chunksize", NULL, "chunksize", VALUE},
	{"--chunktime", NULL, "chunktime", VALUE},
	{"--cstack", NULL, "cstack", VALUE},
	{"--signal", NULL, "signal", VALUE},
	{"--clock", NULL, "clock", VALUE},
	{"--begin", NULL, "begin", VALUE},
	{"--end", NULL, "end", VALUE},
	{"--target-cpu", NULL, "target-cpu", VALUE},
	{"--proc", NULL, "proc", VALUE},
	{"--memlimit", NULL, "memlimit", VALUE},
	{"--jfrsync", NULL, "jfrsync", VALUE},
	{"--jfropts", NULL, "jfropts", VALUE},
	{"--ratelimit", NULL, "ratelimit", SEMIS},
	{"--all", NULL, "all", WORD},
	{"--live", NULL, "live", WORD},
	{"--nobatch", NULL, "nobatch", WORD},
	{"--nofree", NULL, "nofree", WORD},
	{"--nostop", NULL, "nostop", WORD},
	{"--record-cpu", NULL, "record-cpu", WORD},
	{"--sched", NULL, "sched", WORD},
	{"--tlab", NULL, "tlab", WORD},
	{"--ttsp", NULL, "ttsp", WORD},
	{"--all-user", NULL, "alluser", WORD},
	{"--total", NULL, "total", WORD},
	{"--samples", NULL, "samples", WORD},
	{"-d", NULL, NULL, OURS},
	{"-f", NULL, NULL, OURS},
	{"-o", NULL, NULL, OURS},
	{"--timeout", NULL, NULL, OURS},
	{"--loop", NULL, NULL, OURS},
	{"--libpath", NULL, NULL, OURS},
	{"--fdtransfer", NULL, NULL, HELPER},
};

static bool is_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	return s.n > 0;
}

static void put_replaced(struct buf *out, struct str value, char comma)
{
	for (size_t i = 0; i < value.n; i++)
		buf_putc(out, value.p[i] == ',' ? comma : value.p[i]);
}

int agent_event(struct buf *out, struct str event, struct error *err)
{
	bool pmu = str_ends(event, STR("/"));

	/* What follows a comma is another word to the library: an event, but no setting. */
	if (!is_text(event) ||
	    (!pmu && str_find(event, ',') < event.n && str_find(event, '=') < event.n))
		return error_set(err, -EINVAL, "\"%.*s\" is no event of async-profiler",
				 STR_FMT(str_first(event, 100)));
	buf_str_append(out, STR(",event="));
	put_replaced(out, event, pmu ? ':' : ',');
	return 0;
}

int agent_value(struct buf *out, const char *word, struct str value, const char *what,
		struct error *err)
{
	if (!is_text(value) || str_find(value, ',') < value.n)
		return error_set(err, -EINVAL,
				 "%s: \"%.*s\" cannot be given to async-profiler, which takes its "
				 "settings apart at commas",
				 what, STR_FMT(str_first(value, 100)));
	buf_printf(out, ",%s=%.*s", word, STR_FMT(value));
	return 0;
}

static const struct flag *find_flag(struct str name)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (str_is(name, flags[i].name) || (flags[i].other && str_is(name, flags[i].other)))
			return &flags[i];
	return NULL;
}

static int put_flag(struct buf *out, const struct flag *f, struct str value, struct error *err)
{
	switch (f->kind) {
	case WORD:
		buf_printf(out, ",%s", f->word);
		return 0;
	case VALUE:
		return agent_value(out, f->word, value, f->name, err);
	case EVENT:
		return agent_event(out, value, err);
	case PLUSES:
	case SEMIS:
		if (!is_text(value))
			return error_set(err, -EINVAL, "%s needs a value", f->name);
		buf_printf(out, ",%s=", f->word);
		put_replaced(out, value, f->kind == PLUSES ? '+' : ';');
		return 0;
	case OURS:
		return error_set(err, -EINVAL,
				 "%s is set by the component, which takes a recording each "
				 "interval; leave it out",
				 f->name);
	case HELPER:
	default:
		return error_set(err, -EINVAL,
				 "%s needs a process of asprof beside the JVM, which is not "
				 "started here; use the event itimer or ctimer, which need no "
				 "privilege",
				 f->name);
	}
}

int agent_flags(struct buf *out, const struct str *list, size_t n, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct flag *f = find_flag(list[i]);
		bool takes = f && f->kind != WORD && f->kind != OURS && f->kind != HELPER;

		if (!f)
			return error_set(err, -EINVAL, "\"%.*s\" is no flag of asprof's `start`",
					 STR_FMT(str_first(list[i], 100)));
		if (takes && i + 1 == n)
			return error_set(err, -EINVAL, "%s needs a value", f->name);
		r = put_flag(out, f, takes ? list[i + 1] : STR_NULL, err);
		i += takes;
	}
	return r;
}
