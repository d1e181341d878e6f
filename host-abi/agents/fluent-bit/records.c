/* SPDX-License-Identifier: Apache-2.0 */
/* See records.h. Of msgpack five types are written (its spec.md): fixarray, ext 8, fixmap, str 16
 * and float 64, with uint 64 for counts. */
#include "agents/fluent-bit/records.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

void records_init(struct records *r)
{
	*r = (struct records){.bytes = {.limit = RECORDS_BYTES}};
	pthread_mutex_init(&r->lock, NULL);
}

void records_fini(struct records *r)
{
	buf_free(&r->bytes);
	pthread_mutex_destroy(&r->lock);
}

static void put_number(struct buf *b, uint64_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
		buf_putc(b, (char)(value >> 8 * i));
}

static void put_text(struct buf *b, struct str text)
{
	text = str_first(text, UINT16_MAX);
	buf_putc(b, (char)0xda);
	put_number(b, text.n, 2);
	buf_str_append(b, text);
}

static void put_u64(struct buf *b, struct str key, uint64_t value)
{
	put_text(b, key);
	buf_putc(b, (char)0xcf);
	put_number(b, value, 8);
}

static void put_double(struct buf *b, struct str key, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_text(b, key);
	buf_putc(b, (char)0xcb);
	put_number(b, bits, 8);
}

static void put_pair(struct buf *b, const char *key, struct str value)
{
	put_text(b, str_of(key));
	put_text(b, value);
}

/* [EventTime, {kind, …}]; `pairs` of the map are to follow. The time is Fluent's ext type 0:
 * seconds and nanoseconds. */
static void begin(struct buf *b, int64_t time_ns, int pairs, const char *kind)
{
	static const char head[] = {(char)0x92, (char)0xd7, 0};

	buf_append(b, head, sizeof(head));
	put_number(b, (uint64_t)(time_ns / NS_PER_SEC), 4);
	put_number(b, (uint64_t)(time_ns % NS_PER_SEC), 4);
	buf_putc(b, (char)(0x80 + pairs + 1));
	put_pair(b, "kind", str_of(kind));
}

/* A record is there as a whole or not at all. */
static void end(struct records *r, size_t begun)
{
	if (!r->bytes.failed)
		return;
	r->bytes.n = begun;
	r->bytes.failed = false;
	r->dropped++;
}

void records_add_cpu(struct records *r, const struct cpu_usage_sum *sum)
{
	struct buf *b = &r->bytes;
	size_t begun;

	pthread_mutex_lock(&r->lock);
	begun = b->n;
	begin(b, sum->end_ns, 3, "cpu");
	put_pair(b, "service", str_of(sum->service));
	put_pair(b, "target", str_of(sum->target));
	put_u64(b, STR("cpu_ms"), (uint64_t)(sum->cpu_ns / NS_PER_MSEC));
	end(r, begun);
	pthread_mutex_unlock(&r->lock);
}

void records_add_metric(struct records *r, const struct exposition_sample *sample, int64_t time_ns)
{
	struct buf *b = &r->bytes;
	size_t begun;

	pthread_mutex_lock(&r->lock);
	begun = b->n;
	begin(b, time_ns, 3, "metric");
	put_pair(b, "name", sample->name);
	put_pair(b, "labels", sample->labels);
	put_double(b, STR("value"), sample->value);
	end(r, begun);
	pthread_mutex_unlock(&r->lock);
}

static void add_dropped(struct records *r)
{
	uint64_t dropped = r->dropped;
	size_t begun = r->bytes.n;

	if (dropped == 0)
		return;
	r->dropped = 0;
	r->bytes.limit = 2 * RECORDS_BYTES;
	begin(&r->bytes, clock_real(), 1, "dropped");
	put_u64(&r->bytes, STR("records"), dropped);
	r->bytes.limit = RECORDS_BYTES;
	end(r, begun);
}

void *records_take(struct records *r, size_t *ret_n)
{
	char *copy = NULL;

	pthread_mutex_lock(&r->lock);
	add_dropped(r);
	if (r->bytes.n > 0)
		copy = malloc(r->bytes.n);
	if (copy) {
		memcpy(copy, r->bytes.p, r->bytes.n);
		*ret_n = r->bytes.n;
		r->bytes.n = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return copy;
}
