/* SPDX-License-Identifier: Apache-2.0 */
/* The ring's map descriptor goes into an epoll set of our own, edge-triggered: a poll of the map
 * itself would say "readable" for as long as anything lies in it, and defeat the wake-ups that the
 * kernel side withholds (see bpf/include/bpfwire/process.h). */
#include "process/tracer.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "proc/hierarchy.h"
#include "proc/libbpf-log.h"

#include <linux/types.h>
#include "bpfwire/process.h"

#pragma GCC diagnostic push /* bpftool's text, not ours */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "process.skel.h"
#pragma GCC diagnostic pop

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RING_BYTES_MIN     (256u << 10)
#define RING_BYTES_MAX     (4u << 20)
#define RING_BYTES_PER_CPU (32u << 10)

_Static_assert(sizeof(struct process_record) == sizeof(struct andiron_process_event),
	       "a record is an event");
_Static_assert(PROCESS_FORK == ANDIRON_PROCESS_FORK && PROCESS_EXEC == ANDIRON_PROCESS_EXEC &&
		       PROCESS_EXIT == ANDIRON_PROCESS_EXIT &&
		       PROCESS_EXISTING == ANDIRON_PROCESS_EXISTING,
	       "kinds are the same on both sides");

struct tracer {
	struct process_bpf *bpf;
	struct ring_buffer *ring;
	int epoll;
	uint64_t consumed;      /* read from the ring */
	uint64_t dropped;       /* of these, for want of memory */
	uint64_t lost_reported; /* what the LOST events so far stand for */
	struct process_events *sink;
};

void tracer_close(struct tracer *t)
{
	if (!t)
		return;
	if (t->epoll >= 0)
		close(t->epoll);
	ring_buffer__free(t->ring);
	process_bpf__destroy(t->bpf);
	free(t);
}
DEFINE_CLEANUP(struct tracer *, tracer_close);

static int take_record(void *context, void *data, size_t size)
{
	struct tracer *t = context;

	check(size >= sizeof(struct andiron_process_event));
	t->consumed++;
	if (!vec_reserve(t->sink, 1)) {
		t->dropped++;
		return 0;
	}
	memcpy(&t->sink->p[t->sink->n++], data, sizeof(struct andiron_process_event));
	return 0;
}

static uint32_t ring_bytes(void)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t bytes = RING_BYTES_MIN;

	while (cpus > 0 && bytes < RING_BYTES_MAX && bytes < (uint32_t)cpus * RING_BYTES_PER_CPU)
		bytes *= 2;
	return bytes;
}

static int refused(int code, struct error *err)
{
	if (code == -EPERM || code == -EACCES)
		return error_set(err, code,
				 "the kernel did not let us load BPF programs: run as root, or "
				 "grant CAP_BPF and CAP_PERFMON");
	if (access("/sys/kernel/btf/vmlinux", F_OK))
		return error_set(
			err, code,
			"this kernel has no type information (/sys/kernel/btf/vmlinux): it "
			"must be built with CONFIG_DEBUG_INFO_BTF");
	return error_errno(err, code,
			   "cannot load the BPF programs (Linux 5.10 or newer is needed)");
}

static int load(struct tracer *t, uint32_t bytes, struct error *err)
{
	int r;

	t->bpf = process_bpf__open();
	if (!t->bpf)
		return refused(-errno, err);
	t->bpf->rodata->process_hierarchy = proc_hierarchy_here();
	r = bpf_map__set_max_entries(t->bpf->maps.events, bytes ? bytes : ring_bytes());
	if (!r)
		r = process_bpf__load(t->bpf);
	return r ? refused(r, err) : 0;
}

static int open_ring(struct tracer *t, struct error *err)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int map = bpf_map__fd(t->bpf->maps.events);

	t->ring = ring_buffer__new(map, take_record, t, NULL);
	if (!t->ring)
		return error_errno(err, -errno, "cannot map the ring of process events");
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (t->epoll < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, map, &event))
		return error_errno(err, -errno, "cannot watch the ring of process events");
	return 0;
}

int tracer_open(uint32_t bytes, struct tracer **ret, struct error *err)
{
	_cleanup_(tracer_closep) struct tracer *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->epoll = -1;
	libbpf_log_quiet();
	r = load(t, bytes, err);
	if (!r)
		r = open_ring(t, err);
	if (r)
		return r;
	r = process_bpf__attach(t->bpf);
	if (r)
		return error_errno(err, r, "cannot attach to the kernel's process tracepoints");
	*ret = take_ptr(t);
	return 0;
}

int tracer_fd(const struct tracer *t)
{
	return t->epoll;
}

/* Reads what the other side adds to while it is read. */
static uint64_t counter(const __u64 *value)
{
	return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

int tracer_drain(struct tracer *t, struct process_events *events, bool *ret_again)
{
	struct epoll_event event;
	uint64_t before = t->consumed, lost, gone;

	while (epoll_wait(t->epoll, &event, 1, 0) < 0 && errno == EINTR)
		;
	t->sink = events;
	ring_buffer__consume(t->ring);
	lost = counter(&t->bpf->bss->process_lost);
	gone = lost + t->dropped;
	*ret_again = t->consumed != before ||
		     t->consumed + lost != counter(&t->bpf->bss->process_produced) ||
		     gone != t->lost_reported;
	if (gone == t->lost_reported)
		return 0;
	if (!vec_push(events, ((struct andiron_process_event){.kind = ANDIRON_PROCESS_LOST})))
		return -ENOMEM;
	t->lost_reported = gone;
	return 0;
}

void tracer_totals(const struct tracer *t, uint64_t *ret_events, uint64_t *ret_lost)
{
	*ret_events = t->consumed - t->dropped;
	*ret_lost = t->lost_reported;
}

int tracer_list(struct tracer *t)
{
	int fd = bpf_iter_create(bpf_link__fd(t->bpf->links.process_list));

	return fd < 0 ? -errno : fd;
}

int tracer_list_read(int fd, struct process_events *events)
{
	_cleanup_(buf_free) struct buf bytes = BUF_NULL;
	size_t n;
	int r = file_read_fd(fd, &bytes, SIZE_MAX);

	if (r)
		return r;
	n = bytes.n / sizeof(struct andiron_process_event);
	if (!vec_reserve(events, n))
		return -ENOMEM;
	if (n)
		memcpy(events->p + events->n, bytes.p, n * sizeof(struct andiron_process_event));
	events->n += n;
	return 0;
}
