/* SPDX-License-Identifier: Apache-2.0 */
/* A mailbox with one place stands between the caller and a thread. The caller waits until the
 * thread has answered, or until the deadline. Then the mailbox is left to its thread, with the
 * descriptor that it reads from, and the reader makes another one. So nothing of the caller's is
 * written after it has gone on.
 *
 * Not process_vm_readv: it looks its process up by pid each time, and waits for userfaultfd. */
#include "runtime-kit/target-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK       4096u
#define BLOCKS      16u
#define PIECE       (64u << 10) /* of a long read */
#define STACK_BYTES (256u << 10)
#define ROUND_MS    (TARGET_DEADLINE_MS / 2)
#define LATE_ROUNDS 40u /* for the thread to begin, where the agent itself has no CPU */

struct mailbox {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	enum { IDLE, ASKED, READING, ANSWERED } state;
	bool closed; /* the thread ends as soon as it can */
	bool orphan; /* … and frees the mailbox */
	int fd;
	bool owns_fd;
	uint64_t at;
	size_t n;
	ssize_t result;
	unsigned char bytes[PIECE];
};

struct block {
	const struct target_memory *memory; /* NULL: none */
	uint64_t at;
	size_t n; /* that are there */
	unsigned char bytes[BLOCK];
};

struct target_reader {
	struct mailbox *mailbox; /* NULL: none at the moment */
	struct mailbox *left[TARGET_STUCK_MAX];
	uint32_t n_left;
	/* Those that were given up last. */
	struct andiron_runtime_process given_up[TARGET_STUCK_MAX];
	uint32_t n_given_up;
	struct block blocks[BLOCKS];
};

struct target_memory {
	struct target_reader *reader;
	struct andiron_runtime_process process; /* zeros: a file's */
	int fd;                                 /* -1: given up */
	uint32_t n_reads;
	uint64_t second, n_bytes;
};

static void mailbox_free(struct mailbox *m)
{
	if (m->owns_fd)
		close(m->fd);
	pthread_cond_destroy(&m->asked);
	pthread_cond_destroy(&m->answered);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static void *mailbox_serve(void *context)
{
	struct mailbox *m = context;
	bool orphan;

	pthread_mutex_lock(&m->lock);
	for (;;) {
		while (m->state != ASKED && !m->closed)
			pthread_cond_wait(&m->asked, &m->lock);
		if (m->closed)
			break;
		m->state = READING;
		pthread_mutex_unlock(&m->lock);
		m->result = pread(m->fd, m->bytes, m->n, (off_t)m->at);
		pthread_mutex_lock(&m->lock);
		m->state = ANSWERED;
		pthread_cond_signal(&m->answered);
	}
	orphan = m->orphan;
	pthread_mutex_unlock(&m->lock);
	if (orphan)
		mailbox_free(m);
	return NULL;
}

static struct mailbox *mailbox_new(void)
{
	struct mailbox *m = calloc(1, sizeof(*m));
	pthread_condattr_t clock;
	pthread_attr_t attr;
	int error;

	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->asked, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&m->answered, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	error = pthread_create(&m->thread, &attr, mailbox_serve, m);
	pthread_attr_destroy(&attr);
	if (error != 0) {
		mailbox_free(m);
		return NULL;
	}
	pthread_setname_np(m->thread, "runtime-reader");
	return m;
}

static void mailbox_close(struct mailbox *m, bool orphan)
{
	pthread_mutex_lock(&m->lock);
	m->closed = true;
	m->orphan = orphan;
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
}

/* Waits until the thread has answered: the deadline from when it has begun to read. An agent that
 * is throttled loses seconds, which are not the process's: so in rounds, of which each ends with a
 * look. The lock is held. */
static bool mailbox_wait(struct mailbox *m)
{
	uint32_t n_late = 0, n_reading = 0;
	struct timespec limit;

	while (m->state != ANSWERED && n_late < LATE_ROUNDS && n_reading < 2) {
		clock_gettime(CLOCK_MONOTONIC, &limit);
		limit.tv_nsec += ROUND_MS * 1000000L;
		limit.tv_sec += limit.tv_nsec / 1000000000L;
		limit.tv_nsec %= 1000000000L;
		if (pthread_cond_timedwait(&m->answered, &m->lock, &limit) == ETIMEDOUT) {
			n_late += m->state == ASKED;
			n_reading += m->state == READING;
		}
	}
	return m->state == ANSWERED;
}

/* Bytes that were read into m->bytes, 0 if none are there; -ETIMEDOUT: the mailbox is to be
 * left. */
static ssize_t mailbox_read(struct mailbox *m, int fd, uint64_t at, size_t n)
{
	bool answered;

	pthread_mutex_lock(&m->lock);
	m->fd = fd;
	m->at = at;
	m->n = n;
	m->state = ASKED;
	pthread_cond_signal(&m->asked);
	answered = mailbox_wait(m);
	m->owns_fd = !answered;
	m->state = answered ? IDLE : m->state;
	pthread_mutex_unlock(&m->lock);
	if (!answered)
		return -ETIMEDOUT;
	return m->result > 0 ? m->result : 0;
}

struct target_reader *target_reader_new(void)
{
	struct target_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->mailbox = mailbox_new();
	if (r->mailbox)
		return r;
	free(r);
	return NULL;
}

/* Takes back what was left behind and has ended since. */
static void collect_left(struct target_reader *r)
{
	for (uint32_t i = 0; i < r->n_left;) {
		if (pthread_tryjoin_np(r->left[i]->thread, NULL) == 0) {
			mailbox_free(r->left[i]);
			r->left[i] = r->left[--r->n_left];
		} else {
			i++;
		}
	}
}

void target_reader_free(struct target_reader *r)
{
	if (!r)
		return;
	collect_left(r);
	for (uint32_t i = 0; i < r->n_left; i++) {
		pthread_detach(r->left[i]->thread);
		mailbox_close(r->left[i], true);
	}
	if (r->mailbox) {
		mailbox_close(r->mailbox, false);
		pthread_join(r->mailbox->thread, NULL);
		mailbox_free(r->mailbox);
	}
	free(r);
}

void target_reader_refresh(struct target_reader *r)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		r->blocks[i].memory = NULL;
}

uint32_t target_reader_stuck(const struct target_reader *r)
{
	return r->n_left;
}

/* Start of a process since boot, in clock ticks, which is what /proc has; 0: it is not there. */
static uint64_t start_ticks(uint32_t pid)
{
	char path[32], text[1024];
	unsigned long long ticks = 0;
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')'); /* behind the name: fields 3 to 22 */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		ticks = strtoull(at, NULL, 10);
	return ticks;
}

int target_memory_of(struct target_reader *r, int fd, struct target_memory **ret)
{
	struct target_memory *m = calloc(1, sizeof(*m));

	if (!m) {
		close(fd);
		return -ENOMEM;
	}
	m->reader = r;
	m->fd = fd;
	*ret = m;
	return 0;
}

static bool is_given_up(const struct target_reader *r,
			const struct andiron_runtime_process *process)
{
	for (uint32_t i = 0; i < r->n_given_up && i < TARGET_STUCK_MAX; i++)
		if (r->given_up[i].pid == process->pid &&
		    r->given_up[i].start_ns == process->start_ns)
			return true;
	return false;
}

int target_memory_open(struct target_reader *r, const struct andiron_runtime_process *process,
		       struct target_memory **ret)
{
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	char path[32];
	int fd, error;

	if (is_given_up(r, process))
		return -ETIMEDOUT;
	snprintf(path, sizeof(path), "/proc/%u/mem", process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* In this order: if the pid is reused between the two, the descriptor holds nothing. */
	if (start_ticks(process->pid) != process->start_ns / tick_ns) {
		close(fd);
		return -ESRCH;
	}
	error = target_memory_of(r, fd, ret);
	if (error == 0)
		(*ret)->process = *process;
	return error;
}

void target_memory_close(struct target_memory *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (m->reader->blocks[i].memory == m)
			m->reader->blocks[i].memory = NULL;
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

/* Of the process itself, into the mailbox's bytes: as mailbox_read(). */
static ssize_t read_target(struct target_memory *m, uint64_t at, size_t n)
{
	struct target_reader *r = m->reader;
	ssize_t got;

	collect_left(r);
	if (!r->mailbox && r->n_left < TARGET_STUCK_MAX)
		r->mailbox = mailbox_new();
	if (!r->mailbox)
		return -EAGAIN;
	m->n_bytes += n;
	got = mailbox_read(r->mailbox, m->fd, at, n);
	if (got == -ETIMEDOUT) {
		r->left[r->n_left++] = r->mailbox;
		mailbox_close(r->mailbox, false);
		r->mailbox = NULL;
		r->given_up[r->n_given_up++ % TARGET_STUCK_MAX] = m->process;
		m->fd = -1;
	}
	return got;
}

/* Counts a read; 0 or a negative errno. */
static int spend(struct target_memory *m, uint64_t at, size_t n)
{
	struct timespec now;

	if (m->fd < 0)
		return -ETIMEDOUT;
	if (n > TARGET_READ_MAX || at > INT64_MAX - n)
		return -EFAULT;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if ((uint64_t)now.tv_sec != m->second) {
		m->second = (uint64_t)now.tv_sec;
		m->n_reads = 0;
		m->n_bytes = 0;
	}
	m->n_reads++;
	return m->n_reads > TARGET_READS || m->n_bytes > TARGET_BYTES ? -EDQUOT : 0;
}

/* The copy of the block at an address, which is a multiple of BLOCK; NULL: *ret_error says why. */
static const struct block *find_block(struct target_memory *m, uint64_t at, int *ret_error)
{
	uint64_t hash = (at / BLOCK ^ (uintptr_t)m / sizeof(*m)) * 0x9e3779b97f4a7c15u;
	struct block *b = &m->reader->blocks[hash >> 60 & (BLOCKS - 1)];
	ssize_t n;

	if (b->memory == m && b->at == at)
		return b;
	n = read_target(m, at, BLOCK);
	if (n < 0) {
		*ret_error = (int)n;
		return NULL;
	}
	memcpy(b->bytes, m->reader->mailbox->bytes, (size_t)n);
	b->memory = m;
	b->at = at;
	b->n = (size_t)n;
	return b;
}

static int read_long(struct target_memory *m, uint64_t at, unsigned char *ret, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t piece = n - done < PIECE ? n - done : PIECE;
		ssize_t got = read_target(m, at + done, piece);

		if (got < 0)
			return (int)got;
		if ((size_t)got < piece)
			return -EFAULT;
		memcpy(ret + done, m->reader->mailbox->bytes, piece);
		done += piece;
	}
	return 0;
}

int target_memory_read(struct target_memory *m, uint64_t at, void *ret, size_t n)
{
	int error = spend(m, at, n);

	if (error != 0)
		return error;
	if (n > 2 * BLOCK)
		return read_long(m, at, ret, n);
	for (size_t done = 0; done < n;) {
		uint64_t into = (at + done) % BLOCK;
		size_t piece = n - done < BLOCK - into ? n - done : (size_t)(BLOCK - into);
		const struct block *b = find_block(m, at + done - into, &error);

		if (!b)
			return error;
		if (into + piece > b->n)
			return -EFAULT;
		memcpy((unsigned char *)ret + done, b->bytes + into, piece);
		done += piece;
	}
	return 0;
}

uint64_t target_memory_word(struct target_memory *m, uint64_t at)
{
	uint64_t word;

	return target_memory_read(m, at, &word, sizeof(word)) == 0 ? word : 0;
}

uint32_t target_memory_word32(struct target_memory *m, uint64_t at)
{
	uint32_t word;

	return target_memory_read(m, at, &word, sizeof(word)) == 0 ? word : 0;
}

size_t target_memory_text(struct target_memory *m, uint64_t at, char *ret, size_t max)
{
	size_t n = 0;

	while (n + 1 < max) {
		size_t piece = BLOCK - (at + n) % BLOCK, got;

		if (piece > max - 1 - n)
			piece = max - 1 - n;
		if (target_memory_read(m, at + n, ret + n, piece) != 0)
			break;
		got = strnlen(ret + n, piece);
		n += got;
		if (got < piece)
			break;
	}
	ret[n] = '\0';
	return n;
}
