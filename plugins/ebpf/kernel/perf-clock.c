/* SPDX-License-Identifier: Apache-2.0 */
/* See perf-clock.h. The program is attached by ioctl and not by a BPF link, which for perf events
 * came only with 5.15. */
#include "ebpf/kernel/perf-clock.h"

#include "ebpf/kernel/online-cpus.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The longest that a start takes: of longer periods only so much is used. */
#define SPREAD_NS (20 * NS_PER_MSEC)

static int open_event(int cpu, uint64_t event, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = event,
		.sample_period = period,
		.exclude_user = event == PERF_COUNT_SW_PAGE_FAULTS, /* the kernel's own only */
		.disabled = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int explain(struct error *err, int code, int cpu)
{
	if (code == -EPERM || code == -EACCES)
		return error_set(err, code,
				 "the kernel does not let this process sample CPU %d: "
				 "CAP_PERFMON is missing (CAP_SYS_ADMIN before 5.8); "
				 "run as root, or give the capability to the container "
				 "or unit",
				 cpu);
	if (code == -EMFILE)
		return error_set(
			err, code,
			"too many open files for one event per CPU; raise the limit (ulimit -n)");
	return error_errno(err, code, "cannot open an event on CPU %d", cpu);
}

struct opening {
	struct perf_clock *events;
	struct error *err;
	uint64_t event, period;
	int program;
	size_t capacity;
};

static int add_cpu(void *context, int cpu)
{
	struct opening *o = context;
	struct perf_clock *e = o->events;
	_cleanup_(closep) int fd = open_event(cpu, o->event, o->period);

	if (fd == -ENODEV) /* went offline between list and call */
		return 0;
	if (fd < 0)
		return explain(o->err, fd, cpu);
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, o->program) != 0)
		return error_errno(o->err, -errno, "cannot attach the sampling program to CPU %d",
				   cpu);
	if (e->n == o->capacity) {
		size_t capacity = o->capacity ? 2 * o->capacity : 16;
		int *fds = realloc(e->fds, capacity * sizeof(*fds));

		if (!fds)
			return -ENOMEM;
		e->fds = fds;
		o->capacity = capacity;
	}
	check(e->n < o->capacity);
	e->fds[e->n++] = take_fd(fd);
	return 0;
}

static void sleep_until(int64_t ns)
{
	struct timespec at = {ns / NS_PER_SEC, ns % NS_PER_SEC};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Starts the clocks one after the other, evenly over a period. They keep that distance for as long
 * as they run. Were they started at once, each tick of a CPU would come some 100 us after that of
 * the one before: just when the reader, woken by what that one had to tell, runs here. Such an
 * agent has seven times its share of the samples, and whom it interrupts a tenth less than theirs.
 */
static int start_all(const struct perf_clock *e, uint64_t period_ns, struct error *err)
{
	int64_t span = period_ns < SPREAD_NS ? (int64_t)period_ns : SPREAD_NS, began = 0;

	for (size_t i = 0; i < e->n; i++) {
		if (i > 0 && span > 0)
			sleep_until(began + span * (int64_t)i / (int64_t)e->n);
		if (ioctl(e->fds[i], PERF_EVENT_IOC_ENABLE, 0) != 0)
			return error_errno(err, -errno, "cannot start the clock of a CPU");
		if (i == 0)
			began = clock_mono();
	}
	return 0;
}

/* `span_ns`: they start one after the other, over so long. */
static int open_all(struct opening o, uint64_t span_ns)
{
	struct perf_clock *e = o.events;
	struct error *err = o.err;
	int r;

	*e = PERF_CLOCK_NULL;
	r = online_cpus_each(add_cpu, &o);
	if (r == -EINVAL && err && err->code == 0)
		error_set(err, r,
			  "the kernel's list of online CPUs "
			  "(/sys/devices/system/cpu/online) cannot be read");
	else if (r == 0 && e->n == 0)
		r = error_set(err, -ENODEV, "no CPU could be sampled");
	if (r == 0)
		r = start_all(e, span_ns, err);
	if (r != 0)
		perf_clock_close(e);
	return r;
}

int perf_clock_open(struct perf_clock *e, int program, uint64_t period_ns, struct error *err)
{
	check(period_ns > 0);
	return open_all((struct opening){e, err, PERF_COUNT_SW_CPU_CLOCK, period_ns, program, 0},
			period_ns);
}

int perf_clock_open_faults(struct perf_clock *e, int program, struct error *err)
{
	return open_all((struct opening){e, err, PERF_COUNT_SW_PAGE_FAULTS, 1, program, 0}, 0);
}

int perf_clock_open_switches(struct perf_clock *e, int program, struct error *err)
{
	return open_all((struct opening){e, err, PERF_COUNT_SW_CONTEXT_SWITCHES, 1, program, 0}, 0);
}

void perf_clock_pause(struct perf_clock *e)
{
	for (size_t i = 0; i < e->n; i++) {
		if (ioctl(e->fds[i], PERF_EVENT_IOC_DISABLE, 0) == 0)
			continue;
		perf_clock_close(e);
		return;
	}
}

/* Each goes on with what was left of its period, so the distance stays without another one. */
int perf_clock_resume(const struct perf_clock *e, struct error *err)
{
	return start_all(e, 0, err);
}

void perf_clock_close(struct perf_clock *e)
{
	for (size_t i = 0; i < e->n; i++) {
		ioctl(e->fds[i], PERF_EVENT_IOC_DISABLE, 0);
		close(e->fds[i]);
	}
	free(e->fds);
	*e = PERF_CLOCK_NULL;
}
