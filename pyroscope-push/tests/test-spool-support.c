/* SPDX-License-Identifier: Apache-2.0 */
/* Spools for tests. Contract in test-spool.h. */
#include "pyroscope-push/tests/test-spool.h"

#include "testing/test.h"
#include "pyroscope-push/spool/spool-entry.h"
#include "pyroscope-push/tests/test-directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLES 3

void spool_test_message(uint64_t index, struct buf *out)
{
	unsigned int seed = (unsigned int)index;
	size_t n = (size_t)rand_r(&seed) % 600;

	buf_append(out, &index, sizeof(index));
	for (size_t i = 0; i < n; i++)
		buf_putc(out, (char)rand_r(&seed));
}

static uint32_t bits(const uint64_t *ids, size_t n)
{
	uint32_t all = 0;

	for (size_t i = 0; i < n; i++)
		all |= 1u << (ids[i] - 1);
	return all;
}

static void on_found(void *context, const struct spool_found *found)
{
	struct spool_test *t = context;
	struct test_found *f = &t->found[t->n_found++];

	expect(t->n_found < TEST_SPOOL_MAX);
	f->place = found->place;
	f->owed = bits(found->endpoints, found->n_endpoints);
	f->sent = bits(found->sent, found->n_sent);
	f->index = (uint64_t)found->time_ns - 1000;
	expect_eq(found->samples, SAMPLES);
}

static void on_evicted(void *context, uint64_t segment)
{
	struct spool_test *t = context;

	expect(segment > 0);
	t->n_evicted++;
}

static void judge_all(struct spool_test *t)
{
	for (size_t i = 0; i < t->n_found; i++) {
		struct test_found *f = &t->found[i];
		struct buf message = BUF_NULL, expected = BUF_NULL;

		expect_eq(spool_read(t->spool, &f->place, &message), 0);
		spool_test_message(f->index, &expected);
		expect(str_eq(buf_str(&message), buf_str(&expected)));
		buf_free(&message);
		buf_free(&expected);
	}
}

void spool_test_find(struct spool_test *t)
{
	struct error err = ERROR_NULL;

	t->n_found = 0;
	if (spool_open(&t->options, &t->events, &t->spool, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	judge_all(t);
}

static void prepare(struct spool_test *t)
{
	memset(t, 0, sizeof(*t));
	test_directory_make(t->directory, sizeof(t->directory));
	t->options = (struct spool_options){.directory = t->directory,
					    .owner = "pyroscope.write",
					    .max_bytes = SPOOL_MIN_BYTES};
	t->events = (struct spool_events){t, on_found, on_evicted};
}

void spool_test_open(struct spool_test *t, uint64_t max_bytes, uint64_t segment_bytes)
{
	prepare(t);
	if (max_bytes)
		t->options.max_bytes = max_bytes;
	t->options.segment_bytes = segment_bytes;
	spool_test_find(t);
}

int spool_test_try_open(struct spool_test *t)
{
	int rc;

	prepare(t);
	rc = spool_open(&t->options, &t->events, &t->spool, NULL);
	if (rc)
		t->spool = NULL;
	return rc;
}

void spool_test_reopen(struct spool_test *t)
{
	spool_close(t->spool);
	spool_test_find(t);
}

void spool_test_close(struct spool_test *t)
{
	spool_close(t->spool);
	test_directory_clear(t->directory);
	rmdir(t->directory);
}

int spool_test_try(struct spool_test *t)
{
	static const uint64_t endpoints[] = {1, 2};
	struct buf message = BUF_NULL;
	struct spool_item item = {.time_ns = 1000 + (int64_t)t->n_records,
				  .samples = SAMPLES,
				  .endpoints = endpoints,
				  .n_endpoints = 2};
	int rc;

	expect(t->n_records < TEST_SPOOL_MAX);
	spool_test_message(t->n_records, &message);
	item.message = buf_str(&message);
	item.raw_bytes = message.n;
	rc = message.failed ? -ENOMEM : spool_append(t->spool, &item, &t->places[t->n_records]);
	if (rc == 0)
		t->n_records++;
	buf_free(&message);
	return rc;
}

void spool_test_append(struct spool_test *t)
{
	expect_eq(spool_test_try(t), 0);
}

void spool_test_batch(struct spool_test *t, int n)
{
	expect_eq(spool_begin(t->spool, (uint64_t)n * SAMPLES), 0);
	for (int i = 0; i < n; i++)
		spool_test_append(t);
	expect_eq(spool_end(t->spool), 0);
}

/* Calls `see` for every segment file. */
static void each_file(const struct spool_test *t, void (*see)(void *context, int fd), void *context)
{
	DIR *dir = opendir(t->directory);
	const struct dirent *entry;

	expect(dir);
	while ((entry = readdir(dir))) {
		int fd;

		if (!strstr(entry->d_name, ".spool"))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR);
		expect(fd >= 0);
		see(context, fd);
		close(fd);
	}
	closedir(dir);
}

static void add_size(void *context, int fd)
{
	struct stat st;

	expect_eq(fstat(fd, &st), 0);
	*(uint64_t *)context += (uint64_t)st.st_size;
}

uint64_t spool_test_size(const struct spool_test *t)
{
	uint64_t sum = 0;

	each_file(t, add_size, &sum);
	return sum;
}

static void damage(void *context, int fd)
{
	unsigned int *seed = context;
	struct stat st;

	expect_eq(fstat(fd, &st), 0);
	if (!st.st_size || rand_r(seed) % 3 == 0)
		return;
	if (rand_r(seed) % 4 == 0)
		expect_eq(ftruncate(fd, rand_r(seed) % st.st_size), 0);
	for (int i = rand_r(seed) % 4; i > 0; i--) {
		char c = (char)rand_r(seed);

		expect_eq(pwrite(fd, &c, 1, rand_r(seed) % st.st_size), 1);
	}
}

void spool_test_damage(const struct spool_test *t, unsigned int *seed)
{
	each_file(t, damage, seed);
}

void spool_test_newer(int fd)
{
	char head[ENTRY_HEAD_BYTES + 16 + ENTRY_OWNER_BYTES];

	expect_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
	head[ENTRY_HEAD_BYTES] = 9;
	entry_seal(head, ENTRY_HEAD, UINT64_C(1) << 32, sizeof(head) - ENTRY_HEAD_BYTES);
	expect_eq(pwrite(fd, head, sizeof(head), 0), sizeof(head));
}
