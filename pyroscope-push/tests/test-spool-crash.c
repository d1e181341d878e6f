/* SPDX-License-Identifier: Apache-2.0 */
/* The spool when its process, or the machine, dies. ANDIRON_SPOOL_KILLS says how often the process
 * is killed; without it, two hundred times.
 *
 * The loss of power: all operations of a run are recorded, and every beginning of that record is
 * made a directory again, with what had not been synced missing, torn, or there in part. */
#include "testing/test.h"
#include "base/vec.h"
#include "pyroscope-push/tests/test-directory.h"
#include "pyroscope-push/tests/test-spool.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH_SAMPLES(n) ((uint64_t)(n)*3)

/* What the process that dies tells the one that looks. */
struct page {
	uint64_t n_begun;               /* records of batches that were begun */
	uint64_t n_ended;               /* of batches whose spool_end has returned */
	uint64_t n_settling, n_settled; /* from record 0 on, before and after the mark */
};

/* Batches and marks until it is killed. */
static _Noreturn void work(struct spool_test *t, struct page *page, unsigned int seed)
{
	uint64_t sequences[64];

	for (;;) {
		int n = 1 + rand_r(&seed) % 5;
		uint64_t settle = 0;

		page->n_begun = t->n_records + (uint64_t)n;
		spool_test_batch(t, n);
		page->n_ended = t->n_records;
		if (rand_r(&seed) % 2)
			settle = (t->n_records - page->n_settled) / 2;
		if (settle > 64)
			settle = 64;
		for (uint64_t i = 0; i < settle; i++)
			sequences[i] = t->places[page->n_settled + i].sequence;
		page->n_settling = page->n_settled + settle;
		for (uint64_t endpoint = 1; settle && endpoint <= 2; endpoint++)
			expect_eq(spool_mark(t->spool, endpoint, SPOOL_SETTLED, sequences, settle),
				  0);
		page->n_settled = page->n_settling;
	}
}

/* All that was ended and not being settled is there; nothing settled is; of the batch that was
 * being written what is missing is known. */
static void judge(const struct spool_test *t, const struct page *page)
{
	uint64_t n_whole = 0, n_last = 0;

	for (size_t i = 0; i < t->n_found; i++) {
		uint64_t index = t->found[i].index;

		expect(index >= page->n_settled && index < page->n_begun);
		n_whole += index >= page->n_settling && index < page->n_ended;
		n_last += index >= page->n_ended;
	}
	expect_eq(n_whole, page->n_ended - page->n_settling);
	expect(spool_lost(t->spool) <= BATCH_SAMPLES(page->n_begun - page->n_ended));
	if (n_last)
		expect_eq(spool_lost(t->spool) + BATCH_SAMPLES(n_last),
			  BATCH_SAMPLES(page->n_begun - page->n_ended));
}

/* The next run knows where each record is, and goes on with the numbers. */
static void go_on(struct spool_test *t, struct page *page)
{
	for (size_t i = 0; i < t->n_found; i++)
		t->places[t->found[i].index] = t->found[i].place;
	t->n_records = t->n_found ? t->found[t->n_found - 1].index + 1 : page->n_begun;
	if (t->n_records < page->n_ended)
		t->n_records = page->n_ended;
	page->n_begun = page->n_ended = t->n_records;
	if (page->n_settling > page->n_settled)
		page->n_settled = page->n_settling;
}

static void settle_rest(struct spool_test *t, struct page *page)
{
	for (size_t i = 0; i < t->n_found; i++)
		for (uint64_t endpoint = 1; endpoint <= 2; endpoint++)
			expect_eq(spool_mark(t->spool, endpoint, SPOOL_SETTLED,
					     &t->found[i].place.sequence, 1),
				  0);
	memset(page, 0, sizeof(*page));
	t->n_records = 0;
}

/* The kernel kills this process, wherever it is then. */
static void kill_after(int64_t ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec once = {.it_value = {.tv_nsec = ns + 1}};
	timer_t timer;

	expect_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	expect_eq(timer_settime(timer, 0, &once, NULL), 0);
}

/* kill -9 at any time costs the batch that was being written at most. */
TEST(kill_9_costs_a_batch_at_most)
{
	static struct spool_test t;
	const char *text = getenv("ANDIRON_SPOOL_KILLS");
	long kills = text ? strtol(text, NULL, 10) : 200;
	struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int seed = 17;

	expect(page != MAP_FAILED);
	alarm((unsigned int)(60 + kills / 5));
	spool_test_open(&t, 0, 16 << 10);
	for (long i = 0; i < kills; i++) {
		int64_t after_ns = rand_r(&seed) % 4000000;
		pid_t pid;

		spool_close(t.spool);
		pid = fork();
		if (pid == 0) {
			spool_test_find(&t);
			go_on(&t, page);
			kill_after(after_ns);
			work(&t, page, seed);
		}
		expect_eq(waitpid(pid, NULL, 0), pid);
		spool_test_find(&t);
		judge(&t, page);
		settle_rest(&t, page);
	}
	expect_eq(t.n_evicted, 0);
	spool_test_close(&t);
	munmap(page, sizeof(*page));
}

/* An operation of the recorded run. */
struct op {
	enum spool_operation kind;
	uint64_t segment, offset;
	struct buf data;
};

struct history {
	VEC(struct op) ops;
	/* Of each record: how many operations had been done when it was safe, and when it was about
	 * to be settled; and when "sent" was safe. */
	size_t safe[512], settling[512], sent[512];
};

static int record_op(void *context, const struct spool_op *op)
{
	struct history *h = context;
	struct op copy = {.kind = op->kind, .segment = op->segment, .offset = op->offset};

	buf_str_append(&copy.data, op->data);
	expect(vec_push(&h->ops, copy));
	return 0;
}

static void settle(struct spool_test *t, struct history *h, uint64_t index)
{
	h->settling[index] = h->ops.n;
	for (uint64_t endpoint = 1; endpoint <= 2; endpoint++)
		expect_eq(spool_mark(t->spool, endpoint, SPOOL_SETTLED, &t->places[index].sequence,
				     1),
			  0);
	spool_release(t->spool, &t->places[index]);
}

/* A run with several segments, some of which leave. */
static void run_recorded(struct spool_test *t, struct history *h)
{
	unsigned int seed = 23;

	for (int batch = 0; batch < 40; batch++) {
		uint64_t first = t->n_records;

		spool_test_batch(t, 1 + rand_r(&seed) % 3);
		for (uint64_t i = first; i < t->n_records; i++) {
			h->safe[i] = h->ops.n;
			h->settling[i] = h->sent[i] = SIZE_MAX;
		}
		if (rand_r(&seed) % 3 == 0) {
			expect_eq(spool_mark(t->spool, 1, SPOOL_SENT, &t->places[first].sequence,
					     1),
				  0);
			expect_eq(spool_sync(t->spool), 0);
			h->sent[first] = h->ops.n;
		}
		for (uint64_t i = 0; i < first; i++)
			if (h->settling[i] == SIZE_MAX && rand_r(&seed) % 4 == 0)
				settle(t, h, i);
	}
	expect(t->n_records < 512);
}

/* A file as it is on the disk when the power fails. */
struct file {
	uint64_t segment;
	bool exists;         /* its name has been synced */
	bool made, gone;     /* created, removed, since the directory was synced */
	struct buf synced;   /* its content for sure */
	VEC(size_t) pending; /* operations since its last sync */
};

struct disk {
	VEC(struct file) files;
};

static struct file *file_of(struct disk *d, uint64_t segment)
{
	vec_each (&d->files, f)
		if (f->segment == segment)
			return f;
	expect(vec_push(&d->files, ((struct file){.segment = segment})));
	return &d->files.p[d->files.n - 1];
}

static void put_bytes(struct buf *b, uint64_t offset, struct str data)
{
	while (b->n < offset)
		buf_putc(b, '\0'); /* a hole */
	if (b->n < offset + data.n)
		expect(buf_reserve(b, offset + data.n - b->n));
	if (data.n)
		memcpy(b->p + offset, data.p, data.n);
	if (b->n < offset + data.n)
		b->n = offset + data.n;
}

static void sync_file(const struct history *h, struct file *f)
{
	vec_each (&f->pending, i)
		put_bytes(&f->synced, h->ops.p[*i].offset, buf_str(&h->ops.p[*i].data));
	f->pending.n = 0;
}

/* Names change in their order: a directory is a journal. */
static void sync_names(struct disk *d)
{
	vec_each (&d->files, f) {
		f->exists |= f->made;
		f->exists &= !f->gone;
		f->made = f->gone = false;
	}
}

static void play(const struct history *h, struct disk *d, size_t i)
{
	struct file *f = file_of(d, h->ops.p[i].segment);

	switch (h->ops.p[i].kind) {
	case SPOOL_CREATE:
		f->made = true;
		break;
	case SPOOL_WRITE:
		expect(vec_push(&f->pending, i));
		break;
	case SPOOL_SYNC:
		sync_file(h, f);
		break;
	case SPOOL_SYNC_DIRECTORY:
		sync_names(d);
		break;
	case SPOOL_UNLINK:
		f->gone = true;
		break;
	}
}

#define DROPPED 0
#define TORN    1 /* all there, but half of the last */
#define PARTLY  2 /* any of it, any of it torn */

/* The file's bytes after the failure. */
static void content(const struct history *h, const struct file *f, int how, unsigned int *seed,
		    struct buf *out)
{
	buf_str_append(out, buf_str(&f->synced));
	for (size_t i = 0; how != DROPPED && i < f->pending.n; i++) {
		const struct op *op = &h->ops.p[f->pending.p[i]];
		struct str data = buf_str(&op->data);
		int fate = rand_r(seed) % 3;

		if (how == TORN && i + 1 == f->pending.n)
			data.n /= 2;
		else if (how == PARTLY && fate == 0)
			continue;
		else if (how == PARTLY && fate == 1)
			data.n = (size_t)rand_r(seed) % data.n;
		put_bytes(out, op->offset, data);
	}
}

static void write_file(const char *directory, uint64_t segment, struct str data)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%016llx.spool", directory, (unsigned long long)segment);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	expect(fd >= 0);
	expect_eq(write(fd, data.p, data.n), data.n);
	close(fd);
}

/* Names that were not synced have changed on the disk, or not. */
static void write_disk(const struct history *h, const struct disk *d, const char *directory,
		       int how, unsigned int *seed)
{
	bool late = how == TORN || (how == PARTLY && rand_r(seed) % 2);

	vec_each (&d->files, f) {
		struct buf bytes = BUF_NULL;
		bool there = late ? (f->exists || f->made) && !f->gone : f->exists;

		if (there) {
			content(h, f, how, seed, &bytes);
			write_file(directory, f->segment, buf_str(&bytes));
		}
		buf_free(&bytes);
	}
}

static const struct test_found *find(const struct spool_test *t, uint64_t index)
{
	for (size_t i = 0; i < t->n_found; i++)
		if (t->found[i].index == index)
			return &t->found[i];
	return NULL;
}

/* What was safe at operation k and not about to be settled is there. */
static void judge_history(const struct spool_test *t, const struct history *h, uint64_t n_records,
			  size_t k)
{
	for (uint64_t i = 0; i < n_records; i++) {
		const struct test_found *f = find(t, i);

		if (h->safe[i] <= k && h->settling[i] >= k && !f)
			test_fail(__FILE__, __LINE__, "record %llu is gone at operation %zu",
				  (unsigned long long)i, k);
		if (f && h->sent[i] <= k)
			expect(f->sent & 1 || !(f->owed & 1));
	}
}

static void fail_at(const struct history *h, const struct disk *d, uint64_t n_records, size_t k)
{
	for (int how = DROPPED; how <= PARTLY; how++) {
		static struct spool_test t;
		unsigned int seed = (unsigned int)(k * 3) + (unsigned int)how;

		spool_test_open(&t, 0, 2 << 10);
		spool_close(t.spool);
		/* Not the segment that opening it made. */
		test_directory_clear(t.directory);
		write_disk(h, d, t.directory, how, &seed);
		spool_test_find(&t);
		judge_history(&t, h, n_records, k);
		t.n_records = 0;
		spool_test_batch(&t, 1); /* it goes on */
		spool_test_close(&t);
	}
}

/* Power that fails at any moment costs the batch that was being written. */
TEST(power_may_fail_at_any_moment)
{
	static struct spool_test t;
	static struct history h;
	struct disk d = {0};

	alarm(240);
	spool_test_open(&t, 0, 2 << 10);
	spool_close(t.spool);
	test_directory_clear(t.directory);
	t.options.before = record_op;
	t.options.context = &h;
	spool_test_find(&t);
	run_recorded(&t, &h);
	expect(h.ops.n > 150);
	for (size_t k = 0; k < h.ops.n; k++) {
		fail_at(&h, &d, t.n_records, k);
		play(&h, &d, k);
	}
	fail_at(&h, &d, t.n_records, h.ops.n);
	spool_test_close(&t);
	vec_each (&d.files, f) {
		buf_free(&f->synced);
		vec_free(&f->pending);
	}
	vec_free(&d.files);
	vec_each (&h.ops, op)
		buf_free(&op->data);
	vec_free(&h.ops);
}
