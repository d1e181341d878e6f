/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks. Contract in folded.h. */
#include "file/folded.h"

#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>

struct writer {
	struct buf *out;
	struct buf path;       /* the line up to the current node */
	VEC(uint32_t) lengths; /* of the path at each depth */
};

static void put_name(struct buf *b, struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];

		buf_putc(b, c == ';' ? ':' : c < 0x20 || c == 0x7f ? '?' : (char)c);
	}
}

static int visit(void *context, const struct tree *t, uint32_t id, uint32_t depth)
{
	const struct node *node = &t->nodes.p[id];
	const struct frame *frame = &t->frames.p[node->frame];
	struct writer *w = context;
	int r;

	w->path.n = depth ? w->lengths.p[depth - 1] : 0;
	w->lengths.n = depth;
	if (depth)
		buf_putc(&w->path, ';');
	put_name(&w->path, intern_get(&t->strings, frame->name));
	if (frame->kind == FRAME_KERNEL)
		buf_str_append(&w->path, STR("_[k]"));
	if (w->path.failed || !vec_push(&w->lengths, (uint32_t)w->path.n))
		return -ENOMEM;
	if (node->self_samples == 0)
		return 0;
	r = buf_str_append(w->out, buf_str(&w->path));
	return r < 0 ? r : buf_printf(w->out, " %" PRId64 "\n", node->self_samples);
}

int folded_write(const struct tree *t, struct buf *out)
{
	struct writer w = {.out = out};
	int r = tree_walk(t, visit, &w);

	buf_free(&w.path);
	vec_free(&w.lengths);
	return r;
}
