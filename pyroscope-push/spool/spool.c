/* SPDX-License-Identifier: Apache-2.0 */
/* Appending to the spool and reading back. Contract in spool.h. */
#include "pyroscope-push/spool/spool.h"

#include "base/check.h"
#include "base/file.h"
#include "pyroscope-push/spool/spool-files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SEGMENTS 16 /* that the limit is divided into */

/* The entry under way: room for its head, then its body. */
static struct buf *begin_entry(struct spool *s)
{
	static const char head[ENTRY_HEAD_BYTES];

	buf_clear(&s->scratch);
	buf_append(&s->scratch, head, sizeof(head));
	return &s->scratch;
}

/* A number of n bytes. */
static void put(struct buf *b, uint64_t value, size_t n)
{
	value = htole64(value);
	buf_append(b, (const char *)&value, n);
}

/* Makes room for n bytes by the oldest segments. */
static int make_room(struct spool *s, uint64_t n)
{
	int rc = 0;

	if (n > s->max_bytes / 2)
		return -E2BIG;
	while (rc == 0 && s->segments.n && s->bytes + n > s->max_bytes) {
		uint64_t number = s->segments.p[0].number;

		rc = files_remove_first(s);
		if (rc == 0)
			s->events.evicted(s->events.context, number);
	}
	return rc;
}

/* Of the room that a segment has, the last eighth is for marks. */
static bool needs_segment(const struct spool *s, uint32_t kind, uint64_t n)
{
	const struct segment *last = s->segments.n ? &s->segments.p[s->segments.n - 1] : NULL;
	uint64_t most = kind == ENTRY_MARK ? s->segment_bytes : s->segment_bytes / 8 * 7;

	return s->fd < 0 || !last || (last->bytes + n > most && s->next_entry > 1);
}

/* Appends the entry under way. */
static int write_entry(struct spool *s, uint32_t kind, struct spool_place *ret)
{
	uint64_t n = s->scratch.n + ENTRY_HEAD_BYTES + 64; /* with a segment's head */
	struct spool_place place = {.length = (uint32_t)s->scratch.n};
	int rc = s->scratch.failed ? -ENOMEM : make_room(s, n);

	if (rc == 0 && needs_segment(s, kind, s->scratch.n))
		rc = files_create(s);
	if (rc == 0) {
		place.sequence = s->last_number << 32 | s->next_entry;
		place.offset = s->segments.p[s->segments.n - 1].bytes;
		entry_seal(s->scratch.p, kind, place.sequence, s->scratch.n - ENTRY_HEAD_BYTES);
		rc = files_write(s, buf_str(&s->scratch));
	}
	if (rc != -E2BIG)
		s->failure = rc;
	if (rc)
		return rc;
	check(s->next_entry < UINT32_MAX);
	s->next_entry++;
	if (ret)
		*ret = place;
	files_trim(s);
	return 0;
}

int spool_begin(struct spool *s, uint64_t samples)
{
	put(begin_entry(s), samples, 8);
	return write_entry(s, ENTRY_BEGIN, NULL);
}

int spool_end(struct spool *s)
{
	int rc;

	begin_entry(s);
	rc = write_entry(s, ENTRY_END, NULL);
	return rc ? rc : spool_sync(s);
}

int spool_append(struct spool *s, const struct spool_item *item, struct spool_place *ret)
{
	struct buf *b = begin_entry(s);
	int rc;

	check(item->n_endpoints <= SPOOL_MAX_ENDPOINTS);
	put(b, (uint64_t)item->time_ns, 8);
	put(b, item->samples, 8);
	put(b, item->raw_bytes, 8);
	put(b, item->n_endpoints, 8);
	for (size_t i = 0; i < item->n_endpoints; i++)
		put(b, item->endpoints[i], 8);
	buf_str_append(b, item->message);
	rc = write_entry(s, ENTRY_DATA, ret);
	if (rc)
		return rc;
	s->segments.p[s->segments.n - 1].live++;
	if (item->time_ns > s->last_time)
		s->last_time = item->time_ns;
	return 0;
}

int spool_mark(struct spool *s, uint64_t endpoint, uint32_t what, const uint64_t *sequences,
	       size_t n)
{
	struct buf *b = begin_entry(s);

	put(b, endpoint, 8);
	put(b, what, 4);
	put(b, n, 4);
	for (size_t i = 0; i < n; i++)
		put(b, sequences[i], 8);
	return write_entry(s, ENTRY_MARK, NULL);
}

/* Skips what stands before a DATA entry's message. */
static int copy_message(const struct spool_entry *e, struct buf *out)
{
	struct entry_reader r = {.rest = str_skip(e->body, 24)};
	uint64_t n = entry_u64(&r);

	if (r.ended || n > r.rest.n / 8)
		return -EBADMSG;
	return buf_str_append(out, str_skip(r.rest, n * 8));
}

static int read_entry(const struct spool *s, const struct spool_place *place, struct buf *data)
{
	char name[SPOOL_NAME_MAX];
	char *p = buf_reserve(data, place->length);
	int fd, rc;

	if (!p)
		return -ENOMEM;
	segment_name(spool_segment(place), name);
	fd = openat(s->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	rc = file_pread(fd, p, place->length, place->offset);
	close(fd);
	data->n += rc == 0 ? place->length : 0;
	return rc == -ENODATA ? -EBADMSG : rc;
}

int spool_read(struct spool *s, const struct spool_place *place, struct buf *out)
{
	struct buf data = BUF_NULL;
	struct spool_entry e;
	int rc = read_entry(s, place, &data);

	if (rc == 0 && (!entry_parse(buf_str(&data), &e) || e.sequence != place->sequence ||
			e.kind != ENTRY_DATA))
		rc = -EBADMSG;
	if (rc == 0)
		rc = copy_message(&e, out);
	buf_free(&data);
	return rc;
}

void spool_release(struct spool *s, const struct spool_place *place)
{
	vec_each (&s->segments, segment)
		if (segment->number == spool_segment(place)) {
			check(segment->live > 0);
			segment->live--;
		}
	files_trim(s);
}

static void free_spool(struct spool *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->page >= 0)
		close(s->page);
	if (s->lock >= 0)
		close(s->lock);
	if (s->directory >= 0)
		close(s->directory);
	vec_free(&s->segments);
	buf_free(&s->scratch);
	free(s);
}

/* A segment of this run, and the end of a batch that an earlier one did not live to end: it has
 * been told of. */
static void open_segment(struct spool *s)
{
	begin_entry(s);
	write_entry(s, ENTRY_END, NULL);
}

int spool_open(const struct spool_options *options, const struct spool_events *events,
	       struct spool **ret, struct error *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	int rc;

	check(options->max_bytes > 0);
	if (!s)
		return -ENOMEM;
	s->events = *events;
	snprintf(s->owner, sizeof(s->owner), "%s", options->owner);
	s->max_bytes = options->max_bytes;
	s->segment_bytes = options->segment_bytes ? options->segment_bytes
						  : options->max_bytes / SEGMENTS;
	s->before = options->before;
	s->context = options->context;
	s->directory = s->lock = s->page = s->fd = -1;
	rc = files_open(s, options->directory, err);
	if (rc == 0) {
		page_open(s);
		rc = scan(s, err);
	}
	if (rc) {
		free_spool(s);
		return rc;
	}
	open_segment(s); /* on a full disk it fails, and what is there can be sent */
	*ret = s;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	spool_sync(s);
	free_spool(s);
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes;
}

int64_t spool_last_time(const struct spool *s)
{
	return s->last_time;
}

uint64_t spool_lost(const struct spool *s)
{
	return s->lost;
}

uint64_t spool_uncertain(const struct spool *s)
{
	return s->uncertain;
}

const struct spool_drop *spool_dropped(const struct spool *s)
{
	return s->kept.dropped;
}

int spool_failure(const struct spool *s)
{
	return s->failure;
}
