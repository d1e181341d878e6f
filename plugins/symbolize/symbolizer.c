/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to names. The frames of a batch are sorted by object, so that each file is opened at most
 * once a batch, and its entry in the cache need not outlive its turn. Contract in symbolizer.h. */
#include "symbolize/symbolizer.h"

#include "base/search.h"
#include "symbolize/names/sanitize.h"
#include "symbolize/names/demangle.h"
#include "symbolize/resolve.h"

#include "abi/batch-build.h"
#include "abi/unsymbolized.h"
#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct frame {
	uint64_t object;
	uint64_t address;
	uint32_t location;
};

/* One run over a batch. */
struct run {
	struct symbolizer *s;
	struct batch_builder *builder;
	const struct batch_view *view;
	uint32_t demangle;
	int64_t now_ns;
	VEC(struct frame) frames;
	VEC(uint64_t) unknown;
	VEC(struct andiron_line) lines;
	VEC(bool) wanted;                                  /* by location; empty: all are */
	struct buf readable, clean_linked, clean_readable; /* scratch */
};

static int ask_here(void *self, const struct parser_request *request, struct buf *answer)
{
	struct symbolizer *s = self;

	return parser_run(&s->parser, request, answer);
}

void symbolizer_init(struct symbolizer *s, const struct andiron_extension *objects,
		     const struct symbolizer_settings *settings, symbolizer_aside_fn aside,
		     void *context)
{
	*s = (struct symbolizer){
		.settings = *settings, .vdso = -1, .aside = aside, .context = context};
	s->port = (struct parser_port){ask_here, s};
	cache_init(&s->cache, objects, settings->cache_bytes);
	kernel_init(&s->kernel, objects);
}

void symbolizer_fini(struct symbolizer *s)
{
	cache_fini(&s->cache);
	kernel_fini(&s->kernel);
	parser_fini(&s->parser);
	closep(&s->vdso);
}

void symbolizer_set(struct symbolizer *s, const struct symbolizer_settings *settings)
{
	bool same = s->settings.lines == settings->lines &&
		    s->settings.inlines == settings->inlines &&
		    s->settings.file_bytes == settings->file_bytes &&
		    s->settings.file_steps == settings->file_steps;

	s->settings = *settings;
	s->cache.limit = settings->cache_bytes;
	if (!same)
		cache_clear(&s->cache);
}

/* A linked name as it is shown and as it is kept; both clean. 0 or -ENOMEM. */
static int make_names(struct run *run, struct str linked, struct str *name, struct str *system_name)
{
	int r = demangle(linked, run->demangle, &run->readable);

	if (r < 0)
		return r;
	*system_name = sanitize_name(linked, &run->clean_linked);
	*name = r ? sanitize_name(buf_str(&run->readable), &run->clean_readable) : *system_name;
	return name->p && system_name->p ? 0 : -ENOMEM;
}

static int set_name(struct run *run, uint32_t location, struct str name, struct str system_name)
{
	struct andiron_function function = {
		.name = batch_add_string(run->builder, name),
		.system_name = batch_add_string(run->builder, system_name),
	};
	struct andiron_line line = {.function = batch_add_function(run->builder, &function)};

	if (function.name == INDEX_NONE || function.system_name == INDEX_NONE ||
	    line.function == INDEX_NONE)
		return -ENOMEM;
	return batch_set_lines(run->builder, location, &line, 1) ? 0 : -ENOMEM;
}

/* A frame without a name gets what stands in for it (batch.h), unless it has no file. */
static int set_tried(struct run *run, uint32_t location, unsigned int why, uint64_t function)
{
	struct andiron_location l = batch_location(run->view, location);
	struct str file = batch_str(run->view, batch_mapping(run->view, l.mapping).file);

	run->s->totals.unresolved[why]++;
	batch_set_tried(run->builder, location);
	if (l.kind == ANDIRON_FRAME_KERNEL && !file.n)
		file = STR("[kernel.kallsyms]");
	if (!file.n)
		return 0;
	if (unsymbolized_put(&run->readable, file, function) < 0)
		return -ENOMEM;
	file = sanitize_name(buf_str(&run->readable), &run->clean_readable);
	return file.p ? set_name(run, location, file, file) : -ENOMEM;
}

/* The remembered frames of an address become the lines of a location. */
static int set_frames(struct run *run, const struct cached_object *o,
		      const struct cached_name *known, uint32_t location)
{
	check((size_t)known->first + known->n <= o->frames.n);
	run->lines.n = 0;
	for (uint32_t i = 0; i < known->n; i++) {
		const struct cached_frame *f = &o->frames.p[known->first + i];
		struct andiron_function function = {
			.name = batch_add_string(run->builder, intern_get(&o->names, f->name)),
			.system_name = batch_add_string(run->builder,
							intern_get(&o->names, f->system_name)),
			.file = batch_add_string(run->builder, intern_get(&o->names, f->file)),
			.start_line = f->start_line,
		};
		struct andiron_line line = {.function = batch_add_function(run->builder, &function),
					    .line = f->line,
					    .column = f->column};

		if (function.name == INDEX_NONE || function.system_name == INDEX_NONE ||
		    function.file == INDEX_NONE || line.function == INDEX_NONE ||
		    !vec_push(&run->lines, line))
			return -ENOMEM;
		run->s->totals.lines += f->line != 0;
	}
	run->s->totals.inlined += known->n - 1u;
	return batch_set_lines(run->builder, location, run->lines.p, known->n) ? 0 : -ENOMEM;
}

static int name_frame(struct run *run, const struct cached_object *o, const struct frame *f)
{
	const struct cached_name *known = cache_find(o, f->address, run->demangle);

	if (known && known->n) {
		run->s->totals.resolved[known->source]++;
		return set_frames(run, o, known, f->location);
	}
	return set_tried(run, f->location,
			 known                       ? WHY_NO_SYMBOL
			 : o->state == OBJECT_BROKEN ? WHY_BROKEN
						     : WHY_UNAVAILABLE,
			 known ? known->function : 0);
}

/* The frames [f, end) of one object. */
static int name_object(struct run *run, const struct frame *f, const struct frame *end)
{
	struct cached_object *o = cache_object(&run->s->cache, f->object, run->now_ns);
	int r = 0;

	if (!o)
		return -ENOMEM;
	check(f < end && f->object == end[-1].object);
	run->unknown.n = 0;
	for (const struct frame *i = f; i < end; i++) {
		if ((i > f && i->address == i[-1].address) ||
		    cache_find(o, i->address, run->demangle))
			continue;
		if (!vec_push(&run->unknown, i->address))
			return -ENOMEM;
	}
	if (run->unknown.n) {
		const struct resolve q = {run->unknown.p, run->unknown.n, run->demangle,
					  run->now_ns};

		r = resolve(run->s, o, &q);
	}
	for (; r == 0 && f < end; f++)
		r = name_frame(run, o, f);
	cache_count(&run->s->cache, o);
	return r;
}

static int name_kernel_frames(struct run *run, const struct frame *f, const struct frame *end)
{
	int r = 0;

	for (; r == 0 && f < end; f++) {
		struct str linked, name, system_name;
		int found = kernel_find(&run->s->kernel, f->address, run->now_ns, &linked);

		if (found < 0) {
			r = set_tried(run, f->location,
				      found == -ENOENT ? WHY_NO_SYMBOL : WHY_KERNEL, 0);
			continue;
		}
		run->s->totals.resolved[FROM_KERNEL]++;
		r = make_names(run, linked, &name, &system_name);
		if (r == 0)
			r = set_name(run, f->location, name, system_name);
	}
	return r;
}

static bool is_wanted(const struct run *run, uint32_t location)
{
	return location >= run->wanted.n || run->wanted.p[location];
}

/* Frames without a file, and those that nobody wants named. */
static int name_nameless(struct run *run, const struct frame *f, const struct frame *end)
{
	int r = 0;

	for (; r == 0 && f < end; f++)
		r = set_tried(run, f->location,
			      is_wanted(run, f->location) ? WHY_NO_OBJECT : WHY_OPTED_OUT, 0);
	return r;
}

static int name_all(struct run *run)
{
	const struct frame *f = run->frames.p, *last = f + run->frames.n;
	int r = 0;

	while (r == 0 && f < last) {
		const struct frame *end = f;

		while (end < last && end->object == f->object)
			end++;
		r = f->object == 0                       ? name_nameless(run, f, end)
		    : f->object == ANDIRON_OBJECT_KERNEL ? name_kernel_frames(run, f, end)
							 : name_object(run, f, end);
		f = end;
	}
	return r;
}

static int by_object(const void *x, const void *y)
{
	const struct frame *a = x, *b = y;

	return compare(a->object, b->object) ?: compare(a->address, b->address);
}

/* The vDSO is no file, but the same bytes in every process. */
static uint64_t object_of(const struct batch_view *v, uint32_t mapping)
{
	struct andiron_mapping m = batch_mapping(v, mapping);

	return m.object || !str_is(batch_str(v, m.file), "[vdso]") ? m.object : CACHE_VDSO;
}

/* --- Targets that want no names --- */

static bool opts_out(const struct batch_view *v, const struct andiron_group *group)
{
	struct str text;

	return batch_group_label(v, group, STR("__symbolize__"), &text) && str_is(text, "false");
}

static bool any_opts_out(const struct batch_view *v)
{
	for (uint32_t i = 0; i < batch_count(v, ANDIRON_COL_GROUP); i++) {
		struct andiron_group group = batch_group(v, i);

		if (opts_out(v, &group))
			return true;
	}
	return false;
}

/* Columns are read within their bounds, whatever an index says. */
static uint32_t end_of(const struct batch_view *v, uint32_t column, uint32_t start, uint32_t n)
{
	uint64_t count = batch_count(v, column);

	return (uint32_t)(start >= count ? start : n < count - start ? start + n : count);
}

static void mark_stack(struct run *run, const struct batch_view *v, uint32_t stack)
{
	struct andiron_stack s = batch_stack(v, stack);
	uint32_t end = end_of(v, ANDIRON_COL_FRAME, s.start, s.length);

	for (uint32_t i = s.start; i < end; i++) {
		uint32_t location = batch_frame(v, i);

		if (location < run->wanted.n)
			run->wanted.p[location] = true;
	}
}

/* The locations that stand in stacks of targets that want names; none are marked where all do. */
static int mark_wanted(struct run *run, const struct batch_view *v)
{
	uint64_t n = batch_count(v, ANDIRON_COL_LOCATION);

	if (!any_opts_out(v))
		return 0;
	if (!vec_reserve(&run->wanted, n))
		return -ENOMEM;
	memset(run->wanted.p, 0, n * sizeof(*run->wanted.p));
	run->wanted.n = n;
	for (uint32_t i = 0; i < batch_count(v, ANDIRON_COL_GROUP); i++) {
		struct andiron_group group = batch_group(v, i);
		uint32_t end = end_of(v, ANDIRON_COL_ROW, group.row_start, group.n_rows);

		if (opts_out(v, &group))
			continue;
		for (uint32_t row = group.row_start; row < end; row++)
			mark_stack(run, v, batch_row(v, row).stack);
	}
	return 0;
}

/* The frames that want a name, sorted. */
static int collect(struct run *run, const struct batch_view *v)
{
	uint64_t n = batch_count(v, ANDIRON_COL_LOCATION);

	if (mark_wanted(run, v) < 0)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++) {
		struct andiron_location l = batch_location(v, i);
		struct frame f = {.address = l.address, .location = i};

		if (l.n_lines || (l.flags & ANDIRON_LOCATION_UNSYMBOLIZED))
			continue;
		if (l.kind == ANDIRON_FRAME_KERNEL)
			f.object = ANDIRON_OBJECT_KERNEL;
		else if (l.kind == ANDIRON_FRAME_NATIVE)
			f.object = is_wanted(run, i) ? object_of(v, l.mapping) : 0;
		else
			continue;
		if (!vec_push(&run->frames, f))
			return -ENOMEM;
	}
	if (run->frames.n)
		qsort(run->frames.p, run->frames.n, sizeof(*run->frames.p), by_object);
	return 0;
}

static int derive(struct run *run, const struct andiron_batch *batch,
		  const struct andiron_batch **ret)
{
	const struct batch_head head = {.demangle = batch->demangle};
	int r;

	run->builder = batch_derive(batch);
	if (!run->builder)
		return -ENOMEM;
	r = name_all(run);
	if (r < 0) {
		batch_builder_free(run->builder);
		return r;
	}
	return batch_finish(run->builder, &head, ret);
}

int symbolizer_run(struct symbolizer *s, const struct andiron_batch *batch, int64_t now_ns,
		   const struct andiron_batch **ret)
{
	struct run run = {.s = s, .demangle = batch->demangle, .now_ns = now_ns};
	struct batch_view v;
	int r = batch_view_init(&v, batch);

	run.view = &v;
	if (r == 0)
		r = collect(&run, &v);
	if (r == 0 && run.frames.n == 0)
		*ret = NULL;
	else if (r == 0)
		r = derive(&run, batch, ret);
	cache_trim(&s->cache, now_ns);
	vec_free(&run.frames);
	vec_free(&run.unknown);
	vec_free(&run.lines);
	vec_free(&run.wanted);
	buf_free(&run.readable);
	buf_free(&run.clean_linked);
	buf_free(&run.clean_readable);
	return r;
}

struct thread_run {
	struct symbolizer *s;
	const struct andiron_batch *batch;
	int64_t now_ns;
	const struct andiron_batch **ret;
	int result;
};

static void *thread_run(void *context)
{
	struct thread_run *a = context;

	a->result = symbolizer_run(a->s, a->batch, a->now_ns, a->ret);
	return NULL;
}

int symbolizer_run_on_thread(struct symbolizer *s, const struct andiron_batch *batch,
			     int64_t now_ns, const struct andiron_batch **ret)
{
	struct thread_run a = {s, batch, now_ns, ret, 0};
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	sigfillset(&all);
	r = pthread_attr_setstacksize(&attr, DEMANGLE_STACK_BYTES);
	if (r == 0)
		r = pthread_attr_setsigmask_np(&attr, &all);
	if (r == 0)
		r = pthread_create(&thread, &attr, thread_run, &a);
	pthread_attr_destroy(&attr);
	if (r)
		return -r;
	check(pthread_join(thread, NULL) == 0);
	return a.result;
}
