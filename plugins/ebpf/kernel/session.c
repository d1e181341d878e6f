/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. */
#include "ebpf/kernel/session.h"

#include "ebpf/kernel/bpf-figures.h"
#include "ebpf/kernel/bpf-jit-ranges.h"
#include "ebpf/kernel/online-cpus.h"
#include "ebpf/kernel/perf-clock.h"
#include "ebpf/kernel/bpf-memory.h"
#include "ebpf/kernel/orc-tables.h"
#include "ebpf/kernel/kernel-support.h"
#include "ebpf/kernel/sample-logs.h"
#include "ebpf/kernel/task-work.h"
#include "ebpf/kernel/types-excerpt.h"
#include "ebpf/kernel/launches.h"
#include "ebpf/unwinding/native-unwind.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proc/hierarchy.h"
#include "proc/libbpf-log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "sampler.skel.h"
#pragma GCC diagnostic pop

#define RING_MIN     (1u << 20)
#define LATE_SECONDS 5

struct session {
	struct sampler_bpf *skel;
	struct task_work task_work;
	struct launches *launches; /* or NULL */
	struct ring_buffer *ring;
	size_t ring_bytes, drained; /* by this call */
	int64_t drain_until;
	struct perf_clock events, switches;
	struct sample_logs tables;
	struct bpf_memory memory;
	uint32_t rate_hz, off_cpu_share;
	bool follow, off_cpu, asked_kernel, stopped;
	int stats_fd;
	struct session_info info; /* what does not change */
	session_record_fn fn;
	void *context;
};

static uint32_t power_of_two(uint64_t n, uint32_t min, uint32_t max)
{
	uint32_t p = min;

	while (p < n && p < max)
		p *= 2;
	return p;
}

static void size_maps(struct session *s, const struct session_options *o, uint32_t n_possible)
{
	/* Room for those of an interval that is read so late, where it is affordable. */
	uint64_t samples = (uint64_t)o->rate_hz *
			   ((uint64_t)o->interval_ns / NS_PER_SEC + LATE_SECONDS) *
			   (s->off_cpu ? 2 : 1);
	uint32_t n_online = online_cpus_end();
	/* And for the snapshots of half a second in which all is new. */
	uint64_t snapshots = (uint64_t)o->rate_hz * n_online * sizeof(struct sampler_snapshot) / 2;
	uint32_t ring =
		power_of_two(samples * n_online * 48 + snapshots, RING_MIN, SESSION_RING_MAX_BYTES);
	struct sampler_bpf *skel = s->skel;
	struct sample_logs *t = &s->tables;

	if (n_possible < n_online)
		n_possible = n_online;
	sample_logs_size(t, n_possible, n_online, samples);
	skel->rodata->sampler_log_words = t->n_words;
	skel->rodata->sampler_ring_crowded_bytes = ring / 2;
	bpf_map__set_max_entries(skel->maps.cpus, t->n_cpus);
	bpf_map__set_max_entries(skel->maps.logs, t->n_logs * SAMPLER_BUFFERS);
	bpf_map__set_value_size(skel->maps.logs, (uint32_t)sample_logs_bytes(t));
	bpf_map__set_max_entries(skel->maps.walks, n_possible);
	bpf_map__set_max_entries(skel->maps.ring, ring);
	if (s->off_cpu)
		bpf_map__set_max_entries(skel->maps.waits, SAMPLER_WAITS);
	else /* a hash has room for each CPU, too */
		bpf_map__set_type(skel->maps.waits, BPF_MAP_TYPE_ARRAY);
	s->ring_bytes = ring;
}

static int on_record(void *context, void *data, size_t size)
{
	struct session *s = context;

	s->fn(s->context, data, size);
	s->drained += size;
	if (s->drained >= s->ring_bytes ||
	    (s->drain_until < INT64_MAX && clock_mono() >= s->drain_until))
		return -ECANCELED;
	return 0;
}

static void choose_programs(struct session *s)
{
	struct sampler_bpf *skel = s->skel;
	bool calls;

	s->info.loop = kernel_support_loop();
	calls = !s->info.loop && kernel_support_tail_calls();
	bpf_program__set_autoload(skel->progs.sample, s->info.loop);
	bpf_program__set_autoload(skel->progs.resume, s->info.loop);
	bpf_program__set_autoload(skel->progs.sample_calls, calls);
	bpf_program__set_autoload(skel->progs.resume_calls, calls);
	bpf_program__set_autoload(skel->progs.sample_alone, !s->info.loop && !calls);
	bpf_program__set_autoload(skel->progs.follow_fork, s->follow);
	bpf_program__set_autoload(skel->progs.follow_exit, s->follow);
	bpf_program__set_autoload(skel->progs.switched, s->off_cpu);
	bpf_program__set_autoload(skel->progs.resumed, s->off_cpu);
}

static struct bpf_program *sampling_program(const struct session *s)
{
	struct bpf_program *calls = s->skel->progs.sample_calls;

	if (s->info.loop)
		return s->skel->progs.sample;
	return bpf_program__autoload(calls) ? calls : s->skel->progs.sample_alone;
}

/* NULL: a walk is one program. */
static struct bpf_program *resume_program(const struct session *s)
{
	struct bpf_program *calls = s->skel->progs.resume_calls;

	if (s->info.loop)
		return s->skel->progs.resume;
	return bpf_program__autoload(calls) ? calls : NULL;
}

/* Once it is loaded. */
static struct bpf_program *snapshot_program(const struct session *s)
{
	return bpf_object__find_program_by_name(s->task_work.snapshots, "snapshot");
}

static int set_program(struct session *s, uint32_t slot, const struct bpf_program *program)
{
	int fd = bpf_program__fd(program);

	check(fd >= 0 && slot < ANDIRON_WALK_SLOTS);
	return bpf_map__update_elem(s->skel->maps.programs, &slot, sizeof(slot), &fd, sizeof(fd),
				    BPF_ANY);
}

/* Waits until no program runs that ran when this was called: putting the same map where it is makes
 * the kernel do that, maybe_wait_bpf_programs() in kernel/bpf/syscall.c. */
static int quiesce(void *context)
{
	struct session *s = context;
	int inner = bpf_map__fd(s->skel->maps.nothing);
	uint32_t zero = 0;

	return bpf_map__update_elem(s->skel->maps.barrier, &zero, sizeof(zero), &inner,
				    sizeof(inner), BPF_ANY);
}

/* What is written to from here, once the programs are loaded. */
static int map_memory(struct session *s)
{
	struct sampler_bpf *skel = s->skel;
	struct bpf_memory_maps maps = {
		.slabs = bpf_map__fd(skel->maps.slabs),
		.common = bpf_map__fd(skel->maps.common),
		.quiesce = quiesce,
		.context = s,
	};
	struct bpf_program *resume = resume_program(s);
	int r = resume ? set_program(s, ANDIRON_WALK_RESUME, resume) : 0;

	if (r == 0 && s->off_cpu)
		r = set_program(s, ANDIRON_WALK_SAMPLE, sampling_program(s));
	if (r == 0)
		r = bpf_memory_init(&s->memory, &maps);
	if (r == 0)
		r = sample_logs_map(&s->tables, bpf_map__fd(skel->maps.cpus),
				    bpf_map__fd(skel->maps.logs));
	return r;
}

/* Its options are not on the stack while libbpf loads, which takes 7 KiB of it. */
__attribute__((noinline)) static struct sampler_bpf *open_programs(struct types_excerpt *types)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types_excerpt_open(types));

	return sampler_bpf__open_opts(&options);
}

static int load(struct session *s, const struct session_options *o, struct error *err)
{
	_cleanup_(types_excerpt_close) struct types_excerpt types = {.fd = -1};
	int n_possible = libbpf_num_possible_cpus();
	int r;

	if (n_possible <= 0)
		return error_set(err, -ENODEV, "the kernel does not say how many CPUs it has");
	libbpf_log_quiet();
	s->skel = open_programs(&types);
	if (!s->skel)
		return kernel_support_explain(err, -errno);
	size_maps(s, o, (uint32_t)n_possible);
	s->skel->rodata->sampler_hierarchy = proc_hierarchy_here();
	s->skel->rodata->sampler_pc_mask = walk_pc_mask();
	choose_programs(s);
	s->skel->rodata->sampler_walks_kernel = orc_may_be_known();
	if (s->skel->rodata->sampler_walks_kernel)
		bpf_map__set_max_entries(s->skel->maps.kernel_rows, KERNEL_SETS);
	r = types_excerpt_fill(&types, s->skel->obj);
	if (r == 0)
		r = sampler_bpf__load(s->skel);
	if (r != 0)
		return kernel_support_explain(err, r);
	r = map_memory(s);
	if (r != 0)
		return error_errno(err, r, "cannot map the sampler's tables");
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), on_record, s, NULL);
	if (!s->ring)
		return error_errno(err, -errno, "cannot map the sampler's ring");
	/* Of events there are none yet: these are tracepoints, if any. */
	r = sampler_bpf__attach(s->skel);
	return r == 0 ? 0 : error_errno(err, r, "cannot attach to the kernel's tracepoints");
}

int session_open(const struct session_options *options, session_record_fn fn, void *context,
		 struct session **ret, struct error *err)
{
	struct session *s;
	int r = kernel_support_check(err);

	if (r != 0)
		return r;
	check(options->rate_hz >= 1 && options->interval_ns > 0);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->stats_fd = -1;
	s->follow = options->follow;
	s->off_cpu = options->off_cpu;
	s->fn = fn;
	s->context = context;
	r = load(s, options, err);
	if (r != 0) {
		session_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	perf_clock_close(&s->events);
	perf_clock_close(&s->switches);
	ring_buffer__free(s->ring);
	sample_logs_unmap(&s->tables);
	bpf_memory_fini(&s->memory);
	task_work_close(&s->task_work);
	launches_close(s->launches);
	if (s->skel)
		sampler_bpf__destroy(s->skel);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	free(s);
}

static int open_events(struct session *s, uint32_t rate_hz, struct error *err)
{
	struct perf_clock fresh = PERF_CLOCK_NULL, switches = PERF_CLOCK_NULL;
	int r;

	r = perf_clock_open(&fresh, bpf_program__fd(sampling_program(s)),
			    (uint64_t)NS_PER_SEC / rate_hz, err);
	if (r == 0 && s->off_cpu)
		r = perf_clock_open_switches(&switches, bpf_program__fd(s->skel->progs.switched),
					     err);
	if (r != 0) {
		perf_clock_close(&fresh);
		return r;
	}
	perf_clock_close(&s->events);
	perf_clock_close(&s->switches);
	s->events = fresh;
	s->switches = switches;
	s->rate_hz = rate_hz;
	return 0;
}

int session_start(struct session *s, uint32_t rate_hz, struct error *err)
{
	int r;

	check(rate_hz >= 1);
	/* Another rate would need other clocks. */
	if (s->stopped && s->rate_hz == rate_hz && s->events.n > 0 &&
	    (!s->off_cpu || s->switches.n > 0)) {
		r = perf_clock_resume(&s->events, err);
		if (r == 0)
			r = perf_clock_resume(&s->switches, err);
	} else {
		r = open_events(s, rate_hz, err);
	}
	if (r != 0)
		return r;
	s->skel->bss->sampler_config.off_cpu = s->off_cpu_share;
	s->stopped = false;
	return 0;
}

bool session_has_room(const struct session *s)
{
	return online_cpus_end() <= s->tables.n_logs;
}

void session_defer_snapshots(struct session *s)
{
	task_work_load_snapshots(&s->task_work, s->skel->obj);
	if (!s->task_work.snapshots)
		return;
	bpf_jit_ranges_add(&s->skel->bss->sampler_jit, s->task_work.snapshots);
	s->info.defer_snapshots = set_program(s, ANDIRON_WALK_SNAPSHOT, snapshot_program(s)) == 0;
}

void session_stop(struct session *s)
{
	perf_clock_pause(&s->events);
	perf_clock_pause(&s->switches);
	s->skel->bss->sampler_config.off_cpu = 0; /* waits that end later are not taken */
	s->stopped = true;
}

void session_configure(struct session *s, const struct session_samples *samples)
{
	volatile struct sampler_config *config = &s->skel->bss->sampler_config;

	check(samples->mode <= SAMPLER_CGROUPS);
	config->with_comm = samples->with_comm;
	config->with_tid = samples->with_tid;
	config->with_kernel = samples->with_kernel;
	s->off_cpu_share = samples->off_cpu;
	config->off_cpu = s->stopped ? 0 : s->off_cpu_share;
	config->mode = samples->mode;
	if (s->launches)
		launches_configure(s->launches, samples->mode);
}

int session_report_launches(struct session *s)
{
	int r = 0;

	if (!s->launches)
		r = launches_open(s->skel->obj, s->skel->rodata->sampler_hierarchy, &s->launches);
	if (r == 0)
		launches_configure(s->launches, s->skel->bss->sampler_config.mode);
	return r;
}

void session_watch_program(struct session *s, const struct sampler_process_key *process,
			   uint64_t generation)
{
	if (s->launches)
		launches_watch(s->launches, process, generation);
}

int session_select(struct session *s, uint32_t tgid, uint32_t root, bool follow)
{
	struct sampler_selected selected = {root, follow};

	check(tgid != 0 && root != 0);

	return bpf_map__update_elem(s->skel->maps.selected, &tgid, sizeof(tgid), &selected,
				    sizeof(selected), BPF_ANY);
}

uint32_t session_root(struct session *s, uint32_t tgid)
{
	struct sampler_selected selected = {0};

	if (bpf_map__lookup_elem(s->skel->maps.selected, &tgid, sizeof(tgid), &selected,
				 sizeof(selected), 0) != 0)
		return 0;
	return selected.root;
}

int session_prune(struct session *s, bool (*keep)(void *context, uint32_t root), void *context)
{
	struct bpf_map *map = s->skel->maps.selected;
	struct sampler_selected selected;
	uint32_t tgid, next;
	bool more = bpf_map__get_next_key(map, NULL, &next, sizeof(next)) == 0;
	int r = 0;

	/* Bounded: forks may add meanwhile, and a removed element starts the walk over. */
	for (uint32_t i = 0; more && r == 0 && i < 4 * bpf_map__max_entries(map); i++) {
		tgid = next;
		more = bpf_map__get_next_key(map, &tgid, &next, sizeof(next)) == 0;
		if (bpf_map__lookup_elem(map, &tgid, sizeof(tgid), &selected, sizeof(selected),
					 0) == 0 &&
		    !keep(context, selected.root))
			r = bpf_map__delete_elem(map, &tgid, sizeof(tgid), 0);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

int session_judge_cgroup(struct session *s, uint64_t cgroup, bool selected)
{
	uint32_t outcome = selected;

	return bpf_map__update_elem(s->skel->maps.cgroups, &cgroup, sizeof(cgroup), &outcome,
				    sizeof(outcome), BPF_ANY);
}

int session_forget_cgroups(struct session *s)
{
	struct bpf_map *map = s->skel->maps.cgroups;
	uint64_t id;

	while (bpf_map__get_next_key(map, NULL, &id, sizeof(id)) == 0) {
		int r = bpf_map__delete_elem(map, &id, sizeof(id), 0);

		if (r != 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

void session_forget_process(struct session *s, const struct sampler_process_key *key)
{
	bpf_map__delete_elem(s->skel->maps.processes, key, sizeof(*key), 0);
	s->skel->bss->sampler_config.epoch++; /* what CPUs remember is void */
}

int session_fd(const struct session *s)
{
	return bpf_map__fd(s->skel->maps.ring);
}

bool session_must_drain(const struct session *s)
{
	return false;
}

size_t session_ring_bytes(const struct session *s)
{
	return s->ring_bytes;
}

int session_drain(struct session *s, int64_t until)
{
	int r;

	/* Where records come as fast as they are taken, libbpf would go on for ever. */
	s->drained = 0;
	s->drain_until = until;
	r = ring_buffer__consume(s->ring);
	return r < 0 && r != -ECANCELED ? r : 0;
}

int session_swap(struct session *s)
{
	volatile struct sampler_config *config = &s->skel->bss->sampler_config;
	uint32_t retired = config->active;
	int r;

	check(retired < SAMPLER_BUFFERS);
	r = sample_logs_open(&s->tables);
	if (r != 0)
		return r;
	config->active = 1 - retired;
	r = quiesce(s);
	if (r == 0) {
		r = session_drain(s, INT64_MAX);
		sample_logs_stacks(&s->tables, retired, s->fn, s->context);
	}
	sample_logs_close(&s->tables);
	/* Now, since it takes longer than the start may. */
	if (!s->asked_kernel && s->skel->rodata->sampler_walks_kernel)
		orc_show(&s->skel->bss->sampler_kernel);
	s->asked_kernel = true;
	return r < 0 ? r : (int)retired;
}

const struct unwind_kernel *session_memory(const struct session *s)
{
	return &s->memory.kernel;
}

int session_walks_fd(const struct session *s)
{
	return bpf_map__fd(s->skel->maps.walks);
}

int session_programs_fd(const struct session *s)
{
	return resume_program(s) ? bpf_map__fd(s->skel->maps.programs) : -1;
}

void session_load_continuation(struct session *s)
{
	struct task_work *t = &s->task_work;

	if (!s->info.loop || !s->info.defer_snapshots || t->continuation)
		return;
	task_work_load_continuation(t, s->skel->obj);
	if (t->continuation)
		bpf_jit_ranges_add(&s->skel->bss->sampler_jit, t->continuation);
}

void session_continue_walks(struct session *s, bool on)
{
	struct task_work *t = &s->task_work;

	s->skel->bss->sampler_config.continuation = t->continuation &&
						    task_work_take_faults(t, on) == 0 && on;
}

uint32_t session_buffer(const struct session *s)
{
	const volatile struct sampler_config *config = &s->skel->bss->sampler_config;

	return config->active;
}

uint64_t session_taken(const struct session *s)
{
	return sample_logs_taken(&s->tables);
}

struct sampler_counters session_counters(struct session *s, uint32_t buffer)
{
	return sample_logs_counters(&s->tables, buffer);
}

void session_info(const struct session *s, struct session_info *ret)
{
	struct session_info info = {.n_cpus = (uint32_t)s->events.n,
				    .rate_hz = s->rate_hz,
				    .loop = s->info.loop,
				    .defer_snapshots = s->info.defer_snapshots};
	struct program_figures samples = {0}, others = {0};
	struct bpf_map *map;

	bpf_object__for_each_map (map, s->skel->obj)
		info.map_bytes += map_memory_bytes(bpf_map__fd(map));
	program_figures_add(&samples, sampling_program(s));
	program_figures_add(&others, resume_program(s));
	program_figures_add(&others, s->skel->progs.switched);
	program_figures_add(&others, s->skel->progs.resumed);
	program_figures_add(&others, s->skel->progs.follow_fork);
	program_figures_add(&others, s->skel->progs.follow_exit);
	if (s->task_work.snapshots) {
		info.map_bytes += map_memory_bytes(bpf_object__find_map_fd_by_name(
			s->task_work.snapshots, "deferred_snapshot"));
		program_figures_add(&others, snapshot_program(s));
	}
	info.verified_insns = samples.verified_insns + others.verified_insns;
	info.run_ns = samples.run_ns;
	info.runs = samples.runs;
	info.missed = samples.missed;
	if (s->launches)
		info.verified_insns += launches_verified(s->launches);
	*ret = info;
}

void session_measure(struct session *s, bool on)
{
	if (on && s->stats_fd < 0)
		s->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (!on && s->stats_fd >= 0) {
		close(s->stats_fd);
		s->stats_fd = -1;
	}
}
