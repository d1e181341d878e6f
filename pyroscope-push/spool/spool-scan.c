/* SPDX-License-Identifier: Apache-2.0 */
/* What an earlier run left: the segments are read in order, records gathered, and marks applied to
 * them. Nothing that is read is believed beyond its bounds; what a checksum does not cover does not
 * exist. */
#include "pyroscope-push/spool/spool-files.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/search.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

struct scanned {
	struct spool_place place;
	int64_t time_ns;
	uint64_t samples, raw_bytes;
	size_t size;
	uint64_t owed, sent; /* a bit for each of `endpoints` */
	bool uncertain;
};

struct scan {
	struct spool *spool;
	struct error *err;
	VEC(struct scanned) records; /* by sequence */
	uint64_t endpoints[SPOOL_MAX_ENDPOINTS];
	size_t n_endpoints;
	uint64_t batch;           /* samples of the batch that was being written */
	bool batch_in_page;       /* which has taken it over: its end could not be written */
	struct spool_books books; /* of the page, and what came after it */
};

static int by_number(const void *a, const void *b)
{
	const struct segment *one = a, *two = b;

	return compare(one->number, two->number);
}

static int list(struct spool *s)
{
	int fd = fcntl(s->directory, F_DUPFD_CLOEXEC, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int rc = 0;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rewinddir(dir);
	while (rc == 0 && (entry = readdir(dir))) {
		struct str name = str_of(entry->d_name);
		struct segment found = {0};

		if (name.n == 22 && str_ends(name, STR(".spool")) &&
		    str_hex(str_first(name, 16), &found.number) && found.number >> 32 == 0 &&
		    !vec_push(&s->segments, found))
			rc = -ENOMEM;
	}
	closedir(dir);
	if (s->segments.n)
		qsort(s->segments.p, s->segments.n, sizeof(*s->segments.p), by_number);
	return rc;
}

/* The endpoint's bit; 0 when there are too many to tell apart. */
static uint64_t bit_of(struct scan *scan, uint64_t endpoint)
{
	size_t i = 0;

	while (i < scan->n_endpoints && scan->endpoints[i] != endpoint)
		i++;
	if (i == SPOOL_MAX_ENDPOINTS)
		return 0;
	if (i == scan->n_endpoints)
		scan->endpoints[scan->n_endpoints++] = endpoint;
	return UINT64_C(1) << i;
}

static int see_head(struct scan *scan, struct entry_reader r)
{
	uint32_t version = entry_u32(&r);
	int64_t last_time;

	entry_u32(&r);
	last_time = (int64_t)entry_u64(&r);
	if (version > ENTRY_VERSION)
		return error_set(scan->err, -ENOTSUP,
				 "a newer andiron wrote the spool (format %u, this one knows %u); "
				 "run that version until it is empty, or name another directory",
				 version, ENTRY_VERSION);
	if (r.ended || r.rest.n != ENTRY_OWNER_BYTES ||
	    memcmp(r.rest.p, scan->spool->owner, ENTRY_OWNER_BYTES) != 0)
		return error_set(scan->err, -EINVAL,
				 "the spool holds what another kind of writer left (%.*s); name "
				 "another directory",
				 (int)strnlen(r.rest.p, r.rest.n), r.rest.p);
	if (last_time > scan->spool->last_time)
		scan->spool->last_time = last_time;
	return 0;
}

/* Of the batch under way; else it was in memory alone before. */
static void see_samples(struct scan *scan, uint64_t samples, bool in_page)
{
	uint64_t *from = scan->batch ? &scan->batch : &scan->books.in_memory;

	if (scan->batch || !in_page)
		*from -= *from < samples ? *from : samples;
}

static int see_data(struct scan *scan, const struct spool_place *place, struct entry_reader r,
		    bool in_page)
{
	struct scanned record = {.place = *place, .time_ns = (int64_t)entry_u64(&r)};
	uint64_t n;

	record.samples = entry_u64(&r);
	record.raw_bytes = entry_u64(&r);
	n = entry_u64(&r);
	for (uint64_t i = 0; i < n && !r.ended; i++)
		record.owed |= bit_of(scan, entry_u64(&r));
	if (r.ended)
		return 0;
	record.size = r.rest.n;
	see_samples(scan, record.samples, in_page);
	if (record.time_ns > scan->spool->last_time)
		scan->spool->last_time = record.time_ns;
	return vec_push(&scan->records, record) ? 0 : -ENOMEM;
}

static struct scanned *find(struct scan *scan, uint64_t sequence)
{
	size_t low =
		search_partition(scan->records.n, i, scan->records.p[i].place.sequence < sequence);

	return low < scan->records.n && scan->records.p[low].place.sequence == sequence
		       ? &scan->records.p[low]
		       : NULL;
}

static uint64_t move_bit(uint64_t bits, uint64_t from, uint64_t to)
{
	return bits & from ? (bits & ~from) | to : bits;
}

static void see_moved(struct scan *scan, uint64_t from, uint64_t to)
{
	vec_each (&scan->records, record) {
		record->owed = move_bit(record->owed, from, to);
		record->sent = move_bit(record->sent, from, to);
	}
}

/* One that is done with it had no answer. Who was the last to be done with it counts, unless the
 * page did already. */
static void see_uncertain(struct scan *scan, struct scanned *record, uint64_t bit, bool in_page)
{
	bool owed = record->owed;

	record->owed &= ~bit;
	record->uncertain = true;
	if (owed && !record->owed && !in_page)
		scan->books.uncertain += record->samples;
}

static void see_mark(struct scan *scan, struct entry_reader r, bool in_page)
{
	uint64_t bit = bit_of(scan, entry_u64(&r));
	uint32_t what = entry_u32(&r), n = entry_u32(&r);

	if (what == SPOOL_MOVED) {
		see_moved(scan, bit, bit_of(scan, entry_u64(&r)));
		return;
	}
	for (uint32_t i = 0; i < n && !r.ended; i++) {
		struct scanned *record = find(scan, entry_u64(&r));

		if (!record)
			continue;
		if (what == SPOOL_UNCERTAIN || (what == SPOOL_SETTLED && record->uncertain))
			see_uncertain(scan, record, bit, in_page);
		else if (what == SPOOL_SETTLED)
			record->owed &= ~bit;
		else if (what == SPOOL_SENT)
			record->sent |= bit;
		else if (what == SPOOL_UNSENT)
			record->sent &= ~bit;
	}
}

/* The batch is not to come any more; what of it is not written yet, is to be found. */
static void see_begin(struct scan *scan, uint64_t samples, bool in_page)
{
	scan->batch = samples;
	scan->batch_in_page = in_page;
	if (!in_page)
		scan->books.coming -= scan->books.coming < samples ? scan->books.coming : samples;
}

static int see(struct scan *scan, const struct spool_entry *e, uint64_t offset)
{
	struct entry_reader r = {.rest = e->body};
	struct spool_place place = {e->sequence, offset, (uint32_t)e->length};
	bool in_page = e->sequence < scan->spool->kept_at;

	if (e->kind == ENTRY_BEGIN)
		see_begin(scan, entry_u64(&r), in_page);
	else if (e->kind == ENTRY_END)
		scan->batch = 0;
	else if (e->kind == ENTRY_DATA)
		return see_data(scan, &place, r, in_page);
	else if (e->kind == ENTRY_MARK)
		see_mark(scan, r, in_page);
	return e->kind == ENTRY_HEAD ? see_head(scan, r) : 0;
}

/* Entries in their order, until one is not whole. */
static int walk(struct scan *scan, const struct segment *segment, struct str data)
{
	struct spool_entry e;
	uint64_t offset = 0;
	uint32_t number = 0;
	int rc = 0;

	while (rc == 0 && entry_parse(str_skip(data, offset), &e) &&
	       e.sequence == (segment->number << 32 | number) &&
	       (e.kind == ENTRY_HEAD) == (number == 0)) {
		rc = see(scan, &e, offset);
		offset += e.length;
		number++;
	}
	return rc;
}

static int read_segment(struct scan *scan, struct segment *segment)
{
	struct buf data = BUF_NULL;
	char name[SPOOL_NAME_MAX];
	int rc;

	segment_name(segment->number, name);
	rc = file_read(scan->spool->directory, name, &data, scan->spool->max_bytes);
	if (rc == -E2BIG) /* not ours: no segment is that long */
		rc = 0;
	segment->bytes = data.n;
	if (rc == 0)
		rc = walk(scan, segment, buf_str(&data));
	else
		error_errno(scan->err, rc, "cannot read the spool's segment %s", name);
	buf_free(&data);
	return rc;
}

static size_t endpoints_of(const struct scan *scan, uint64_t bits, uint64_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < scan->n_endpoints; i++)
		if (bits >> i & 1)
			out[n++] = scan->endpoints[i];
	return n;
}

static void tell(struct scan *scan, const struct scanned *record)
{
	uint64_t owed[SPOOL_MAX_ENDPOINTS], sent[SPOOL_MAX_ENDPOINTS];
	struct spool_found found = {.place = record->place,
				    .time_ns = record->time_ns,
				    .samples = record->samples,
				    .raw_bytes = record->raw_bytes,
				    .size = record->size,
				    .endpoints = owed,
				    .sent = sent,
				    .uncertain = record->uncertain};

	found.n_endpoints = endpoints_of(scan, record->owed, owed);
	found.n_sent = endpoints_of(scan, record->owed & record->sent, sent);
	scan->spool->events.found(scan->spool->events.context, &found);
}

static void count_live(struct spool *s, const struct scanned *record)
{
	vec_each (&s->segments, segment)
		segment->live += segment->number == spool_segment(&record->place);
}

int scan(struct spool *s, struct error *err)
{
	struct scan scan = {.spool = s, .err = err, .books = s->kept};
	int rc = list(s);

	for (size_t i = 0; rc == 0 && i < s->segments.n; i++) {
		rc = read_segment(&scan, &s->segments.p[i]);
		s->bytes += s->segments.p[i].bytes;
		s->last_number = s->segments.p[i].number;
	}
	s->lost = (scan.batch_in_page ? 0 : scan.batch) + scan.books.coming + scan.books.in_memory;
	s->uncertain = scan.books.uncertain;
	if (rc == 0) {
		vec_each (&scan.records, record)
			if (record->owed)
				count_live(s, record);
		vec_each (&scan.records, record)
			if (record->owed)
				tell(&scan, record);
	}
	vec_free(&scan.records);
	return rc;
}
