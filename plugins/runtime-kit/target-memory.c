/* SPDX-License-Identifier: Apache-2.0 */
/* A thread makes the reads (reader-thread.h), since each may wait for the owner of a page. To look
 * first whether a page is there (/proc/PID/pagemap) and then to read it without a thread is no
 * way: a process may take the page away in between, and the look itself waits for the lock of the
 * address space.
 *
 * Not process_vm_readv: it looks its process up by pid each time, and waits for userfaultfd. */
#include "runtime-kit/target-memory.h"

#include "runtime-kit/reader-thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BLOCK      4096u
#define BLOCKS     16u
#define SETS       128u /* of processes that are counted */
#define WAYS       8u
#define MS         1000000ull
#define MINUTE_NS  60000000000ull
#define HURRY_NS   5000000000ull /* waits of all in a minute, beyond which … */
#define HURRIED_MS 20u           /* … a read has so long */

/* Waits since a minute began, which it does with the first of them. */
struct waits {
	uint64_t begin_ns, sum_ns;
};

/* What a process has used up, whatever memories of it were opened. */
struct count {
	uint64_t start_ns;
	uint32_t pid, n_reads;
	uint64_t second, n_bytes; /* n_reads and n_bytes are of this second */
	uint64_t used;            /* the largest was used last; 0: free */
	struct waits waits;
};

struct block {
	const struct target_memory *memory; /* NULL: none */
	uint64_t at, used; /* the largest was used last */
	size_t n;          /* bytes that are there, in the reader's */
};

struct stuck {
	struct reader_thread *thread;
	struct andiron_runtime_process process;
};

struct target_reader {
	struct reader_thread *thread; /* NULL: none at the moment */
	struct block blocks[BLOCKS]; /* apart from their bytes: all are looked through */
	unsigned char bytes[BLOCKS][BLOCK];
	pthread_mutex_t lock; /* of what follows; never held while a process is waited for */
	struct stuck stuck[TARGET_STUCK_MAX];
	uint32_t n_stuck, n_open, max_open;
	uint64_t n_files, uses, block_uses;
	bool ended, patient;
	struct waits waits;
	struct count counts[SETS][WAYS];
};

struct target_memory {
	struct target_reader *reader;
	struct andiron_runtime_process process; /* pid 0: a file */
	int fd;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct target_reader *target_reader_new(bool patient)
{
	struct target_reader *r = calloc(1, sizeof(*r));
	struct rlimit limit = {0};

	if (!r)
		return NULL;
	r->thread = reader_thread_new();
	if (!r->thread) {
		free(r);
		return NULL;
	}
	r->patient = patient;
	pthread_mutex_init(&r->lock, NULL);
	getrlimit(RLIMIT_NOFILE, &limit);
	r->max_open = limit.rlim_cur / 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)limit.rlim_cur / 2;
	return r;
}

void target_reader_end(struct target_reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	pthread_mutex_unlock(&r->lock);
}

void target_reader_free(struct target_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n_stuck; i++)
		reader_thread_free(r->stuck[i].thread);
	reader_thread_free(r->thread);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void target_reader_refresh(struct target_reader *r)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		r->blocks[i].memory = NULL;
}

/* Takes back what was left behind and has ended since. The lock is held. */
static void collect_stuck(struct target_reader *r)
{
	for (uint32_t i = 0; i < r->n_stuck;) {
		if (reader_thread_collect(r->stuck[i].thread))
			r->stuck[i] = r->stuck[--r->n_stuck];
		else
			i++;
	}
}

uint32_t target_reader_stuck(struct target_reader *r)
{
	uint32_t n;

	pthread_mutex_lock(&r->lock);
	collect_stuck(r);
	n = r->n_stuck;
	pthread_mutex_unlock(&r->lock);
	return n;
}

static bool is_same(const struct andiron_runtime_process *a, uint32_t pid, uint64_t start_ns)
{
	return a->pid == pid && a->start_ns == start_ns;
}

/* The process's entry. In a full set another one's leaves, the one that was not used for the
 * longest time. The lock is held. */
static struct count *find_count(struct target_reader *r, const struct andiron_runtime_process *p)
{
	uint64_t hash = (p->start_ns ^ (uint64_t)p->pid << 32) * 0x9e3779b97f4a7c15u;
	struct count *set = r->counts[hash >> 32 & (SETS - 1)], *ret = set;

	for (uint32_t i = 0; i < WAYS; i++) {
		if (set[i].used && is_same(p, set[i].pid, set[i].start_ns)) {
			set[i].used = ++r->uses;
			return &set[i];
		}
		if (set[i].used < ret->used)
			ret = &set[i];
	}
	*ret = (struct count){.pid = p->pid, .start_ns = p->start_ns, .used = ++r->uses};
	return ret;
}

static uint64_t waits_sum(const struct waits *w)
{
	return now_ns() - w->begin_ns < MINUTE_NS ? w->sum_ns : 0;
}

static void waits_add(struct waits *w, uint64_t ns)
{
	if (now_ns() - w->begin_ns >= MINUTE_NS)
		*w = (struct waits){now_ns(), 0};
	w->sum_ns += ns;
}

/* How many times as long as others it waits. */
static uint32_t patience(const struct target_reader *r)
{
	return r->patient ? TARGET_PATIENCE : 1;
}

/* Why the process is not read now: 0 or a negative errno. The lock is held. */
static int refuse(struct target_reader *r, const struct andiron_runtime_process *p)
{
	if (r->ended)
		return -ECANCELED;
	collect_stuck(r);
	for (uint32_t i = 0; i < r->n_stuck; i++)
		if (is_same(p, r->stuck[i].process.pid, r->stuck[i].process.start_ns))
			return -ETIMEDOUT;
	if (waits_sum(&find_count(r, p)->waits) >= patience(r) * TARGET_WAITS_MS * MS)
		return -ETIMEDOUT;
	return 0;
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

/* The descriptor is closed where it fails. */
static int memory_new(struct target_reader *r, int fd,
		      const struct andiron_runtime_process *process, struct target_memory **ret)
{
	struct target_memory *m = calloc(1, sizeof(*m));
	int error = m ? 0 : -ENOMEM;

	pthread_mutex_lock(&r->lock);
	if (error == 0 && r->n_open >= r->max_open)
		error = -EMFILE;
	if (error == 0)
		*m = (struct target_memory){r, *process, fd};
	if (error == 0 && process->pid == 0)
		m->process.start_ns = ++r->n_files;
	r->n_open += error == 0;
	pthread_mutex_unlock(&r->lock);
	if (error == 0) {
		*ret = m;
		return 0;
	}
	free(m);
	close(fd);
	return error;
}

int target_memory_of(struct target_reader *r, int fd, struct target_memory **ret)
{
	return memory_new(r, fd, &(struct andiron_runtime_process){0}, ret);
}

int target_memory_open(struct target_reader *r, const struct andiron_runtime_process *process,
		       struct target_memory **ret)
{
	uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	char path[32];
	int fd, error;

	pthread_mutex_lock(&r->lock);
	error = refuse(r, process);
	pthread_mutex_unlock(&r->lock);
	if (error != 0)
		return error;
	snprintf(path, sizeof(path), "/proc/%u/mem", process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* In this order: if the pid is reused between the two, the descriptor holds nothing. */
	if (start_ticks(process->pid) != process->start_ns / tick_ns) {
		close(fd);
		return -ESRCH;
	}
	return memory_new(r, fd, process, ret);
}

void target_memory_close(struct target_memory *m)
{
	struct target_reader *r = m ? m->reader : NULL;

	if (!m)
		return;
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (r->blocks[i].memory == m)
			r->blocks[i].memory = NULL;
	pthread_mutex_lock(&r->lock);
	r->n_open--;
	pthread_mutex_unlock(&r->lock);
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

/* Before reads of the process itself: 0 and their deadline, or a negative errno. The lock is held.
 */
static int prepare(struct target_memory *m, size_t n, uint32_t *ret_deadline_ms)
{
	struct target_reader *r = m->reader;
	int error = refuse(r, &m->process);

	if (error != 0)
		return error;
	if (m->fd < 0)
		return -EBADF;
	if (!r->thread && r->n_stuck < TARGET_STUCK_MAX)
		r->thread = reader_thread_new();
	if (!r->thread)
		return -EAGAIN;
	find_count(r, &m->process)->n_bytes += n;
	*ret_deadline_ms = patience(r) * (waits_sum(&r->waits) > patience(r) * HURRY_NS
						  ? HURRIED_MS
						  : TARGET_DEADLINE_MS);
	return 0;
}

/* Of the process itself, into the thread's bytes: 0 or a negative errno. */
static int read_pieces(struct target_memory *m, const struct reader_request *request)
{
	struct target_reader *r = m->reader;
	uint32_t deadline_ms;
	uint64_t slept_ns;
	int error;

	pthread_mutex_lock(&r->lock);
	error = prepare(m, request->n * request->n_pieces, &deadline_ms);
	pthread_mutex_unlock(&r->lock);
	if (error != 0)
		return error;
	error = reader_thread_read(r->thread, request, deadline_ms);
	slept_ns = error == -ETIMEDOUT ? deadline_ms * MS
		   : error == 0        ? reader_thread_slept_ns(r->thread)
				       : 0;
	if (error != -ETIMEDOUT && (r->patient || slept_ns < MS))
		return error;
	pthread_mutex_lock(&r->lock);
	waits_add(&find_count(r, &m->process)->waits, slept_ns);
	waits_add(&r->waits, slept_ns);
	if (error == -ETIMEDOUT) {
		reader_thread_keep(r->thread, &m->fd);
		r->stuck[r->n_stuck++] = (struct stuck){r->thread, m->process};
		r->thread = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	return error;
}

/* One piece: the number of its bytes, which are at *ret, or a negative errno. */
static ssize_t read_target(struct target_memory *m, uint64_t at, size_t n,
			   const unsigned char **ret)
{
	struct reader_request request = {m->fd, 1, n, {at}};
	int error = read_pieces(m, &request);
	ssize_t got;

	if (error != 0)
		return error;
	*ret = reader_thread_piece(m->reader->thread, 0, &got);
	return got;
}

/* Counts a read; 0 or a negative errno. */
static int spend(struct target_memory *m, uint64_t at, size_t n)
{
	struct target_reader *r = m->reader;
	uint64_t second = now_ns() / 1000000000;
	struct count *c;
	bool is_spent;

	if (n > TARGET_READ_MAX || at > INT64_MAX - n)
		return -EFAULT;
	pthread_mutex_lock(&r->lock);
	c = find_count(r, &m->process);
	if (second != c->second) {
		c->second = second;
		c->n_reads = 0;
		c->n_bytes = 0;
	}
	c->n_reads++;
	is_spent = !r->patient && (c->n_reads > TARGET_READS || c->n_bytes > TARGET_BYTES);
	pthread_mutex_unlock(&r->lock);
	return is_spent ? -EDQUOT : 0;
}

/* The copy of the block at an address, which is a multiple of BLOCK; NULL: there is none. Any place
 * may have it: objects that are read in turn would else displace each other's time and again. */
static const struct block *copy_of(const struct target_memory *m, uint64_t at)
{
	struct target_reader *r = m->reader;

	for (uint32_t i = 0; i < BLOCKS; i++)
		if (r->blocks[i].memory == m && r->blocks[i].at == at) {
			r->blocks[i].used = ++r->block_uses;
			return &r->blocks[i];
		}
	return NULL;
}

/* In place of the copy that was used the longest ago. */
static const struct block *keep_copy(const struct target_memory *m, uint64_t at,
				     const unsigned char *bytes, size_t n)
{
	struct target_reader *r = m->reader;
	struct block *b = &r->blocks[0];

	for (uint32_t i = 1; i < BLOCKS && b->memory; i++)
		if (!r->blocks[i].memory || r->blocks[i].used < b->used)
			b = &r->blocks[i];
	memcpy(r->bytes[b - r->blocks], bytes, n);
	b->memory = m;
	b->at = at;
	b->n = n;
	b->used = ++r->block_uses;
	return b;
}

/* The copy of the block at an address; NULL: *ret_error says why. */
static const struct block *find_block(struct target_memory *m, uint64_t at, int *ret_error)
{
	const struct block *b = copy_of(m, at);
	const unsigned char *bytes;
	ssize_t n;

	if (b)
		return b;
	n = read_target(m, at, BLOCK, &bytes);
	if (n < 0) {
		*ret_error = (int)n;
		return NULL;
	}
	return keep_copy(m, at, bytes, (size_t)n);
}

static bool has(const struct reader_request *request, uint64_t at)
{
	for (uint32_t i = 0; i < request->n_pieces; i++)
		if (request->at[i] == at)
			return true;
	return false;
}

void target_memory_announce(struct target_memory *m, const uint64_t *at, uint32_t n)
{
	struct reader_request request = {.fd = m->fd, .n = BLOCK};

	for (uint32_t i = 0; i < n && request.n_pieces < READER_PIECES; i++) {
		uint64_t block = at[i] - at[i] % BLOCK;

		if (at[i] != 0 && !copy_of(m, block) && !has(&request, block) &&
		    spend(m, block, BLOCK) == 0)
			request.at[request.n_pieces++] = block;
	}
	if (request.n_pieces < 2 || read_pieces(m, &request) != 0)
		return;
	for (uint32_t i = 0; i < request.n_pieces; i++) {
		ssize_t got;
		const unsigned char *bytes = reader_thread_piece(m->reader->thread, i, &got);

		if (got >= 0)
			keep_copy(m, request.at[i], bytes, (size_t)got);
	}
}

static int read_long(struct target_memory *m, uint64_t at, unsigned char *ret, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t piece = n - done < READER_BYTES ? n - done : READER_BYTES;
		const unsigned char *bytes;
		ssize_t got = read_target(m, at + done, piece, &bytes);

		if (got < 0)
			return (int)got;
		if ((size_t)got < piece)
			return -EFAULT;
		memcpy(ret + done, bytes, piece);
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
		memcpy((unsigned char *)ret + done,
		       m->reader->bytes[b - m->reader->blocks] + into, piece);
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
