/* SPDX-License-Identifier: Apache-2.0 */
/* Own events opened, started and stopped. See own-events.h. */
#include "self/own-events-state.h"

#include "ebpf/kernel/online-cpus.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The least that a ring may have: room for one sample. */
#define RING_BYTES_MIN (32u << 10)
#define CPUS_GONE_MAX  8 /* while they are opened */
#define ROUNDS_MAX     4

static int open_event(const struct own_events *e, uint32_t thread, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = e->period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = OWN_REGS_MASK,
		.sample_stack_user = OWN_STACK_BYTES,
		.inherit = 1,
		.inherit_thread = e->threads_only,
		.exclude_kernel = !e->kernel,
		.exclude_hv = 1,
		.read_format = e->tells_lost ? PERF_FORMAT_LOST : 0,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 1, /* half a ring */
		.disabled = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, (pid_t)thread, (int)cpu, -1,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* The first event finds out what the kernel allows. */
static int try_event(struct own_events *e, uint32_t thread, uint32_t cpu)
{
	int fd = open_event(e, thread, cpu);

	if (e->events.n > 0)
		return fd;
	if (fd == -EINVAL && e->tells_lost) {
		e->tells_lost = false;
		fd = open_event(e, thread, cpu);
	}
	if (fd == -EINVAL && e->threads_only) {
		e->threads_only = false;
		fd = open_event(e, thread, cpu);
	}
	if (fd == -EACCES && e->kernel) {
		e->kernel = false; /* kernel.perf_event_paranoid is 2 */
		fd = open_event(e, thread, cpu);
	}
	return fd;
}

static int explain(struct error *err, int code)
{
	if (code == -EPERM || code == -EACCES || code == -ENOSYS)
		return error_set(err, code,
				 "the kernel gives this process no perf events: "
				 "kernel.perf_event_paranoid is above 2, or a filter of system "
				 "calls (a container's, or the one of `andiron run`) refuses "
				 "perf_event_open; set the former to 2, allow the call, and run "
				 "this in a program that loads libandiron");
	return error_errno(err, code, "cannot open a perf event");
}

int own_events_wait_for(const struct own_events *e, int fd, uint64_t ring)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = ring};

	return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* A ring on the first event of a CPU. */
static int add_ring(struct own_events *e, int fd)
{
	void *p = mmap(NULL, e->page + e->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ring ring = {.head = p, .fd = fd};

	if (p == MAP_FAILED)
		return -errno;
	ring.data = (uint8_t *)p + e->page;
	if (!vec_push(&e->rings, ring)) {
		munmap(p, e->page + e->ring_bytes);
		return -ENOMEM;
	}
	return own_events_wait_for(e, fd, e->rings.n - 1);
}

/* The event of a thread on a CPU. -ENOBUFS: its ring could not be mapped. */
static int add_event(struct own_events *e, uint32_t thread, uint32_t cpu, struct error *err)
{
	struct event event = {try_event(e, thread, e->cpus.p[cpu]), cpu};
	int r;

	if (event.fd == -ESRCH) /* it has ended */
		return 0;
	if (event.fd == -ENODEV) /* the CPU has gone offline */
		return -ENODEV;
	if (event.fd < 0)
		return explain(err, event.fd);
	if (!vec_push(&e->events, event)) {
		close(event.fd);
		return -ENOMEM;
	}
	if (cpu < e->rings.n) {
		r = ioctl(event.fd, PERF_EVENT_IOC_SET_OUTPUT, e->rings.p[cpu].fd);
		return r == 0 ? 0 : error_errno(err, -errno, "perf events cannot share a ring");
	}
	check(cpu == e->rings.n);
	r = add_ring(e, event.fd);
	if (r == -EPERM || r == -ENOMEM || r == -EAGAIN)
		return -ENOBUFS;
	return r == 0 ? 0 : error_errno(err, r, "a perf event's ring cannot be mapped");
}

/* A forked child may keep descriptors of them: what is not ended would go on. */
static void drop_events(struct own_events *e)
{
	own_events_stop(e);
	vec_each (&e->rings, r)
		if (r->fd >= 0)
			epoll_ctl(e->epoll, EPOLL_CTL_DEL, r->fd, NULL);
	vec_each (&e->rings, r)
		munmap(r->head, e->page + e->ring_bytes);
	vec_each (&e->events, event)
		close(event->fd);
	e->rings.n = 0;
	e->events.n = 0;
}

static int add_events(struct own_events *e, struct error *err)
{
	for (size_t t = 0; t < e->threads.n; t++)
		for (uint32_t cpu = 0; cpu < e->cpus.n; cpu++) {
			int r = add_event(e, e->threads.p[t], cpu, err);

			if (r != 0)
				return r;
			if (e->rings.n == cpu) /* the thread has ended */
				break;
		}
	return e->events.n > 0 ? 0 : -ESRCH;
}

static int add_cpu(void *context, int cpu)
{
	struct own_events *e = context;

	return vec_push(&e->cpus, (uint32_t)cpu) ? 0 : -ENOMEM;
}

static int list_cpus(struct own_events *e)
{
	e->cpus.n = 0;
	return online_cpus_each(add_cpu, e);
}

/* With rings as large as this user may lock for all CPUs. */
static int add_all(struct own_events *e, struct error *err)
{
	int r, n_gone = 0;

	while ((r = add_events(e, err)) == -ENOBUFS || r == -ENODEV) {
		drop_events(e);
		if (r == -ENODEV && (n_gone++ == CPUS_GONE_MAX || list_cpus(e) != 0))
			return r;
		if (r == -ENODEV)
			continue;
		if (e->ring_bytes <= RING_BYTES_MIN || e->ring_bytes <= e->page)
			return error_set(err, -EPERM,
					 "the kernel locks no more memory for perf events of this "
					 "user, %zu KiB for each of %zu CPUs; raise "
					 "kernel.perf_event_mlock_kb or the limit (ulimit -l)",
					 (e->page + e->ring_bytes) >> 10, e->cpus.n);
		e->ring_bytes /= 2;
	}
	return r;
}

static bool is_listed(const struct own_events *e, uint32_t thread)
{
	vec_each (&e->threads, t)
		if (*t == thread)
			return true;
	return false;
}

/* Adds the threads that there are; how many are new, or a negative errno. */
static int list_threads(struct own_events *e)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t thread;
	int n = 0;

	if (!dir)
		return -errno;
	while (n >= 0 && (entry = readdir(dir))) {
		if (!str_u64(str_of(entry->d_name), &thread) || is_listed(e, (uint32_t)thread))
			continue;
		n = vec_push(&e->threads, (uint32_t)thread) ? n + 1 : -ENOMEM;
	}
	closedir(dir);
	return n;
}

/* The program's own files come first; and there are two sets during a reload. */
#define DESCRIPTORS 4
static int check_descriptors(const struct own_events *e, struct error *err)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	size_t needed = e->threads.n * e->cpus.n;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (needed <= limit.rlim_cur / DESCRIPTORS)
		return 0;
	return error_set(err, -EMFILE,
			 "%zu threads on %zu CPUs take %zu open files, which is more than a "
			 "quarter of the %llu that this process may have; raise the limit "
			 "(ulimit -n)",
			 e->threads.n, e->cpus.n, needed, (unsigned long long)limit.rlim_cur);
}

/* All threads are listed before the first event is opened, since those that begin after it inherit
 * some: where any has, it is done again, a few times. One of the last may be sampled in part, or
 * not at all. */
static int open_threads(struct own_events *e, struct error *err)
{
	int r = 0, n = list_threads(e);

	for (int i = 0; i < ROUNDS_MAX && n > 0 && r == 0; i++) {
		drop_events(e);
		r = check_descriptors(e, err);
		if (r == 0)
			r = add_all(e, err);
		if (r == 0)
			n = list_threads(e);
	}
	return n < 0 ? n : r;
}

static int open_all(struct own_events *e, struct error *err)
{
	int r;

	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	e->begun = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	e->record = malloc(RECORD_BYTES);
	if (!e->record)
		return -ENOMEM;
	if (e->epoll < 0 || e->begun < 0)
		return error_errno(err, -errno, "cannot wait for perf events");
	r = own_events_wait_for(e, e->begun, UINT64_MAX);
	if (r == 0)
		r = list_cpus(e);
	if (r == 0)
		r = open_threads(e, err);
	if (r != 0 && err->code == 0)
		error_errno(err, r, "the threads of this process cannot be sampled");
	return r;
}

int own_events_open(uint64_t period_ns, struct own_events **ret, struct error *err)
{
	struct own_events *e = calloc(1, sizeof(*e));
	struct error unheard = ERROR_NULL;
	int r;

	if (!e)
		return -ENOMEM;
	e->epoll = e->begun = -1;
	e->period_ns = period_ns;
	e->kernel = e->threads_only = e->tells_lost = true;
	e->page = (size_t)sysconf(_SC_PAGESIZE);
	e->ring_bytes = OWN_RING_BYTES;
	r = open_all(e, err ? err : &unheard);
	if (r != 0) {
		own_events_close(e);
		return r;
	}
	*ret = e;
	return 0;
}

int own_events_start(struct own_events *e)
{
	e->stopped = false;
	vec_each (&e->events, event)
		if (ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0) != 0)
			return -errno;
	return 0;
}

void own_events_stop(struct own_events *e)
{
	vec_each (&e->events, event)
		ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0);
	e->stopped = true;
}

void own_events_close(struct own_events *e)
{
	if (!e)
		return;
	drop_events(e);
	vec_free(&e->rings);
	vec_free(&e->events);
	vec_free(&e->cpus);
	vec_free(&e->threads);
	closep(&e->epoll);
	closep(&e->begun);
	free(e->record);
	free(e);
}
