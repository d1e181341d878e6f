/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of Fluent Bit's profiles signal become batches, and damaged ones do nothing worse than to
 * be refused. */
#include "abi/batch-view.h"
#include "agents/fluent-bit/chunk.h"
#include "agents/fluent-bit/cprofiles.h"
#include "agents/fluent-bit/job.h"
#include "agents/fluent-bit/msgpack.h"
#include "base/buf.h"
#include "pprof/decode.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

static const struct chunk_head head = {7, 5000000000};

/* A map or an array of up to 15 entries, a short text, a small number. */
static void map(struct buf *b, int n)
{
	buf_putc(b, (char)(0x80 + n));
}

static void array(struct buf *b, int n)
{
	buf_putc(b, (char)(0x90 + n));
}

static void text(struct buf *b, const char *s)
{
	buf_putc(b, (char)(0xa0 + strlen(s)));
	buf_str_append(b, str_of(s));
}

static void number(struct buf *b, const char *key, int value)
{
	text(b, key);
	buf_putc(b, (char)value);
}

static void type(struct buf *b, const char *key, int kind, int unit)
{
	if (key)
		text(b, key);
	map(b, 2);
	number(b, "type", kind);
	number(b, "unit", unit);
}

static void put_tables(struct buf *b, int function_name)
{
	text(b, "mappings");
	array(b, 2);
	map(b, 0);
	map(b, 1);
	number(b, "filename", 5);
	text(b, "locations");
	array(b, 2);
	map(b, 0);
	map(b, 3);
	number(b, "mapping_index", 1);
	number(b, "address", 16);
	text(b, "lines");
	array(b, 1);
	map(b, 2);
	number(b, "function_index", 1);
	number(b, "line", 9);
	text(b, "functions");
	array(b, 2);
	map(b, 0);
	map(b, 1);
	number(b, "name", function_name);
	text(b, "attribute_table");
	map(b, 1);
	text(b, "");
	text(b, "");
	text(b, "string_table");
	array(b, 7);
	for (int i = 0; i < 7; i++)
		text(b, (const char *const[]){"", "samples", "count", "cpu", "nanoseconds",
					      "/bin/shop", "sell"}[i]);
}

/* One profile of one stack, with 3 samples of 10 ms. */
static void put_chunk(struct buf *b, const char *service, int function_name)
{
	map(b, 2);
	text(b, "meta");
	map(b, 0);
	text(b, "profiles");
	array(b, 1);
	map(b, 2);
	text(b, "resource");
	map(b, 1);
	text(b, "attributes");
	map(b, 1);
	text(b, "service.name");
	text(b, service);
	text(b, "scope_profiles");
	array(b, 1);
	map(b, 1);
	text(b, "profiles");
	array(b, 1);
	map(b, 10);
	text(b, "sample_types");
	array(b, 1);
	type(b, NULL, 1, 2);
	text(b, "sample");
	array(b, 1);
	map(b, 2);
	text(b, "location_index");
	array(b, 1);
	buf_putc(b, 1);
	text(b, "values");
	array(b, 1);
	buf_putc(b, 3);
	put_tables(b, function_name);
	type(b, "period_type", 3, 4);
	text(b, "period");
	buf_append(b, "\xce\x00\x98\x96\x80", 5);
	text(b, "something_new");
	array(b, 2);
	map(b, 0);
	buf_putc(b, (char)0xc0);
}

/* What stands there once. */
static void replace(struct buf *b, struct str from, struct str to)
{
	struct buf changed = BUF_NULL;
	char *at = memmem(b->p, b->n, from.p, from.n);
	size_t before;

	expect(at);
	before = (size_t)(at - b->p);
	buf_append(&changed, b->p, before);
	buf_str_append(&changed, to);
	buf_append(&changed, at + from.n, b->n - before - from.n);
	buf_free(b);
	*b = changed;
}

static const struct andiron_batch *read_batch(const struct buf *b, uint64_t *ret_left_out)
{
	const struct andiron_batch *batch = NULL;
	struct error err = ERROR_NULL;

	expect_eq(chunk_read(buf_str(b), &head, &batch, ret_left_out, &err), 0);
	return batch;
}

/* Each profile of a chunk is one of pprof, under its resource's labels; CPU time is nanoseconds. */
TEST(a_chunk_becomes_one_batch)
{
	struct buf b = BUF_NULL;
	const struct andiron_batch *batch;
	struct andiron_encoded e;
	struct andiron_group group;
	struct batch_view view;
	struct profile *p = NULL;
	struct str service;
	uint64_t left_out = 9;

	put_chunk(&b, "till", 6);
	put_chunk(&b, "shop", 6);
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(left_out, 0);
	expect_eq(batch_view_init(&view, batch), 0);
	expect_eq(batch_count(&view, ANDIRON_COL_ENCODED), 2);
	for (uint32_t i = 0; i < 2; i++) {
		group = batch_group(&view, i);
		expect(batch_group_label(&view, &group, STR("service_name"), &service));
		expect_str(service, i ? "shop" : "till");
	}
	e = batch_encoded(&view, 1);
	expect_eq(profile_decode(batch_encoded_bytes(&view, &e), &p, NULL), 0);
	expect_eq(p->n_samples, 1);
	expect_eq(p->values[0], 30000000);
	expect_str(p->functions[1].name, "sell");
	expect_str(p->mappings[1].file, "/bin/shop");
	profile_free(p);
	batch->release(batch->owner);
	buf_free(&b);
}

/* A profile that refers to what is not there costs itself alone, and is counted. */
TEST(a_profile_at_fault_is_left_out)
{
	struct buf b = BUF_NULL;
	const struct andiron_batch *batch = NULL;
	struct error err = ERROR_NULL;
	uint64_t left_out = 0;

	put_chunk(&b, "shop", 99);
	expect_eq(chunk_read(buf_str(&b), &head, &batch, &left_out, &err), 0);
	expect(!batch);
	expect_eq(left_out, 1);
	expect(err.text[0]);
	put_chunk(&b, "shop", 6);
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(left_out, 1);
	batch->release(batch->owner);
	buf_free(&b);
}

static int nothing(void *context, int result, struct str request)
{
	return 0;
}

/* A message with a service of this many bytes and as many profiles of a byte each. */
static void put_empty_profiles(struct buf *b, size_t service_bytes, unsigned int n)
{
	char *service = malloc(service_bytes);

	expect(service);
	memset(service, 's', service_bytes);
	map(b, 1);
	text(b, "profiles");
	array(b, 1);
	map(b, 2);
	text(b, "resource");
	map(b, 1);
	text(b, "attributes");
	map(b, 1);
	text(b, "service.name");
	buf_append(b, (const char[]){(char)0xdb, (char)(service_bytes >> 24),
				     (char)(service_bytes >> 16), (char)(service_bytes >> 8),
				     (char)service_bytes},
		   5);
	buf_append(b, service, service_bytes);
	text(b, "scope_profiles");
	array(b, 1);
	map(b, 1);
	text(b, "profiles");
	buf_append(b, (const char[]){(char)0xdc, (char)(n >> 8), (char)n}, 3);
	for (unsigned int i = 0; i < n; i++)
		map(b, 0);
	free(service);
}

struct sums {
	size_t n_bytes;
	unsigned int n, n_refused;
};

static int add_up(void *context, int result, struct str request)
{
	struct sums *sums = context;

	expect(result == 0 || result == -E2BIG);
	sums->n += result == 0;
	sums->n_refused += result != 0;
	sums->n_bytes += request.n;
	return 0;
}

/* However large a resource is, and however many profiles it has, what is made of it is bounded. */
TEST(a_resource_is_not_multiplied_without_bound)
{
	struct buf b = BUF_NULL;
	struct sums sums = {0};
	uint64_t left_out = 0;

	put_empty_profiles(&b, 1 << 20, 800);
	expect_eq(cprofiles_read(buf_str(&b), add_up, &sums), 0);
	expect(sums.n > 1 && sums.n + sums.n_refused == 800);
	expect(sums.n_bytes < 2 * CPROFILES_MAX_BYTES);
	expect(!read_batch(&b, &left_out));
	expect_eq(left_out, 800);
	buf_free(&b);
}

/* Fluent Bit joins messages of many senders in a chunk: those before and behind one that is broken
 * in any way are the batch all the same. */
TEST(a_broken_message_costs_itself)
{
	static const char *const broken[] = {
		"\x81\xa8profiles\x91\x81\xaescope_profiles\x91\x81\xa8profiles\x91\x2a",
		"\x81\xa8profiles\x91\x81\xaescope_profiles\x91\x2a",
		"\x81\xa8profiles\x91\x81\xa8resource\x2a",
		"\x81\xa8profiles\x2a",
		"\x2a",
	};

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		const struct andiron_batch *batch;
		struct buf b = BUF_NULL;
		uint64_t left_out;

		put_chunk(&b, "till", 6);
		buf_str_append(&b, str_of(broken[i]));
		put_chunk(&b, "shop", 6);
		batch = read_batch(&b, &left_out);
		expect(batch);
		expect_eq(batch->samples, 2);
		expect_eq(left_out, 1);
		batch->release(batch->owner);
		buf_free(&b);
	}
}

/* What stands before the end of a chunk that is cut off is the batch, and the rest is counted. */
TEST(a_chunk_that_is_cut_off_gives_what_it_has)
{
	const struct andiron_batch *batch;
	struct buf b = BUF_NULL;
	uint64_t left_out;

	put_chunk(&b, "shop", 6);
	buf_str_append(&b, STR("\x81\xa8profiles\x91"));
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(batch->samples, 1);
	expect_eq(left_out, 1);
	batch->release(batch->owner);
	buf_free(&b);
}

/* A message whose profile is too large for a batch, beside one that is not. */
TEST(a_profile_that_is_too_large_costs_itself)
{
	const struct andiron_batch *batch;
	struct buf b = BUF_NULL;
	uint64_t left_out;

	put_empty_profiles(&b, CPROFILES_MAX_BYTES, 1);
	put_chunk(&b, "shop", 6);
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(batch->samples, 1);
	expect_eq(left_out, 1);
	batch->release(batch->owner);
	buf_free(&b);
}

/* Fluent Bit says nil for a resource that nobody has named. */
TEST(a_profile_without_a_resource_is_read)
{
	struct buf b = BUF_NULL;
	const struct andiron_batch *batch;
	uint64_t left_out;

	put_chunk(&b, "shop", 6);
	replace(&b,
		STR("\x81\xaa"
		    "attributes\x81\xac"
		    "service.name\xa4shop"),
		STR("\xc0"));
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(left_out, 0);
	batch->release(batch->owner);
	buf_free(&b);
}

static int64_t value_at(const struct andiron_batch *batch, uint32_t at)
{
	struct profile *p = NULL;
	struct andiron_encoded e;
	struct batch_view view;
	int64_t value;

	expect_eq(batch_view_init(&view, batch), 0);
	e = batch_encoded(&view, at);
	expect_eq(profile_decode(batch_encoded_bytes(&view, &e), &p, NULL), 0);
	expect_eq(p->n_values, 1);
	value = p->values[0];
	profile_free(p);
	return value;
}

/* Of several types each is a profile with its own values. Samples that would become the time that
 * stands beside them are none. */
TEST(values_of_several_types_are_not_mixed)
{
	const struct andiron_batch *batch;
	struct buf b = BUF_NULL;
	uint64_t left_out;

	put_chunk(&b, "shop", 6);
	replace(&b, STR("\x91\x82\xa4type\x01\xa4unit\x02"),
		STR("\x92\x82\xa4type\x01\xa4unit\x02\x82\xa4type\x03\xa4unit\x04"));
	replace(&b, STR("\xa6values\x91\x03"), STR("\xa6values\x92\x03\xce\x01\xc9\xc3\x80"));
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(left_out, 0);
	expect_eq(batch->samples, 1);
	expect_eq(value_at(batch, 0), 30000000);
	batch->release(batch->owner);
	/* Without a period they are two things. */
	replace(&b, STR("\xa6period\xce\x00\x98\x96\x80"), STR("\xa6period\x00"));
	batch = read_batch(&b, &left_out);
	expect(batch);
	expect_eq(left_out, 0);
	expect_eq(batch->samples, 2);
	expect_eq(value_at(batch, 0), 3);
	expect_eq(value_at(batch, 1), 30000000);
	batch->release(batch->owner);
	buf_free(&b);
}

/* A chunk that is cut off anywhere is refused; with any byte changed it does no harm. */
TEST(damaged_chunks_are_read_safely)
{
	struct buf b = BUF_NULL;

	put_chunk(&b, "shop", 6);
	for (size_t n = 1; n < b.n; n++) {
		char *cut = malloc(n);

		expect(cut);
		memcpy(cut, b.p, n);
		expect_eq(cprofiles_read((struct str){cut, n}, nothing, NULL), -EBADMSG);
		free(cut);
	}
	for (size_t i = 0; i < b.n; i++)
		for (int bit = 0; bit < 8; bit++) {
			const struct andiron_batch *batch = NULL;
			struct error err = ERROR_NULL;
			uint64_t left_out;

			b.p[i] = (char)(b.p[i] ^ 1 << bit);
			if (chunk_read(buf_str(&b), &head, &batch, &left_out, &err) == 0 && batch)
				batch->release(batch->owner);
			b.p[i] = (char)(b.p[i] ^ 1 << bit);
		}
	buf_free(&b);
}

/* All types of msgpack's spec, each with what is behind it. */
TEST(every_type_of_msgpack_is_read)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum token_kind kind;
		int64_t number;
	} all[] = {
		{"\x7f", 1, TOKEN_NUMBER, 127},
		{"\xff", 1, TOKEN_NUMBER, -1},
		{"\xc0", 1, TOKEN_OTHER, 0},
		{"\xc3", 1, TOKEN_NUMBER, 1},
		{"\xcc\x80", 2, TOKEN_NUMBER, 128},
		{"\xcd\x01\x00", 3, TOKEN_NUMBER, 256},
		{"\xcf\0\0\0\1\0\0\0\0", 9, TOKEN_NUMBER, INT64_C(1) << 32},
		{"\xd0\x80", 2, TOKEN_NUMBER, -128},
		{"\xd2\xff\xff\xff\xfe", 5, TOKEN_NUMBER, -2},
		{"\xd3\xff\xff\xff\xff\xff\xff\xff\xfd", 9, TOKEN_NUMBER, -3},
		{"\xca\0\0\0\0", 5, TOKEN_OTHER, 0},
		{"\xcb\0\0\0\0\0\0\0\0", 9, TOKEN_OTHER, 0},
		{"\xd4\0\1", 3, TOKEN_OTHER, 0},
		{"\xc7\2\0\1\2", 5, TOKEN_OTHER, 0},
		{"\xa2hi", 3, TOKEN_TEXT, 0},
		{"\xd9\2hi", 4, TOKEN_TEXT, 0},
		{"\xda\0\2hi", 5, TOKEN_TEXT, 0},
		{"\xc4\2hi", 4, TOKEN_TEXT, 0},
		{"\x92\1\2", 3, TOKEN_ARRAY, 0},
		{"\xdc\0\1\1", 4, TOKEN_ARRAY, 0},
		{"\xdd\0\0\0\1\1", 6, TOKEN_ARRAY, 0},
		{"\x81\1\2", 3, TOKEN_MAP, 0},
		{"\xde\0\1\1\2", 5, TOKEN_MAP, 0},
		{"\xdf\0\0\0\1\1\2", 7, TOKEN_MAP, 0},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct str in = {all[i].bytes, all[i].n}, rest = in;
		struct token t;

		expect(msgpack_next(&in, &t));
		expect_eq(t.kind, all[i].kind);
		expect_eq((int64_t)t.number, all[i].number);
		expect(msgpack_skip(&rest));
		expect_eq(rest.n, 0);
		rest = (struct str){all[i].bytes, all[i].n - 1};
		expect(!msgpack_skip(&rest));
	}
}

static int with_little_memory(void *context)
{
	const struct andiron_batch *batch = NULL;
	struct error err = ERROR_NULL;
	uint64_t left_out;
	int r = chunk_read(buf_str(context), &head, &batch, &left_out, &err);

	if (r == 0 && batch)
		batch->release(batch->owner);
	return r;
}

/* Out of memory anywhere, nothing leaks and nothing is handed on in part. */
TEST(survives_out_of_memory)
{
	struct buf b = BUF_NULL;

	put_chunk(&b, "shop", 6);
	test_each_failing_allocation(with_little_memory, &b);
	buf_free(&b);
}

/* A flush that has left comes again with the same chunk: what it left is not read, or, where it was
 * read meanwhile, not offered. */
TEST(nothing_is_offered_for_a_flush_that_has_left)
{
	const struct andiron_batch *batch;
	struct error why = ERROR_NULL;
	struct buf b = BUF_NULL;

	put_chunk(&b, "shop", 6);
	for (int i = 0; i < 2; i++) {
		struct job *j = job_new(b.p, b.n);

		expect(j);
		if (i)
			job_read(j, &head);
		expect_eq(job_wait(j, 0, &why), -ETIMEDOUT);
		if (!i)
			job_read(j, &head);
		expect_eq(job_ready(j, &batch), -ECANCELED);
		expect(!batch);
		job_answer(j, -ECANCELED);
	}
	buf_free(&b);
}

/* The flush gets the answer, and why profiles were left out; where that is all, the chunk is at
 * fault. */
TEST(a_flush_is_told_what_was_left_out)
{
	for (int i = 0; i < 2; i++) {
		const struct andiron_batch *batch;
		struct error why = ERROR_NULL;
		struct buf b = BUF_NULL;
		struct job *j;

		put_chunk(&b, "shop", 99);
		if (i)
			put_chunk(&b, "shop", 6);
		j = job_new(b.p, b.n);
		expect(j);
		job_read(j, &head);
		expect_eq(job_ready(j, &batch), i ? 0 : -EBADMSG);
		expect_eq(!batch, !i);
		if (batch)
			batch->release(batch->owner);
		job_answer(j, i ? 0 : -EBADMSG);
		expect_eq(job_wait(j, 0, &why), i ? 0 : -EBADMSG);
		expect(strstr(why.text, "profiles left out of a chunk: 1"));
		buf_free(&b);
	}
}
