/* SPDX-License-Identifier: Apache-2.0 */
/* A session (ebpf/kernel/session.h) without BPF, of this process alone: it makes of each sample of
 * its own events (own-events.h) the two records by which the sampling program reports a stack that
 * it could not walk. Everything behind that is pyroscope.ebpf's engine.
 *
 * There is one process, so what chooses among processes has nothing to do here. */
#include "ebpf/kernel/session.h"

#include "ebpf/kernel/online-cpus.h"
#include "ebpf/unwinding/native-unwind.h"
#include "ebpf/unwinding/runtimes.h"
#include "self/own-events.h"
#include "self/table-memory.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/str.h"
#include "proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
	struct own_events *events; /* NULL: not started */
	struct table_memory memory;
	struct sampler_counters counters[SAMPLER_BUFFERS];
	struct sampler_snapshot snapshot; /* of the sample at hand */
	struct sampler_process process;   /* this one, as it is reported */
	uint64_t n_samples;               /* serial numbers of ids */
	uint32_t buffer;                  /* active */
	uint32_t rate_hz;
	bool news;     /* the process is to be reported, */
	bool reported; /* which was done in this reading */
	bool with_tid;
	bool stopped;
	uint64_t missed, missed_before; /* the latter: by events that are closed */
	session_record_fn fn;
	void *context;
};

_Static_assert(OWN_STACK_BYTES + SAMPLER_SNAPSHOT_PIECE <= SAMPLER_SNAPSHOT_BYTES, "a copy fits");

/* Which register of DWARF stands where in a sample. */
#if defined(__aarch64__)
#define OWN_PC 32u
static uint32_t dwarf_register(uint32_t i)
{
	return i < 32 ? i : UINT32_MAX;
}
#else
/* rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip, and r8 to r15. */
#define OWN_PC 8u
static uint32_t dwarf_register(uint32_t i)
{
	static const uint8_t numbers[] = {0, 3, 2, 1, 4, 5, 6, 7};

	if (i < sizeof(numbers))
		return numbers[i];
	return i == OWN_PC ? UINT32_MAX : i - 1;
}
#endif

/* In a /proc of another PID namespace our id may be another process's. */
static int check_self(int proc)
{
	char text[16];
	ssize_t n = readlinkat(proc, "self", text, sizeof(text));
	uint64_t pid;

	if (n < 0)
		return -errno;
	return str_u64((struct str){text, (size_t)n}, &pid) && pid == (uint64_t)getpid() ? 0
										 : -ESRCH;
}

/* Who this process is, as the kernel side would report it. */
static int identify(struct sampler_process *p, struct error *err)
{
	struct proc_info info = PROC_INFO_NULL;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = proc < 0 ? -errno : check_self(proc);

	if (r == 0)
		r = proc_read(proc, (uint32_t)getpid(), 0, &info);
	if (proc >= 0)
		close(proc);
	if (r != 0) {
		proc_info_free(&info);
		return error_errno(err, r,
				   "this process does not find itself in /proc, which must be "
				   "mounted, and of its own PID namespace");
	}
	p->type = SAMPLER_RECORD_PROCESS;
	p->key.tgid = (uint32_t)getpid();
	p->key.start_ns = info.start_ns;
	p->generation = unwind_generation(info.start_code, info.arg_start, info.start_stack);
	memcpy(p->comm, info.comm, sizeof(p->comm));
	proc_info_free(&info);
	return 0;
}

int session_open(const struct session_options *options, session_record_fn fn, void *context,
		 struct session **ret, struct error *err)
{
	struct session *s = calloc(1, sizeof(*s));
	struct error unheard = ERROR_NULL;
	int r;

	check(options->rate_hz >= 1);
	if (!s)
		return -ENOMEM;
	s->fn = fn;
	s->context = context;
	s->news = true;
	r = identify(&s->process, err ? err : &unheard);
	if (r == 0)
		r = table_memory_init(&s->memory);
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
	own_events_close(s->events);
	table_memory_fini(&s->memory);
	free(s);
}

static void on_mapped(void *context, uint32_t pid)
{
	struct session *s = context;

	s->news |= pid == s->process.key.tgid;
}

static void on_lost(void *context, uint64_t n)
{
	struct session *s = context;

	s->counters[s->buffer].taken += n;
	s->counters[s->buffer].ring_full += n;
	s->news = true; /* it may have been among them */
}

/* Before the first sample that may need it, and once a reading: a process that compiles maps code
 * between any two samples. */
static void report_process(struct session *s)
{
	struct error unheard = ERROR_NULL;

	if (!s->news)
		return;
	s->news = false;
	s->reported = true;
	/* prctl(PR_SET_MM) may have made it another. */
	identify(&s->process, &unheard);
	s->fn(s->context, &s->process, sizeof(s->process));
}

/* The sample itself: no frame is known yet. */
static void send_stack(struct session *s, const struct own_sample *sample, uint64_t id)
{
	struct sampler_stack stack = {
		.type = SAMPLER_RECORD_STACK,
		.buffer = (uint16_t)s->buffer,
		.flags = sampler_stack_exec(s->process.generation),
		.end = sample->stack ? UNWIND_END_NEW : UNWIND_END_NOTHING,
		.id = sample->stack ? id : 0,
		.key = {.process = s->process.key, .tid = s->with_tid ? sample->tid : 0},
	};

	s->fn(s->context, &stack, sizeof(stack));
}

/* The copy begins where the kernel side's would: behind zeros, up to the stack pointer. */
static void send_snapshot(struct session *s, const struct own_sample *sample, uint64_t id)
{
	struct sampler_snapshot *c = &s->snapshot;
	uint64_t skipped;

	memset(c, 0, SAMPLER_SNAPSHOT_HEAD + SAMPLER_SNAPSHOT_PIECE);
	c->type = SAMPLER_RECORD_SNAPSHOT;
	c->buffer = s->buffer;
	c->id = id;
	c->key = s->process.key;
	c->generation = s->process.generation;
	c->pc = sample->regs[OWN_PC];
	c->exact = 1;
	c->end = UNWIND_END_NEW;
	for (uint32_t i = 0; i < OWN_REGS; i++) {
		uint32_t number = dwarf_register(i);

		if (number == UINT32_MAX)
			continue;
		c->regs[number] = sample->regs[i];
		c->known |= 1u << number;
	}
	c->at = sampler_snapshot_start(c->regs[WALK_STACK_POINTER]);
	skipped = c->regs[WALK_STACK_POINTER] - c->at;
	c->n = (uint32_t)(skipped + sample->n_stack);
	check(c->n <= SAMPLER_SNAPSHOT_BYTES);
	memcpy(c->stack + skipped, sample->stack, sample->n_stack);
	s->fn(s->context, c, SAMPLER_SNAPSHOT_HEAD + c->n);
}

static void on_sample(void *context, const struct own_sample *sample)
{
	struct session *s = context;
	uint64_t id = ++s->n_samples;

	/* A child's, before Linux 5.13. */
	if (sample->pid != s->process.key.tgid) {
		s->counters[s->buffer].unselected++;
		return;
	}
	s->counters[s->buffer].taken++;
	if (!s->reported)
		report_process(s);
	send_stack(s, sample, id);
	if (sample->stack && sample->n_stack <= OWN_STACK_BYTES)
		send_snapshot(s, sample, id);
}

static void drain(struct session *s)
{
	const struct own_events_out out = {s, on_sample, on_lost, on_mapped};

	if (!s->events)
		return;
	report_process(s);
	s->reported = false;
	own_events_read(s->events, &out);
	report_process(s);
}

/* It never falls, although what it is made of is not read at once. */
static void count_missed(struct session *s)
{
	uint64_t n = s->events ? s->missed_before + own_events_missed(s->events) : 0;

	s->missed = n > s->missed ? n : s->missed;
}

/* Puts these events in the place of the former. */
static void take_events(struct session *s, struct own_events *fresh)
{
	if (s->events)
		own_events_stop(s->events);
	drain(s);
	count_missed(s);
	s->missed_before = s->missed;
	own_events_close(s->events);
	s->events = fresh;
}

int session_start(struct session *s, uint32_t rate_hz, struct error *err)
{
	struct own_events *fresh;
	int r;

	if (s->stopped && s->rate_hz == rate_hz) { /* others could not take their place */
		r = own_events_start(s->events);
		s->stopped = r != 0;
		return r == 0 ? 0 : error_errno(err, r, "perf events cannot be started again");
	}
	r = own_events_open((uint64_t)NS_PER_SEC / rate_hz, &fresh, err);
	if (r != 0)
		return r;
	r = own_events_start(fresh);
	if (r != 0) {
		own_events_close(fresh);
		return error_errno(err, r, "perf events cannot be started");
	}
	take_events(s, fresh);
	s->stopped = false;
	s->rate_hz = rate_hz;
	return 0;
}

void session_stop(struct session *s)
{
	if (s->events)
		own_events_stop(s->events);
	s->stopped = s->events != NULL;
}

bool session_has_room(const struct session *s)
{
	return true;
}

void session_configure(struct session *s, const struct session_samples *samples)
{
	s->with_tid = samples->with_tid;
}

void session_forget_process(struct session *s, const struct sampler_process_key *key)
{
	s->news = true;
}

int session_fd(const struct session *s)
{
	return s->events ? own_events_fd(s->events) : -1;
}

size_t session_ring_bytes(const struct session *s)
{
	return online_cpus_end() * (size_t)OWN_RING_BYTES;
}

bool session_must_drain(const struct session *s)
{
	return s->events && own_events_half_full(s->events);
}

int session_drain(struct session *s, int64_t until)
{
	drain(s);
	return 0;
}

int session_swap(struct session *s)
{
	uint32_t retired = s->buffer;

	drain(s);
	count_missed(s);
	s->buffer = 1 - retired;
	return (int)retired;
}

uint32_t session_buffer(const struct session *s)
{
	return s->buffer;
}

/* Nearly all that waits in the rings are samples. */
uint64_t session_taken(const struct session *s)
{
	uint64_t n = s->events ? own_events_waiting(s->events) / OWN_SAMPLE_BYTES : 0;

	for (uint32_t i = 0; i < SAMPLER_BUFFERS; i++)
		n += s->counters[i].taken;
	return n;
}

struct sampler_counters session_counters(struct session *s, uint32_t buffer)
{
	struct sampler_counters counters = s->counters[buffer];

	s->counters[buffer] = (struct sampler_counters){0};
	return counters;
}

const struct unwind_kernel *session_memory(const struct session *s)
{
	return &s->memory.kernel;
}

void session_info(const struct session *s, struct session_info *ret)
{
	*ret = (struct session_info){.rate_hz = s->rate_hz, .missed = s->missed};
	if (!s->events)
		return;
	ret->n_cpus = own_events_cpus(s->events);
	ret->map_bytes = own_events_bytes(s->events);
	ret->user_only = !own_events_kernel(s->events);
}

/* No program of the kernel's, and so none of runtimes. */
void session_defer_snapshots(struct session *s)
{
}

int session_walks_fd(const struct session *s)
{
	return -1;
}

int session_programs_fd(const struct session *s)
{
	return -1;
}

void session_load_continuation(struct session *s)
{
}

void session_continue_walks(struct session *s, bool on)
{
}

int session_report_launches(struct session *s)
{
	return 0;
}

void session_watch_program(struct session *s, const struct sampler_process_key *process,
			   uint64_t generation)
{
}

void session_measure(struct session *s, bool on)
{
}

struct runtimes_kernel runtime_programs(struct session *session)
{
	return (struct runtimes_kernel){.context = session};
}

/* All samples are of the one process. */
int session_select(struct session *s, uint32_t tgid, uint32_t root, bool follow)
{
	return 0;
}

uint32_t session_root(struct session *s, uint32_t tgid)
{
	return 0;
}

int session_prune(struct session *s, bool (*keep)(void *context, uint32_t root), void *context)
{
	return 0;
}

int session_judge_cgroup(struct session *s, uint64_t cgroup, bool selected)
{
	return 0;
}

int session_forget_cgroups(struct session *s)
{
	return 0;
}
