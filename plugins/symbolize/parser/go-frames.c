/* SPDX-License-Identifier: Apache-2.0 */
/* Go's frames. Which inlined call an address stands in, and which call that one stands in, is said
 * by rows over the function's addresses: the caller of a call is what the rows say of an address of
 * the line that calls. Contract in go-frames.h. */
#include "symbolize/parser/go-frames.h"

#include <errno.h>

#define MAX_DEPTH 64

static struct dwarf_text text_from(const struct dwarf_frames *f, size_t at)
{
	return (struct dwarf_text){(uint32_t)at, (uint32_t)(f->text.n - at)};
}

static int add_name(struct pclntab *t, uint32_t name, struct dwarf_frames *ret,
		    struct dwarf_text *text)
{
	size_t at = ret->text.n;
	int r = pclntab_name(t, name, &ret->text);

	if (r == 0)
		*text = text_from(ret, at);
	return r;
}

/* File and line of an address; unknown ones are no failure. */
static int add_place(struct pclntab *t, const struct pclntab_function *f, uint64_t address,
		     struct dwarf_frames *ret, struct dwarf_frame *frame)
{
	size_t at = ret->text.n;
	int32_t line = 0, file;
	int r = pclntab_value(t, f, f->pcln, address, &line);

	if (r == 0 && line > 0)
		frame->line = (uint32_t)line;
	if (r == 0)
		r = pclntab_value(t, f, f->pcfile, address, &file);
	if (r == 0)
		r = pclntab_file(t, f, file, &ret->text);
	if (r == 0)
		frame->file = text_from(ret, at);
	else
		ret->text.n = at;
	return r == -ENOENT ? 0 : r;
}

/* The inlined call at an address: -1 where there is none. */
static int call_at(struct pclntab *t, const struct pclntab_function *f, uint64_t address,
		   int32_t *ret)
{
	int r = pclntab_value(t, f, f->inlined, address, ret);

	if (r == -ENOENT)
		*ret = -1;
	return r == -ENOENT ? 0 : r;
}

/* Frames of inlined calls; *address becomes that of the outermost call's line. */
static int add_inlined(struct pclntab *t, const struct pclntab_function *f, uint64_t *address,
		       struct dwarf_frames *ret)
{
	for (unsigned int depth = 0; depth < MAX_DEPTH; depth++) {
		struct dwarf_frame frame = {0};
		struct pclntab_call call;
		int32_t index;
		int r = call_at(t, f, *address, &index);

		if (r < 0 || index < 0)
			return r;
		r = pclntab_inlined(t, f, index, &call);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		frame.start_line = call.start_line;
		r = add_name(t, call.name, ret, &frame.function);
		if (r == 0)
			r = add_place(t, f, *address, ret, &frame);
		if (r == 0 && !vec_push(&ret->list, frame))
			r = -ENOMEM;
		if (r < 0)
			return r;
		*address = call.call;
	}
	return 0;
}

int go_frames(struct pclntab *t, uint64_t address, bool inlines, struct dwarf_frames *ret)
{
	struct dwarf_frame frame = {0};
	struct pclntab_function f;
	int r;

	ret->list.n = 0;
	buf_clear(&ret->text);
	r = pclntab_find(t, address, &f);
	if (r < 0)
		return r;
	r = add_inlined(t, &f, &address, ret);
	if (r == -ENOMEM)
		return r;
	if (!inlines)
		ret->list.n = 0;
	frame.start_line = f.start_line;
	r = add_name(t, f.name, ret, &frame.function);
	if (r == 0)
		r = add_place(t, &f, address, ret, &frame);
	if (r == 0 && !vec_push(&ret->list, frame))
		r = -ENOMEM;
	return r;
}
