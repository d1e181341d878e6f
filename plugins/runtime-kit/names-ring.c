/* SPDX-License-Identifier: Apache-2.0 */
/* Waits by poll() for the ring and for the end. One lock, held while records are taken, so that a
 * caller may take them, too. */
#include "runtime-kit/names-ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime-kit/time-slice.h"

#define WAIT_MS  50u  /* for the ring's thread, in names_ring_drain() */
#define DRAIN_MS 100u /* for the records there */
#define RETRY_MS 100u

struct names_ring {
	names_ring_fn take;
	void *context;
	struct ring_buffer *ring;
	pthread_mutex_t lock; /* of the ring */
	pthread_t thread;
	int end; /* eventfd */
	bool ending;
	uint64_t until_ns; /* records are taken; 0: as long as there are some */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool is_ending(const struct names_ring *r)
{
	return __atomic_load_n(&r->ending, __ATOMIC_RELAXED);
}

/* libbpf goes on until the ring is empty, or this fails. */
static int take_record(void *context, void *record, size_t n)
{
	struct names_ring *r = context;

	r->take(r->context, record, n);
	return is_ending(r) || (r->until_ns && now_ns() >= r->until_ns) ? -ECANCELED : 0;
}

void names_ring_drain(struct names_ring *r)
{
	uint32_t n = 0;

	while (pthread_mutex_trylock(&r->lock) != 0) {
		if (n++ == WAIT_MS)
			return;
		poll(NULL, 0, 1);
	}
	r->until_ns = now_ns() + DRAIN_MS * 1000000ull;
	ring_buffer__consume(r->ring);
	r->until_ns = 0;
	pthread_mutex_unlock(&r->lock);
}

static void *names_ring_run(void *context)
{
	struct names_ring *r = context;
	struct pollfd fds[] = {{ring_buffer__epoll_fd(r->ring), POLLIN, 0}, {r->end, POLLIN, 0}};

	thread_shorten_slice();
	for (;;) {
		int n = poll(fds, 2, -1);

		if (is_ending(r))
			break;
		/* Without memory it fails for a while. */
		if (n < 0) {
			poll(&fds[1], 1, RETRY_MS);
			continue;
		}
		pthread_mutex_lock(&r->lock);
		ring_buffer__consume(r->ring);
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

int names_ring_open(int map_fd, const char *thread_name, names_ring_fn take, void *context,
		    struct names_ring **ret)
{
	struct names_ring *r = calloc(1, sizeof(*r));
	int error = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->take = take;
	r->context = context;
	r->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->ring = r->end >= 0 ? ring_buffer__new(map_fd, take_record, r, NULL) : NULL;
	if (r->ring) {
		pthread_mutex_init(&r->lock, NULL);
		error = -pthread_create(&r->thread, NULL, names_ring_run, r);
	}
	if (error == 0) {
		pthread_setname_np(r->thread, thread_name);
		*ret = r;
		return 0;
	}
	if (r->ring)
		pthread_mutex_destroy(&r->lock);
	ring_buffer__free(r->ring);
	if (r->end >= 0)
		close(r->end);
	free(r);
	return error;
}

void names_ring_close(struct names_ring *r)
{
	if (!r)
		return;
	__atomic_store_n(&r->ending, true, __ATOMIC_RELAXED);
	/* Cannot fail: the counter is 0. */
	eventfd_write(r->end, 1);
	pthread_join(r->thread, NULL);
	pthread_mutex_destroy(&r->lock);
	ring_buffer__free(r->ring);
	close(r->end);
	free(r);
}
