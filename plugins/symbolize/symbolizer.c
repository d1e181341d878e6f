/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames to names. The frames of a batch are sorted by object, so that each
 * file is opened at most once a batch, and its entry in the cache need not
 * outlive its turn. Contract in symbolizer.h.
 */
#include "symbolizer.h"

#include "binary.h"
#include "clean.h"
#include "demangle.h"

#include "abi/batch-build.h"
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
	uint32_t demangle;
	int64_t now_ns;
	VEC(struct frame) frames;
	struct buf linked, readable, clean_linked, clean_readable; /* scratch */
};

void symbolizer_init(struct symbolizer *s, const struct andiron_extension *objects,
		     size_t cache_bytes, symbolizer_broken_fn broken, void *context)
{
	*s = (struct symbolizer){.broken = broken, .context = context};
	cache_init(&s->cache, objects, cache_bytes);
	kernel_init(&s->kernel, objects);
}

void symbolizer_fini(struct symbolizer *s)
{
	cache_fini(&s->cache);
	kernel_fini(&s->kernel);
}

/* A linked name as it is shown and as it is kept; both clean. 0 or -ENOMEM. */
static int make_names(struct run *run, struct str linked, struct str *name, struct str *system_name)
{
	int r = demangle(linked, run->demangle, &run->readable);

	if (r < 0)
		return r;
	*system_name = clean_name(linked, &run->clean_linked);
	*name = r ? clean_name(buf_str(&run->readable), &run->clean_readable) : *system_name;
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

static void set_tried(struct run *run, uint32_t location, unsigned int why)
{
	run->s->totals.unresolved[why]++;
	batch_set_tried(run->builder, location);
}

static unsigned int source_of(const struct cached_object *o)
{
	if (o->symbols.source == ELF_SYMBOLS_DYNSYM)
		return FROM_DYNSYM;
	return o->opens == ANDIRON_OPEN_DEBUG ? FROM_DEBUG : FROM_SYMTAB;
}

/* Looks an address up in the file and remembers the answer; NULL with *r 0
 * if the file cannot be read now. */
static const struct cached_name *look_up(struct run *run, struct binary *b, uint64_t address,
					 int *r)
{
	struct str name = STR(""), system_name = STR("");
	const struct cached_name *answer;

	*r = binary_find(b, address, &run->linked);
	if (*r == 0)
		*r = make_names(run, buf_str(&run->linked), &name, &system_name);
	else if (*r == -ENOENT)
		*r = 0;
	else if (*r != -ENOMEM) {
		*r = 0;
		return NULL;
	}
	if (*r < 0)
		return NULL;
	answer = cache_add(b->object, address, run->demangle, name, system_name);
	if (!answer)
		*r = -ENOMEM;
	return answer;
}

static int name_frame(struct run *run, struct binary *b, const struct frame *f)
{
	struct cached_object *o = b->object;
	const struct cached_name *known = cache_find(o, f->address, run->demangle);
	int r = 0;

	if (!known && o->state == BINARY_READY)
		known = look_up(run, b, f->address, &r);
	if (r < 0)
		return r;
	if (known && known->name) {
		run->s->totals.resolved[source_of(o)]++;
		return set_name(run, f->location, intern_get(&o->names, known->name),
				intern_get(&o->names, known->system_name));
	}
	set_tried(run, f->location,
		  known                       ? WHY_NO_SYMBOL
		  : o->state == BINARY_BROKEN ? WHY_BROKEN
					      : WHY_UNAVAILABLE);
	return 0;
}

static void set_aside(struct symbolizer *s, uint64_t object, const struct error *why)
{
	struct andiron_object_info info = {.size = sizeof(info)};

	s->totals.broken_files++;
	if (s->broken && s->cache.objects->info(s->cache.objects_self, object, &info) == 0)
		s->broken(s->context, &info.path, why);
}

/* The frames [f, end) of one object. */
static int name_object(struct run *run, const struct frame *f, const struct frame *end)
{
	struct cached_object *o = cache_object(&run->s->cache, f->object, run->now_ns);
	struct error why = ERROR_NULL;
	struct binary b;
	int r;

	if (!o)
		return -ENOMEM;
	r = binary_begin(&b, &run->s->cache, o, run->now_ns, &why);
	if (r < 0 && r != -ENOMEM) {
		set_aside(run->s, o->id, &why);
		r = 0;
	}
	for (; r == 0 && f < end; f++)
		r = name_frame(run, &b, f);
	binary_end(&b);
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
			set_tried(run, f->location, found == -ENOENT ? WHY_NO_SYMBOL : WHY_KERNEL);
			continue;
		}
		run->s->totals.resolved[FROM_KERNEL]++;
		r = make_names(run, linked, &name, &system_name);
		if (r == 0)
			r = set_name(run, f->location, name, system_name);
	}
	return r;
}

static int name_nameless(struct run *run, const struct frame *f, const struct frame *end)
{
	for (; f < end; f++)
		set_tried(run, f->location, WHY_NO_OBJECT);
	return 0;
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

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* The frames that want a name, sorted. */
static int collect(struct run *run, const struct batch_view *v)
{
	uint64_t n = batch_count(v, ANDIRON_COL_LOCATION);

	for (uint32_t i = 1; i < n; i++) {
		struct andiron_location l = batch_location(v, i);
		struct frame f = {.address = l.address, .location = i};

		if (l.n_lines || (l.flags & ANDIRON_LOCATION_TRIED))
			continue;
		if (l.kind == ANDIRON_FRAME_KERNEL)
			f.object = ANDIRON_OBJECT_KERNEL;
		else if (l.kind == ANDIRON_FRAME_NATIVE)
			f.object = batch_mapping(v, l.mapping).object;
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

	if (r == 0)
		r = collect(&run, &v);
	if (r == 0 && run.frames.n == 0)
		*ret = NULL;
	else if (r == 0)
		r = derive(&run, batch, ret);
	cache_trim(&s->cache, now_ns);
	vec_free(&run.frames);
	buf_free(&run.linked);
	buf_free(&run.readable);
	buf_free(&run.clean_linked);
	buf_free(&run.clean_readable);
	return r;
}

struct apart {
	struct symbolizer *s;
	const struct andiron_batch *batch;
	int64_t now_ns;
	const struct andiron_batch **ret;
	int result;
};

static void *run_apart(void *context)
{
	struct apart *a = context;

	a->result = symbolizer_run(a->s, a->batch, a->now_ns, a->ret);
	return NULL;
}

int symbolizer_run_apart(struct symbolizer *s, const struct andiron_batch *batch, int64_t now_ns,
			 const struct andiron_batch **ret)
{
	struct apart a = {s, batch, now_ns, ret, 0};
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
		r = pthread_create(&thread, &attr, run_apart, &a);
	pthread_attr_destroy(&attr);
	if (r)
		return -r;
	check(pthread_join(thread, NULL) == 0);
	return a.result;
}
