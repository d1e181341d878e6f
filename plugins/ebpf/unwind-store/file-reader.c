/* SPDX-License-Identifier: Apache-2.0 */
/* See file-reader.h. Requests and what comes of them are lists under one lock. The end of a file is
 * the request itself, moved from one list to the other, so it needs no memory. The descriptor is
 * written when a file has ended or the queue is half full: a wake-up for each page would cost more
 * than the page. */
#include "ebpf/unwind-store/file-reader.h"

#include "base/check.h"
#include "base/clock.h"
#include "proc/thread.h"
#include "unwind/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct item {
	struct item *next;
	size_t bytes; /* that it counts for */
	struct file_reading reading;
	_Alignas(8) uint8_t data[]; /* rules, and the page behind them */
};

struct list {
	struct item *first, **end;
};

struct file_reader {
	unwind_read_fn read;
	void *context;
	int fd;
	bool started;
	pthread_t thread;
	struct item *taken; /* by file_reader_take, freed by the next one */

	pthread_mutex_t lock;
	pthread_cond_t asked, room;
	/* Under the lock: */
	struct list requests, readings;
	size_t bytes; /* of readings */
	bool stopped;
};

/* The file that is being read; the thread's own. */
struct reading {
	struct file_reader *reader;
	struct item *item;
	struct pages_maker *maker;
	struct unwind_entry rules[UNWIND_PAGE_RULES]; /* of the page that is being made */
	uint32_t n_rules;
	uint64_t base;
	bool begun;
};

static void push(struct list *l, struct item *item)
{
	item->next = NULL;
	*l->end = item;
	l->end = &item->next;
}

static struct item *pop(struct list *l)
{
	struct item *item = l->first;

	if (!item)
		return NULL;
	l->first = item->next;
	if (!l->first)
		l->end = &l->first;
	return item;
}

static void wake(const struct file_reader *r)
{
	uint64_t one = 1;

	/* It counts to 2^64, so this never blocks. */
	check(write(r->fd, &one, sizeof(one)) == sizeof(one));
}

/* Hands an item to whoever takes; waits for room. False: nobody will take it. */
static bool put(struct file_reader *r, struct item *item)
{
	bool stopped;

	pthread_mutex_lock(&r->lock);
	while (!r->stopped && r->bytes >= FILE_READER_BYTES)
		pthread_cond_wait(&r->room, &r->lock);
	stopped = r->stopped;
	push(&r->readings, item);
	r->bytes += item->bytes;
	if (item->reading.ended ||
	    (r->bytes >= FILE_READER_BYTES / 2 && r->bytes - item->bytes < FILE_READER_BYTES / 2))
		wake(r);
	pthread_mutex_unlock(&r->lock);
	return !stopped;
}

static int32_t on_number(void *context, uint64_t rule, uint64_t aux)
{
	struct reading *g = context;

	check(g->n_rules < UNWIND_PAGE_RULES);
	g->rules[g->n_rules++] = (struct unwind_entry){rule, aux};
	return (int32_t)g->n_rules;
}

static int on_page(void *context, uint32_t number, const void *bytes, size_t n,
		   const uint16_t *rules, size_t n_rules)
{
	struct reading *g = context;
	size_t n_words = g->n_rules * sizeof(g->rules[0]);
	struct item *item = malloc(sizeof(*item) + n_words + n);

	if (!item)
		return -ENOMEM;
	*item = (struct item){.bytes = sizeof(*item) + n_words + n,
			      .reading = {.request = g->item->reading.request,
					  .base = g->base,
					  .number = number,
					  .bytes = item->data + n_words,
					  .n = n,
					  .rules = (const void *)item->data,
					  .n_rules = g->n_rules}};
	memcpy(item->data, g->rules, n_words);
	memcpy(item->data + n_words, bytes, n);
	g->n_rules = 0;
	return put(g->reader, item) ? 0 : -ECANCELED;
}

static int on_row(void *context, const struct elf_row *row)
{
	struct reading *g = context;

	if (!g->begun && row->rule) {
		g->begun = true;
		g->base = row->address & ~((UINT64_C(1) << UNWIND_PAGE_BITS) - 1);
	}
	g->item->reading.any_aux |= row->rule && row->aux;
	return pages_add(g->maker, row);
}

static int read_pages(struct reading *g)
{
	struct file_reader *r = g->reader;
	struct file_reading *end = &g->item->reading;
	const struct elf_rows_options options = {.aux = end->request.aux};
	struct error err = ERROR_NULL;
	struct pages_stats stats;
	uint64_t base;
	int result;

	g->maker = pages_new(on_number, on_page, g);
	if (!g->maker)
		return -ENOMEM;
	result = r->read(r->context, end->request.mapped, &options, on_row, g, &err);
	if (result == 0)
		result = pages_finish(g->maker, &base);
	pages_get_stats(g->maker, &stats);
	pages_free(g->maker);
	check(result != 0 || stats.pages == 0 || base == g->base);
	end->pages = stats.pages;
	end->rows = stats.rows;
	end->lost = stats.lost;
	end->base = g->base;
	return result;
}

static struct item *next_request(struct file_reader *r)
{
	struct item *item;

	pthread_mutex_lock(&r->lock);
	while (!r->stopped && !r->requests.first)
		pthread_cond_wait(&r->asked, &r->lock);
	item = r->stopped ? NULL : pop(&r->requests);
	pthread_mutex_unlock(&r->lock);
	return item;
}

static void *run(void *arg)
{
	struct file_reader *r = arg;
	struct item *item;

	while ((item = next_request(r))) {
		struct reading g = {.reader = r, .item = item};
		int64_t start = clock_mono();

		item->reading.result = read_pages(&g);
		item->reading.ns = (uint64_t)(clock_mono() - start);
		item->reading.ended = true;
		put(r, item);
	}
	return NULL;
}

struct file_reader *file_reader_new(unwind_read_fn read, void *context)
{
	struct file_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->fd < 0) {
		free(r);
		return NULL;
	}
	r->read = read;
	r->context = context;
	r->requests.end = &r->requests.first;
	r->readings.end = &r->readings.first;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->asked, NULL);
	pthread_cond_init(&r->room, NULL);
	return r;
}

static void drop_all(struct list *l)
{
	struct item *item;

	while ((item = pop(l)))
		free(item);
}

void file_reader_free(struct file_reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopped = true;
	pthread_cond_broadcast(&r->asked);
	pthread_cond_broadcast(&r->room);
	pthread_mutex_unlock(&r->lock);
	if (r->started)
		pthread_join(r->thread, NULL);
	drop_all(&r->requests);
	drop_all(&r->readings);
	free(r->taken);
	pthread_cond_destroy(&r->asked);
	pthread_cond_destroy(&r->room);
	pthread_mutex_destroy(&r->lock);
	close(r->fd);
	free(r);
}

int file_reader_add(struct file_reader *r, const struct file_request *request)
{
	struct item *item = calloc(1, sizeof(*item));

	if (!item)
		return -ENOMEM;
	item->reading.request = *request;
	if (!r->started) {
		if (thread_start(&r->thread, NULL, run, r) != 0) {
			free(item);
			return -EAGAIN;
		}
		pthread_setname_np(r->thread, "unwind-reader");
		r->started = true;
	}
	pthread_mutex_lock(&r->lock);
	push(&r->requests, item);
	pthread_cond_signal(&r->asked);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

int file_reader_fd(const struct file_reader *r)
{
	return r->fd;
}

bool file_reader_take(struct file_reader *r, struct file_reading *ret)
{
	struct item *item;
	uint64_t count;

	free(r->taken);
	pthread_mutex_lock(&r->lock);
	item = r->taken = pop(&r->readings);
	check(!item || r->bytes >= item->bytes);
	if (item)
		r->bytes -= item->bytes;
	else if (read(r->fd, &count, sizeof(count)) < 0)
		check(errno == EAGAIN);
	pthread_cond_signal(&r->room);
	pthread_mutex_unlock(&r->lock);
	if (item)
		*ret = item->reading;
	return item != NULL;
}
