/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a ring of names, over a ring that this test fills: it has libbpf's functions. */
#include "runtime-kit/names-ring.h"

#include "testing/test.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Records are numbers from 0. */
struct ring_buffer {
	ring_buffer_sample_fn take;
	void *context;
	int fd;         /* readable while there are some */
	uint64_t n, at; /* reported, and taken */
};

static struct ring_buffer ring;

struct ring_buffer *ring_buffer__new(int map_fd, ring_buffer_sample_fn take, void *context,
				     const struct ring_buffer_opts *opts)
{
	ring = (struct ring_buffer){take, context, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), 0, 0};
	return &ring;
}

void ring_buffer__free(struct ring_buffer *r)
{
	if (r)
		close(r->fd);
}

int ring_buffer__epoll_fd(const struct ring_buffer *r)
{
	return r->fd;
}

int ring_buffer__consume(struct ring_buffer *r)
{
	eventfd_t value;
	int error = 0;

	/* Before, since what comes while it looks is reported again. */
	eventfd_read(r->fd, &value);
	while (error == 0 && r->at < __atomic_load_n(&r->n, __ATOMIC_ACQUIRE)) {
		uint64_t record = r->at++;

		error = r->take(r->context, &record, sizeof(record));
	}
	if (r->at < __atomic_load_n(&r->n, __ATOMIC_ACQUIRE))
		eventfd_write(r->fd, 1);
	return error;
}

static void report(uint64_t n)
{
	__atomic_fetch_add(&ring.n, n, __ATOMIC_RELEASE);
	eventfd_write(ring.fd, 1);
}

/* What takes the records. */
struct taker {
	uint64_t n;
	bool waits;      /* at each record, until `go` */
	int ms;          /* how long each record takes */
	sem_t taken, go; /* a record has come; it may go on */
};

static void take(void *context, const void *record, size_t n)
{
	struct taker *t = context;
	uint64_t number;

	expect_eq(n, sizeof(number));
	number = *(const uint64_t *)record;
	expect_eq(number, t->n);
	t->n++;
	sem_post(&t->taken);
	if (t->waits)
		sem_wait(&t->go);
	poll(NULL, 0, t->ms);
}

static struct names_ring *open_ring(struct taker *t)
{
	struct names_ring *ret;

	sem_init(&t->taken, 0, 0);
	sem_init(&t->go, 0, 0);
	expect_eq(names_ring_open(0, "test-names", take, t, &ret), 0);
	return ret;
}

/* Each record once, in order, as it comes. */
TEST(records_are_taken)
{
	struct taker t = {0};
	struct names_ring *r = open_ring(&t);

	for (int i = 0; i < 100; i++) {
		report(3);
		for (int k = 0; k < 3; k++)
			sem_wait(&t.taken);
	}
	names_ring_close(r);
	expect_eq(t.n, 300);
}

/* The end comes behind the record at hand, however many there are. */
TEST(end_does_not_wait_for_all)
{
	struct taker t = {.ms = 1};
	struct names_ring *r = open_ring(&t);

	report(1000000);
	sem_wait(&t.taken);
	names_ring_close(r);
	expect(t.n < 1000000);
}

static void *drain(void *context)
{
	names_ring_drain(context);
	return NULL;
}

/* Who asks for what has been reported does not wait for a record that does not end … */
TEST(drain_gives_up)
{
	struct taker t = {.waits = true};
	struct names_ring *r = open_ring(&t);
	pthread_t thread;

	report(1);
	sem_wait(&t.taken);
	pthread_create(&thread, NULL, drain, r);
	pthread_join(thread, NULL);
	expect_eq(t.n, 1);
	sem_post(&t.go);
	names_ring_close(r);
}

/* … nor for all of a great number that take long. */
TEST(drain_is_bounded)
{
	struct taker t = {.ms = 10};
	struct names_ring *r = open_ring(&t);

	/* The thread is woken by what the drain leaves, and takes some of it until the end. */
	__atomic_fetch_add(&ring.n, 1000000, __ATOMIC_RELEASE);
	names_ring_drain(r);
	names_ring_close(r);
	expect(t.n >= 1);
	expect(t.n <= 1000);
}

/* A drain takes what is there without the thread. */
TEST(drain_takes)
{
	struct taker t = {0};
	struct names_ring *r = open_ring(&t);

	__atomic_fetch_add(&ring.n, 5, __ATOMIC_RELEASE);
	names_ring_drain(r);
	expect_eq(t.n, 5);
	names_ring_close(r);
}

static int use(void *context)
{
	struct names_ring *r = NULL;
	int error = names_ring_open(0, "test-names", take, context, &r);

	names_ring_close(r);
	return error;
}

TEST(survives_out_of_memory)
{
	struct taker t = {0};

	test_each_failing_allocation(use, &t);
}
