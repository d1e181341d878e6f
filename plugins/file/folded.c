/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks. Contract in folded.h. */
#include "file/folded.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct line {
	struct str text;
	size_t start;
	int64_t samples;
};

static void put_name(struct buf *b, struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		buf_putc(b, c == ';' ? ':' : c < 0x20 || c == 0x7f ? '?' : (char)c);
	}
}

/* The labels that lines are grouped by; a key that no sample has makes no level. */
static void put_groups(struct buf *b, const struct call_tree *t, uint32_t set,
		       const struct str *keys, size_t n_keys)
{
	for (size_t i = 0; i < n_keys; i++) {
		uint32_t key = call_tree_key(t, keys[i]);
		uint32_t value = key ? call_tree_label(t, set, key) : 0;

		if (!key)
			continue;
		if (!value || str_is(keys[i], "pid"))
			buf_printf(b, value ? "%.*s " : "[no %.*s]", STR_FMT(keys[i]));
		put_name(b, intern_get(&t->strings, value));
		buf_putc(b, ';');
	}
}

/* Root first: `path` has room for as many nodes as a path can have. */
static void put_path(struct buf *b, const struct call_tree *t, uint32_t node, uint32_t *path)
{
	size_t n = 0;

	for (; node; node = call_tree_node(t, node)->parent)
		path[n++] = node;
	while (n--) {
		const struct frame *f = call_tree_frame(t, call_tree_node(t, path[n])->frame);

		put_name(b, intern_get(&t->strings, f->name));
		if (f->kind == FRAME_KERNEL)
			buf_str_append(b, STR("_[k]"));
		if (n)
			buf_putc(b, ';');
	}
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

int folded_write(const struct call_tree *t, const struct str *keys, size_t n_keys, struct buf *out)
{
	size_t n = t->counts.n;
	_cleanup_(freep) struct line *lines = calloc(n + 1, sizeof(*lines));
	_cleanup_(freep) uint32_t *path = calloc(t->nodes.ends.n + 1, sizeof(*path));
	_cleanup_(buf_free) struct buf text = BUF_NULL;

	if (!lines || !path)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct leaf *leaf = call_tree_leaf(t, i);

		lines[i].start = text.n;
		lines[i].samples = t->counts.p[i].samples;
		put_groups(&text, t, leaf->labels, keys, n_keys);
		put_path(&text, t, leaf->node, path);
		lines[i].text.n = text.n - lines[i].start;
	}
	if (text.failed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		lines[i].text.p = text.p + lines[i].start;
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0; i < n; i++) {
		int64_t samples = lines[i].samples;

		if (i + 1 < n && str_eq(lines[i].text, lines[i + 1].text)) {
			lines[i + 1].samples = pprof_sum(lines[i + 1].samples, samples);
			continue;
		}
		if (samples <= 0)
			continue;
		buf_str_append(out, lines[i].text);
		buf_printf(out, " %" PRId64 "\n", samples);
	}
	return out->failed ? -ENOMEM : 0;
}
