/* SPDX-License-Identifier: Apache-2.0 */
/* How the engine is loaded, and loaded anew: programs, maps, the store of unwind tables and the
 * runtimes. A change that needs other programs or maps keeps the former session until the new one
 * samples, so a change that fails costs no samples but those of the attempt. */
#include "ebpf/engine-state.h"

#include "ebpf/kernel/sample-logs.h"
#include "ebpf/targets/sampling-filter.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>

/* All memory, kernel maps counted; and our own part, beside tables and what waits. */
#define BUDGET_BYTES ((uint64_t)128 << 20)
#define OWN_BYTES    ((uint64_t)16 << 20)
#define KERNEL_BYTES (SESSION_RING_MAX_BYTES + SAMPLE_LOGS_MAX_BYTES)
/* On the largest machines, too. */
_Static_assert(BUDGET_BYTES - OWN_BYTES - INTAKE_BYTES_MAX - KERNEL_BYTES >= 32 << 20, "no room");

/* What load has made, in part or whole; nothing was read of it. */
static void discard(struct engine *e)
{
	engine_drop_unread(e);
	unwinder_free(e->unwinder);
	e->intake.unwinder = e->unwinder = NULL;
	session_close(e->session);
	e->intake.session = e->session = NULL;
}

static void unload(struct engine *e)
{
	intake_clear(&e->intake);
	discard(e);
	for (size_t i = 0; i < SAMPLER_BUFFERS; i++)
		sample_table_clear(&e->stacks[i]);
	/* The next store knows of nobody, and the next runtimes of no claim. */
	vec_each (&e->processes.all, p) {
		(*p)->stored = NULL;
		(*p)->runtimes = (struct process_runtimes){0};
		mapset_forget_claims((*p)->maps);
	}
	mapped_files_forget_runtimes(e->files);
}

/* For two seconds' snapshots. */
static size_t intake_bytes_of(const struct session *s)
{
	size_t bytes = 4 * session_ring_bytes(s);

	return bytes < INTAKE_BYTES_MAX ? bytes : INTAKE_BYTES_MAX;
}

/* What the tables may take: of all that the agent may have, what its other maps, those that come
 * yet, and its own memory leave. */
static uint64_t unwind_budget(const struct session_info *info, size_t intake)
{
	uint64_t others = info->map_bytes + SAMPLER_DEFERRED_BYTES + OWN_BYTES + intake;

	return others < BUDGET_BYTES ? BUDGET_BYTES - others : 0;
}

static bool add_runtimes(struct engine *e)
{
	const struct runtimes_kernel kernel = runtime_programs(e->session);
	const struct runtimes_out out = {e->out.context, e->out.log};
	struct runtimes *t = NULL;

	if (e->options.n_runtimes == 0)
		return true;
	t = runtimes_new(&kernel, e->options.runtimes, e->options.n_runtimes, &out);
	if (!t)
		return false;
	unwinder_add_runtimes(e->unwinder, t);
	return true;
}

static int load(struct engine *e, struct error *err)
{
	struct session_options options = {
		.rate_hz = e->options.rate_hz,
		.interval_ns = e->options.interval_ns,
		.follow = e->options.follow,
		.off_cpu = e->options.off_cpu != 0,
	};
	int r;

	check(!e->session && !e->unwinder);
	r = session_open(&options, intake_record, &e->intake, &e->session, err);

	if (r != 0)
		return r;
	session_info(e->session, &e->stats.session);
	e->intake.bytes_max = intake_bytes_of(e->session);
	e->unwinder = unwinder_new(session_memory(e->session), &e->objects,
				   unwind_budget(&e->stats.session, e->intake.bytes_max));
	if (!e->unwinder || !add_runtimes(e)) {
		discard(e);
		return -ENOMEM;
	}
	e->intake.session = e->session;
	e->intake.unwinder = e->unwinder;
	r = engine_set_filter(e, err);
	session_measure(e->session, true);
	/* The programs are new, and so are their figures. */
	e->missed = e->run_ns = e->runs = 0;
	e->start_ns = clock_real();
	if (r == 0)
		r = session_start(e->session, e->options.rate_hz, err);
	if (r != 0) {
		discard(e);
		return r;
	}
	session_defer_snapshots(e->session);
	session_info(e->session, &e->stats.session);
	e->intake.defer_snapshots = e->stats.session.defer_snapshots;
	return 0;
}

int engine_start(struct engine *e, struct error *err)
{
	size_t n;

	matcher_all(e->matcher, &n);
	if (e->session || (e->options.lazy && n == 0 && e->options.targets_only))
		return 0;
	return load(e, err);
}

/* What load makes, and unload frees. */
struct loaded {
	struct session *session;
	struct unwinder *unwinder;
	struct session_info info;
	uint64_t run_ns, runs, missed;
};

static struct loaded swap_loaded(struct engine *e, struct loaded next)
{
	struct loaded former = {e->session, e->unwinder, e->stats.session,
				e->run_ns,  e->runs,     e->missed};

	check(!next.session == !next.unwinder);
	e->session = e->intake.session = next.session;
	e->unwinder = e->intake.unwinder = next.unwinder;
	e->stats.session = next.info;
	e->intake.defer_snapshots = next.info.defer_snapshots;
	e->run_ns = next.run_ns;
	e->runs = next.runs;
	e->missed = next.missed;
	return former;
}

/* Loads programs and maps anew, as the options are now: maps are sized, and programs chosen, at
 * load. The former session is kept until the new one samples, and samples on if it does not. */
static int reload(struct engine *e, uint32_t former_hz, struct error *err)
{
	size_t intake_bytes = e->intake.bytes_max;
	struct loaded former, fresh;
	struct error again = ERROR_NULL;
	int r;

	engine_finish(e);
	e->finished = false;
	former = swap_loaded(e, (struct loaded){0});
	r = load(e, err);
	fresh = swap_loaded(e, former);
	if (r == 0) {
		unload(e);
		swap_loaded(e, fresh);
		e->intake.bytes_max = intake_bytes_of(e->session);
		return 0;
	}
	check(!fresh.session);
	e->intake.bytes_max = intake_bytes;
	if (session_start(e->session, former_hz, &again) != 0) {
		engine_say(e, ANDIRON_LOG_ERROR, "sampling has stopped: %s", again.text);
		unload(e);
	}
	return r;
}

int engine_follow_cpus(struct engine *e, struct error *err)
{
	int r;

	if (!e->session || e->finished)
		return 0;
	if (session_has_room(e->session))
		r = session_start(e->session, e->options.rate_hz, err);
	else
		r = reload(e, e->options.rate_hz, err);
	if (r == 0)
		session_info(e->session, &e->stats.session);
	return r;
}

static bool needs_reload(const struct ebpf_options *next, const struct ebpf_options *now)
{
	return next->rate_hz != now->rate_hz || next->interval_ns > now->interval_ns ||
	       next->follow != now->follow || (next->off_cpu != 0) != (now->off_cpu != 0) ||
	       !ebpf_options_same_runtimes(next, now);
}

static int set_default(struct engine *e, const struct ebpf_options *options)
{
	return matcher_set_default(e->matcher, !options->targets_only, options->default_target,
				   options->n_default_target);
}

/* Says what became of options that could not be taken over. */
static void explain_return(const struct engine *e, uint32_t wanted_hz, int r, struct error *err)
{
	struct error cause = *err;

	if (cause.code == 0)
		error_errno(&cause, r, "the sampler cannot be loaded");
	if (e->session)
		error_set(err, r,
			  "cannot take over the new options (sample_rate %u): "
			  "%s. Sampling goes on with those before (sample_rate "
			  "%u); remove the cause, then reload the configuration",
			  wanted_hz, cause.text, e->options.rate_hz);
	else
		error_set(err, r,
			  "cannot take over the new options (sample_rate %u): %s. Sampling has "
			  "stopped; remove the cause, then reload the configuration",
			  wanted_hz, cause.text);
}

int engine_reconfigure(struct engine *e, struct ebpf_options *options, struct error *err)
{
	struct ebpf_options former = e->options;
	int r = set_default(e, options);

	if (r != 0) {
		ebpf_options_fini(options);
		return r;
	}
	/* Under the options that it was sampled under. */
	if (e->session && needs_reload(options, &former))
		engine_finish(e);
	else if (e->session)
		engine_collect(e);
	e->options = *options;
	if (e->session && needs_reload(options, &former))
		r = reload(e, former.rate_hz, err);
	if (r != 0) {
		e->options = former;
		set_default(e, &e->options);
		engine_retarget(e, NULL);
		explain_return(e, options->rate_hz, r, err);
		ebpf_options_fini(options);
		return r;
	}
	ebpf_options_fini(&former);
	return engine_retarget(e, err);
}
