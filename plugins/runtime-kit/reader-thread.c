/* SPDX-License-Identifier: Apache-2.0 */
/* One word says whose turn it is; both sides sleep on it (futex). With a lock and conditions a read
 * costs three times as many switches. */
#include "runtime-kit/reader-thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime-kit/time-slice.h"

#define STACK_BYTES (256u << 10)
#define LATE_MS     10000u /* for the thread to run, where the agent itself has no CPU */

#define SHARED -1 /* the thread has no table of descriptors of its own */
#define LOST   -2 /* … has one, and nothing in it */

enum state {
	IDLE,     /* the caller's */
	ASKED,    /* the thread's */
	READING,  /* likewise */
	ANSWERED, /* the caller's */
	CLOSED,   /* the thread ends */
	LEFT,     /* it reads, and nobody waits */
	ENDED,    /* likewise, and has ended */
	ORPHAN,   /* it reads, and frees all when it has ended */
};

struct reader_thread {
	pthread_t thread;
	pid_t tid;
	uint32_t state;
	int self; /* pidfd of this process, in the thread's own table; SHARED, LOST */
	struct reader_request request;
	bool owns_fd;
	ssize_t results[READER_PIECES];
	uint64_t slept_ns;
	unsigned char bytes[READER_BYTES];
};

/* Sleeps while the state is `value`. true: so many milliseconds have passed; 0: without end. */
static bool state_wait(uint32_t *state, uint32_t value, uint32_t ms)
{
	struct timespec limit = {ms / 1000, ms % 1000 * 1000000L};

	return syscall(SYS_futex, state, FUTEX_WAIT_PRIVATE, value, ms ? &limit : NULL, NULL, 0) !=
		       0 &&
	       errno == ETIMEDOUT;
}

static uint32_t state_of(uint32_t *state)
{
	return __atomic_load_n(state, __ATOMIC_ACQUIRE);
}

static bool state_move(uint32_t *state, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/* Moves on, and wakes the other side. */
static bool state_hand_over(uint32_t *state, uint32_t from, uint32_t to)
{
	if (!state_move(state, from, to))
		return false;
	syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return true;
}

static int copy_from(int self, int fd)
{
	return (int)syscall(SYS_pidfd_getfd, self, fd, 0);
}

/* An empty table of descriptors for this thread, but for one of the process, by which it copies
 * others from there. SHARED: the kernel cannot, or may not. */
static int leave_descriptors(void)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = self >= 0 ? copy_from(self, self) : -1;

	if (copy >= 0)
		close(copy);
	if (self >= 0)
		close(self);
	if (copy < 0 || syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) != 0)
		return SHARED;
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	return self >= 0 ? self : LOST;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How often the thread has slept. To lose the CPU to another one is not to sleep. */
static long n_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static void serve(struct reader_thread *t)
{
	const struct reader_request *q = &t->request;
	int fd = t->self == SHARED ? q->fd : copy_from(t->self, q->fd);
	long before = n_sleeps();
	uint64_t begin = now_ns();

	for (uint32_t i = 0; i < q->n_pieces; i++) {
		ssize_t n = fd < 0 ? -EAGAIN
				   : pread(fd, t->bytes + i * q->n, q->n, (off_t)q->at[i]);

		t->results[i] = n == -1 ? 0 : n;
	}
	t->slept_ns = n_sleeps() != before ? now_ns() - begin : 0;
	if (t->self != SHARED && fd >= 0)
		close(fd);
}

static void free_all(struct reader_thread *t)
{
	if (t->owns_fd)
		close(t->request.fd);
	free(t);
}

static void *run(void *context)
{
	struct reader_thread *t = context;
	uint32_t state;

	t->tid = gettid();
	thread_shorten_slice();
	t->self = leave_descriptors();
	for (;;) {
		while ((state = state_of(&t->state)) == IDLE || state == ANSWERED)
			state_wait(&t->state, state, 0);
		if (state == CLOSED)
			break;
		if (!state_move(&t->state, ASKED, READING))
			continue;
		serve(t);
		if (!state_hand_over(&t->state, READING, ANSWERED))
			break;
	}
	if (t->self >= 0)
		close(t->self);
	if (state != CLOSED && !state_move(&t->state, LEFT, ENDED))
		free_all(t);
	return NULL;
}

struct reader_thread *reader_thread_new(void)
{
	struct reader_thread *t = calloc(1, sizeof(*t));
	pthread_attr_t attr;
	int error;

	if (!t)
		return NULL;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	error = pthread_create(&t->thread, &attr, run, t);
	pthread_attr_destroy(&attr);
	if (error != 0) {
		free(t);
		return NULL;
	}
	pthread_setname_np(t->thread, "runtime-reader");
	return t;
}

/* Whether the thread sleeps, and does not only lack a CPU. */
static bool is_asleep(const struct reader_thread *t)
{
	char path[48], text[64];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", t->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strchr(text, ')');
	return !state || strncmp(state, ") R", 3) != 0;
}

/* Waits until the thread has answered. An agent that is throttled loses seconds, which are not the
 * process's: so in rounds, of which each ends with a look, and the deadline is two of them. */
static int wait_for_answer(struct reader_thread *t, uint32_t deadline_ms)
{
	uint32_t late_ms = 0, n_rounds = 0, state, round_ms = (deadline_ms + 1) / 2;

	while ((state = state_of(&t->state)) != ANSWERED) {
		if (late_ms >= LATE_MS && state_move(&t->state, ASKED, IDLE))
			return -EAGAIN;
		if ((n_rounds >= 2 || late_ms >= LATE_MS) && state_move(&t->state, READING, LEFT))
			return -ETIMEDOUT;
		if (!state_wait(&t->state, state, round_ms))
			continue;
		if (state == READING && is_asleep(t))
			n_rounds++;
		else
			late_ms += round_ms;
	}
	return 0;
}

int reader_thread_read(struct reader_thread *t, const struct reader_request *request,
		       uint32_t deadline_ms)
{
	t->request = *request;
	state_hand_over(&t->state, state_of(&t->state), ASKED);
	return wait_for_answer(t, deadline_ms);
}

const unsigned char *reader_thread_piece(const struct reader_thread *t, uint32_t i, ssize_t *ret_n)
{
	*ret_n = t->results[i];
	return t->bytes + i * t->request.n;
}

uint64_t reader_thread_slept_ns(const struct reader_thread *t)
{
	return t->slept_ns;
}

void reader_thread_keep(struct reader_thread *t, int *fd)
{
	if (t->self != SHARED)
		return;
	t->owns_fd = true;
	*fd = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
}

bool reader_thread_collect(struct reader_thread *t)
{
	if (state_of(&t->state) != ENDED)
		return false;
	pthread_join(t->thread, NULL);
	free_all(t);
	return true;
}

void reader_thread_free(struct reader_thread *t)
{
	pthread_t thread;

	if (!t)
		return;
	thread = t->thread;
	if (state_move(&t->state, LEFT, ORPHAN)) {
		pthread_detach(thread);
		return;
	}
	if (state_of(&t->state) != ENDED)
		state_hand_over(&t->state, state_of(&t->state), CLOSED);
	pthread_join(thread, NULL);
	free_all(t);
}
