/* SPDX-License-Identifier: Apache-2.0 */
/* decode LIST-FILE: what reading a recorded list of pods costs, and keeping them. The list is fed
 * in pieces of 16 KiB, as libcurl hands it over. Lines are "name value unit", for discovery.py to
 * print. */
#include "base/clock.h"
#include "base/file.h"
#include "k8s-discovery/publish.h"
#include "k8s-discovery/api/stream.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE  16384
#define ROUNDS 20

struct taken {
	struct store *store; /* NULL: objects are read and not kept */
	size_t objects, kept_bytes;
	size_t peak; /* of the heap */
};

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static int take(void *context, const struct stream_event *e)
{
	struct taken *t = context;

	t->objects++;
	t->kept_bytes += e->object->kept.n;
	if (!t->store)
		return 0;
	if (t->objects % 256 == 0 && heap_bytes() > t->peak)
		t->peak = heap_bytes();
	return store_set(t->store, 0, KIND_POD, e->object);
}

static bool feed(struct str list, struct taken *t)
{
	struct stream *s = stream_new(KIND_POD, false, take, t);
	struct error err = ERROR_NULL;
	int r = s ? 0 : -1;

	while (list.n && r == 0) {
		r = stream_feed(s, str_first(list, PIECE), &err);
		list = str_skip(list, PIECE);
	}
	if (r == 0)
		r = stream_end(s, &err);
	if (r)
		fprintf(stderr, "decode: %s\n", err.text);
	stream_free(s);
	return r == 0;
}

static int64_t fastest(struct str list, bool keep, struct taken *last)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		struct store store = {0};
		struct taken t = {.store = keep ? &store : NULL};
		int64_t begun = clock_ns(CLOCK_THREAD_CPUTIME_ID), took;

		if (!feed(list, &t))
			exit(1);
		took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
		best = took < best ? took : best;
		*last = t;
		store_free(&store);
	}
	return best;
}

/* Publishes all; the heap's peak meanwhile. */
static size_t publish(struct store *store, size_t *peak)
{
	struct publisher p = {.producer = 1, .store = store};
	const struct andiron_targets *u;
	bool more = true;
	size_t targets;

	publisher_use(&p, &role_pod, &(struct role_options){0});
	while (more && publisher_next(&p, &u, &more) == 0) {
		if (heap_bytes() > *peak)
			*peak = heap_bytes();
		if (u)
			u->release(u->owner);
	}
	targets = p.targets;
	publisher_fini(&p);
	return targets;
}

int main(int argc, char **argv)
{
	struct buf file = BUF_NULL;
	struct store store = {0};
	struct taken t, kept = {.store = &store};
	size_t before, settled, targets;
	int64_t ns, began;

	if (argc != 2 || file_read(AT_FDCWD, argv[1], &file, (size_t)1 << 30) < 0)
		return 2;
	ns = fastest(buf_str(&file), false, &t);
	printf("pods %zu\nwire %.0f B\nread %.3f GB/s\nread-pod %.0f ns\n", t.objects,
	       (double)file.n / (double)t.objects, (double)file.n / (double)ns,
	       (double)ns / (double)t.objects);
	ns = fastest(buf_str(&file), true, &t);
	printf("keep %.3f GB/s\nkept %.0f B\n", (double)file.n / (double)ns,
	       (double)t.kept_bytes / (double)t.objects);
	malloc_trim(0);
	before = heap_bytes();
	if (!feed(buf_str(&file), &kept))
		return 1;
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	targets = publish(&store, &kept.peak);
	ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	settled = heap_bytes() - before;
	printf("heap %.0f B\nannotations %.0f B\npeak %.2f x\npublish %.2f us\n",
	       (double)settled / (double)kept.objects,
	       (double)store.annotation_bytes / (double)kept.objects,
	       (double)(kept.peak - before) / (double)settled, (double)ns / 1e3 / (double)targets);
	store_free(&store);
	buf_free(&file);
	return 0;
}
