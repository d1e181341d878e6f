/* SPDX-License-Identifier: Apache-2.0 */
/* The spool in good and in bad days: what is kept, what goes, what is refused. */
#include "base/buf.h"
#include "testing/test.h"
#include "pyroscope-push/tests/test-spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What was not settled comes back whole, oldest first, with its books. */
TEST(what_is_owed_comes_back)
{
	struct spool_test t;
	uint64_t sequences[2];

	spool_test_open(&t, 0, 0);
	spool_test_batch(&t, 5);
	spool_test_batch(&t, 5);
	sequences[0] = t.places[2].sequence;
	sequences[1] = t.places[7].sequence;
	expect_eq(spool_mark(t.spool, 1, SPOOL_SETTLED, sequences, 2), 0);
	expect_eq(spool_mark(t.spool, 2, SPOOL_SETTLED, sequences, 1), 0);
	expect_eq(spool_mark(t.spool, 2, SPOOL_SENT, sequences + 1, 1), 0);
	expect_eq(spool_bytes(t.spool), spool_test_size(&t));
	spool_test_reopen(&t);
	expect_eq(t.n_found, 9); /* of record 2 nobody is left */
	expect_eq(spool_last_time(t.spool), 1009);
	expect_eq(spool_lost(t.spool), 0);
	for (size_t i = 0; i < 9; i++) {
		const struct test_found *f = &t.found[i];

		expect_eq(f->index, i + (i >= 2));
		expect_eq(f->owed, f->index == 7 ? 2 : 3);
		expect_eq(f->sent, f->index == 7 ? 2 : 0);
	}
	spool_test_close(&t);
}

/* A mark that takes another back. */
TEST(what_was_surely_refused_is_not_sent)
{
	struct spool_test t;

	spool_test_open(&t, 0, 0);
	spool_test_batch(&t, 1);
	expect_eq(spool_mark(t.spool, 1, SPOOL_SENT, &t.places[0].sequence, 1), 0);
	expect_eq(spool_mark(t.spool, 1, SPOOL_UNSENT, &t.places[0].sequence, 1), 0);
	spool_test_reopen(&t);
	expect_eq(t.n_found, 1);
	expect_eq(t.found[0].sent, 0);
	spool_test_close(&t);
}

/* Over many segments the files never pass the limit, and what goes for it is told, oldest first. */
TEST(the_limit_is_never_passed)
{
	struct spool_test t;

	spool_test_open(&t, 64 << 10, 8 << 10);
	for (int i = 0; i < 200; i++) {
		spool_test_batch(&t, 3);
		expect(spool_test_size(&t) <= 64 << 10);
		expect_eq(spool_bytes(t.spool), spool_test_size(&t));
	}
	expect(t.n_evicted > 10);
	spool_test_reopen(&t);
	expect(t.n_found > 10 && t.n_found < 300);
	expect_eq(t.found[t.n_found - 1].index, 599);
	spool_test_close(&t);
}

/* What nobody needs goes from the front, so a spool that is kept up with stays small. */
TEST(what_is_settled_leaves_the_disk)
{
	struct spool_test t;

	spool_test_open(&t, 0, 8 << 10);
	for (int i = 0; i < 300; i++) {
		spool_test_batch(&t, 1);
		for (uint64_t endpoint = 1; endpoint <= 2; endpoint++)
			expect_eq(spool_mark(t.spool, endpoint, SPOOL_SETTLED,
					     &t.places[i].sequence, 1),
				  0);
		spool_release(t.spool, &t.places[i]);
		expect(spool_test_size(&t) <= 24 << 10);
	}
	spool_test_reopen(&t);
	expect_eq(t.n_found, 0);
	expect_eq(spool_last_time(t.spool), 1299);
	spool_test_close(&t);
}

/* A batch without an end was being written when the process died: what is missing of it is known,
 * and told once. */
TEST(a_batch_without_an_end_is_told_of)
{
	struct spool_test t;

	spool_test_open(&t, 0, 0);
	spool_test_batch(&t, 2);
	expect_eq(spool_begin(t.spool, 100), 0);
	spool_test_append(&t); /* of 3 samples */
	spool_test_reopen(&t);
	expect_eq(t.n_found, 3);
	expect_eq(spool_lost(t.spool), 97);
	spool_test_reopen(&t);
	expect_eq(spool_lost(t.spool), 0);
	spool_test_close(&t);
}

/* A record larger than the spool is the caller's to keep. */
TEST(what_is_too_large_is_refused)
{
	struct spool_test t;
	struct spool_item item = {.message = {NULL, 40 << 10}};
	struct spool_place place;
	char *bytes = calloc(1, 40 << 10);

	spool_test_open(&t, 64 << 10, 0);
	item.message.p = bytes;
	expect_eq(spool_append(t.spool, &item, &place), -E2BIG);
	spool_test_batch(&t, 3);
	expect_eq(spool_failure(t.spool), 0);
	spool_test_reopen(&t);
	expect_eq(t.n_found, 3);
	free(bytes);
	spool_test_close(&t);
}

static int refuse_nth(void *context, const struct spool_op *op)
{
	int *n = context;

	return op->kind != SPOOL_UNLINK && (*n)-- == 0 ? -ENOSPC : 0;
}

/* Whatever operation a full disk refuses, what was kept before and what is kept afterwards is
 * there. */
TEST(a_failure_costs_the_record_only)
{
	for (int nth = 0; nth < 60; nth++) {
		struct spool_test t;
		int left = nth;
		size_t kept = 0;

		spool_test_open(&t, 0, 4 << 10);
		t.options.before = refuse_nth;
		t.options.context = &left;
		spool_test_reopen(&t);
		for (int i = 0; i < 20; i++) {
			spool_begin(t.spool, 1);
			kept += spool_test_try(&t) == 0;
			spool_end(t.spool);
		}
		expect(kept >= 19);
		t.options.before = NULL;
		spool_test_reopen(&t);
		expect_eq(t.n_found, kept);
		spool_test_close(&t);
	}
}

/* A disk that takes nothing: what is there can be read all the same. */
TEST(a_full_disk_can_be_read)
{
	struct spool_test t;
	struct buf message = BUF_NULL;
	int left = 0;

	spool_test_open(&t, 0, 0);
	spool_test_batch(&t, 4);
	t.options.before = refuse_nth;
	t.options.context = &left;
	spool_test_reopen(&t);
	expect_eq(spool_failure(t.spool), -ENOSPC);
	expect_eq(t.n_found, 4);
	expect_eq(spool_read(t.spool, &t.found[0].place, &message), 0);
	buf_free(&message);
	spool_test_close(&t);
}

/* Two writers never share a spool; nor do two formats, or two kinds. */
TEST(a_spool_has_one_owner)
{
	struct spool_test t;
	struct spool_options options;
	struct error err = ERROR_NULL;
	struct spool_events events = {0};
	struct spool *other;
	char path[128];
	int fd;

	spool_test_open(&t, 0, 0);
	spool_test_batch(&t, 1);
	options = t.options;
	expect_eq(spool_open(&options, &events, &other, &err), -EBUSY);
	expect(strstr(err.text, "in use by another writer"));
	spool_close(t.spool);
	options.owner = "parca.write";
	expect_eq(spool_open(&options, &events, &other, &err), -EINVAL);
	expect(strstr(err.text, "another kind of writer left (pyroscope.write)"));
	/* The version stands behind the first head; its checksum goes with it. */
	snprintf(path, sizeof(path), "%s/0000000000000001.spool", t.directory);
	fd = open(path, O_RDWR);
	spool_test_newer(fd);
	close(fd);
	options.owner = t.options.owner;
	expect_eq(spool_open(&options, &events, &other, &err), -ENOTSUP);
	expect(strstr(err.text, "a newer andiron wrote the spool"));
	options.directory = "/dev/null/spool";
	expect_eq(spool_open(&options, &events, &other, &err), -ENOTDIR);
	t.spool = NULL;
	spool_test_close(&t);
}

/* Any byte of any segment may be anything: what comes back was written. */
TEST(damaged_spools_open)
{
	unsigned int seed = 9;

	for (int run = 0; run < 300; run++) {
		struct spool_test t;

		spool_test_open(&t, 0, 2 << 10);
		spool_test_batch(&t, 4);
		spool_test_batch(&t, 4);
		spool_close(t.spool);
		spool_test_damage(&t, &seed);
		spool_test_find(&t); /* checks what it finds */
		spool_test_batch(&t, 1);
		spool_test_reopen(&t);
		expect(t.n_found >= 1);
		spool_test_close(&t);
	}
}

static int use(void *context)
{
	struct spool_test t;
	int rc = spool_test_try_open(&t);

	(void)context;
	if (rc == 0)
		rc = spool_begin(t.spool, 3);
	if (rc == 0)
		rc = spool_test_try(&t);
	if (rc == 0)
		rc = spool_mark(t.spool, 1, SPOOL_SENT, &t.places[0].sequence, 1);
	if (rc == 0) {
		spool_close(t.spool);
		rc = spool_open(&t.options, &t.events, &t.spool, NULL);
		if (rc)
			t.spool = NULL;
	}
	spool_test_close(&t);
	return rc;
}

TEST(spools_survive_short_memory)
{
	test_each_failing_allocation(use, NULL);
}
