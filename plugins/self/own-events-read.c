/* SPDX-License-Identifier: Apache-2.0 */
/* What own events have written, and counted. See own-events.h. */
#include "self/own-events-state.h"

#include "base/check.h"
#include "base/str.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Words of a record that are still there; *rest moves behind them. NULL: there are not so many. */
static const uint64_t *words(struct str *rest, uint64_t n)
{
	const void *p = rest->p;

	if (n > rest->n / sizeof(uint64_t))
		return NULL;
	*rest = str_skip(*rest, n * sizeof(uint64_t));
	return p;
}

static uint32_t pid_of(const uint64_t *ids)
{
	uint32_t pid;

	memcpy(&pid, ids, sizeof(pid));
	return pid;
}

/* PERF_SAMPLE_TID, PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER. */
static void read_sample(struct own_events *e, struct str rest, const struct own_events_out *out)
{
	const uint64_t *ids = words(&rest, 1), *abi = words(&rest, 1), *size;
	struct own_sample sample = {0};

	if (!ids || !abi)
		return;
	sample.pid = pid_of(ids);
	memcpy(&sample.tid, (const uint8_t *)ids + sizeof(sample.pid), sizeof(sample.tid));
	if (*abi == PERF_SAMPLE_REGS_ABI_64)
		sample.regs = words(&rest, OWN_REGS);
	size = words(&rest, 1);
	if (sample.regs && size && *size > 0) {
		const uint64_t *stack = words(&rest, *size / sizeof(uint64_t));
		const uint64_t *used = words(&rest, 1);

		if (stack && used && *used <= *size) {
			sample.stack = (const void *)stack;
			sample.n_stack = *used;
		}
	}
	e->n_samples++;
	out->sample(out->context, &sample);
}

static void tell_lost(struct own_events *e, uint64_t n, const struct own_events_out *out)
{
	e->n_lost += n;
	if (n > 0)
		out->lost(out->context, n);
}

/* Of a record. */
static void take_lost(struct own_events *e, uint64_t n, const struct own_events_out *out)
{
	uint64_t told = n < e->n_ahead ? n : e->n_ahead;

	e->n_ahead -= told;
	tell_lost(e, n - told, out);
}

static void read_record(struct own_events *e, const struct perf_event_header *head,
			const struct own_events_out *out)
{
	struct str rest = {(const char *)(head + 1), head->size - sizeof(*head)};
	const uint64_t *body;

	switch (head->type) {
	case PERF_RECORD_SAMPLE:
		read_sample(e, rest, out);
		break;
	case PERF_RECORD_LOST:
		body = words(&rest, 2); /* id, lost */
		if (body)
			take_lost(e, body[1], out);
		break;
	case PERF_RECORD_MMAP2:
		body = words(&rest, 1); /* pid, tid */
		if (body)
			out->mapped(out->context, pid_of(body));
		break;
	default:
		break;
	}
}

/* The record at `at`, in one piece; NULL where it is none. */
static const struct perf_event_header *record_at(struct own_events *e, const struct ring *r,
						 uint64_t at, uint64_t end)
{
	const struct perf_event_header *head = (const void *)&r->data[at % e->ring_bytes];
	size_t first = e->ring_bytes - at % e->ring_bytes, size = head->size;

	if (size < sizeof(*head) || size % 8 != 0 || size > end - at)
		return NULL;
	if (size <= first)
		return head;
	check(size <= RECORD_BYTES);
	memcpy(e->record, head, first);
	memcpy((uint8_t *)e->record + first, r->data, size - first);
	return (const void *)e->record;
}

static uint64_t written(const struct ring *r)
{
	return __atomic_load_n(&r->head->data_head, __ATOMIC_ACQUIRE);
}

static void read_ring(struct own_events *e, const struct ring *r, const struct own_events_out *out)
{
	uint64_t end = written(r), at = r->head->data_tail;

	while (at < end) {
		const struct perf_event_header *head = record_at(e, r, at, end);

		if (!head) { /* the kernel writes none such */
			at = end;
			break;
		}
		read_record(e, head, out);
		at += head->size;
		__atomic_store_n(&r->head->data_tail, at, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&r->head->data_tail, at, __ATOMIC_RELEASE);
}

/* What an event has counted: nanoseconds that its threads have run, and samples lost. */
struct counted {
	uint64_t ns, lost;
};

static struct counted count(const struct own_events *e)
{
	struct counted sum = {0};
	uint64_t value[2]; /* the second is there if PERF_FORMAT_LOST is */

	vec_each (&e->events, event) {
		ssize_t n = read(event->fd, value, sizeof(value));

		if (n >= (ssize_t)sizeof(value[0]))
			sum.ns += value[0];
		if (n >= (ssize_t)sizeof(value))
			sum.lost += value[1];
	}
	return sum;
}

static bool has_ended(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && p.revents & POLLHUP;
}

/* The thread of the event by which one waits for a ring has ended, and all that it began: so it is
 * ready for ever. Each other event of the ring will do. */
static void wait_by_another(struct own_events *e, uint32_t cpu)
{
	struct ring *r = &e->rings.p[cpu];

	epoll_ctl(e->epoll, EPOLL_CTL_DEL, r->fd, NULL);
	r->fd = -1;
	vec_each (&e->events, event)
		if (r->fd < 0 && event->cpu == cpu && !has_ended(event->fd) &&
		    own_events_wait_for(e, event->fd, cpu) == 0)
			r->fd = event->fd;
}

static void look_for_ended(struct own_events *e)
{
	struct epoll_event ready[16];
	int n = epoll_wait(e->epoll, ready, sizeof(ready) / sizeof(ready[0]), 0);

	for (int i = 0; i < n; i++)
		if (ready[i].events & EPOLLHUP && ready[i].data.u64 < e->rings.n)
			wait_by_another(e, (uint32_t)ready[i].data.u64);
}

void own_events_read(struct own_events *e, const struct own_events_out *out)
{
	eventfd_t begun;
	struct counted counted;

	eventfd_read(e->begun, &begun);
	look_for_ended(e);
	vec_each (&e->rings, r)
		read_ring(e, r, out);
	if (!e->stopped || !e->tells_lost)
		return;
	/* No record will say it any more. */
	counted = count(e);
	if (counted.lost <= e->n_lost)
		return;
	e->n_ahead += counted.lost - e->n_lost;
	tell_lost(e, counted.lost - e->n_lost, out);
}

int own_events_fd(const struct own_events *e)
{
	return e->epoll;
}

bool own_events_half_full(const struct own_events *e)
{
	vec_each (&e->rings, r)
		if (written(r) - r->head->data_tail > e->ring_bytes / 2)
			return true;
	return false;
}

uint64_t own_events_waiting(const struct own_events *e)
{
	uint64_t n = 0;

	vec_each (&e->rings, r)
		n += written(r) - r->head->data_tail;
	return n;
}

uint64_t own_events_missed(const struct own_events *e)
{
	struct counted counted = count(e);
	uint64_t due = counted.ns / e->period_ns;
	uint64_t seen = e->n_samples + e->n_lost + own_events_waiting(e) / OWN_SAMPLE_BYTES;

	return due > seen ? due - seen : 0;
}

bool own_events_kernel(const struct own_events *e)
{
	return e->kernel;
}

uint32_t own_events_cpus(const struct own_events *e)
{
	return (uint32_t)e->rings.n;
}

uint64_t own_events_bytes(const struct own_events *e)
{
	return e->rings.n * (e->page + e->ring_bytes);
}
