/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one profile of known content to the paths given, by way of batches as a run would:
 * `make-profile SCALE PATH…`. Function 0 costs 70, 1 costs 20, 2 costs 10 of each 100 samples;
 * SCALE is a multiple of 5; each stands in 50 stacks of two processes, below an inlined pair, a
 * kernel frame and a frame without name. */
#include "abi/batch-build.h"
#include "file/recording.h"

#include <stdio.h>
#include <stdlib.h>

#define PERIOD 10309278

static uint32_t add_mapping(struct batch_builder *b, const char *file, const char *build_id)
{
	struct andiron_mapping m = {.file = batch_add_string(b, str_of(file)),
				    .gnu_build_id = batch_add_string(b, str_of(build_id))};

	return batch_add_mapping(b, &m);
}

static uint32_t add_function(struct batch_builder *b, const char *name)
{
	struct andiron_function f = {.name = batch_add_string(b, str_of(name)),
				     .file = batch_add_string(b, STR("shop.c"))};

	return batch_add_function(b, &f);
}

static uint32_t add_named(struct batch_builder *b, struct andiron_location l, const char *name,
			  const char *caller)
{
	struct andiron_line lines[2] = {{.function = add_function(b, name), .line = 7}};
	uint32_t id = batch_add_location(b, &l);

	if (caller)
		lines[1] = (struct andiron_line){.function = add_function(b, caller), .line = 9};
	batch_set_lines(b, id, lines, caller ? 2 : 1);
	return id;
}

#define N_STACKS 50u

static const struct {
	const char *name;
	uint64_t cost;
} leaves[3] = {{"hot_path", 70}, {"warm_path", 20}, {"cold_path", 10}};

struct places {
	uint32_t kernel[N_STACKS], bare[N_STACKS], inlined[N_STACKS];
	uint32_t leaf[3], main;
};

static void add_places(struct batch_builder *b, struct places *p)
{
	struct andiron_location native = {
		.mapping =
			add_mapping(b, "/usr/bin/shop", "00112233445566778899aabbccddeeff00112233"),
		.kind = ANDIRON_FRAME_NATIVE};
	struct andiron_location bare = {
		.mapping = add_mapping(b, "/lib/libshop.so.1",
				       "ffeeddccbbaa99887766554433221100ffeeddcc"),
		.kind = ANDIRON_FRAME_NATIVE};
	struct andiron_location kernel = {.kind = ANDIRON_FRAME_KERNEL};

	for (uint32_t i = 0; i < N_STACKS; i++) {
		kernel.address = 0xffffffff81000000 + i;
		p->kernel[i] = add_named(b, kernel, "do_syscall_64", NULL);
		bare.address = 0x5000 + i;
		p->bare[i] = batch_add_location(b, &bare);
		native.address = 0x2000 + i;
		p->inlined[i] = add_named(b, native, "inlined", "caller");
	}
	for (uint32_t k = 0; k < 3; k++) {
		native.address = 0x1000 + k;
		p->leaf[k] = add_named(b, native, leaves[k].name, NULL);
	}
	native.address = 0x3000;
	p->main = add_named(b, native, "main", NULL);
}

/* Even stacks are of process 100, odd ones of 101. */
static void add_rows(struct batch_builder *b, const struct places *p, uint64_t scale,
		     uint32_t first)
{
	for (uint32_t i = first; i < N_STACKS; i += 2)
		for (uint32_t k = 0; k < 3; k++) {
			struct andiron_row row = {.samples = leaves[k].cost * scale / N_STACKS,
						  .n_attrs = 2};
			uint32_t attributes[2] = {
				batch_add_str_attribute(b, STR("process"), STR("shop")),
				batch_add_int_attribute(b, STR("pid"), 100 + i % 2)};
			uint32_t stack[5] = {p->kernel[i], p->leaf[k], p->bare[i], p->inlined[i],
					     p->main};

			row.value = (int64_t)row.samples * PERIOD;
			row.attr_start = batch_add_attributes(b, attributes, 2);
			/* Odd stacks have no kernel part: the leaf's cost is its own. */
			row.stack = i % 2 ? batch_add_stack(b, stack + 1, 4)
					  : batch_add_stack(b, stack, 5);
			batch_add_row(b, &row);
		}
}

static const struct andiron_batch *make_batch(uint64_t scale)
{
	static const struct batch_head head = {.start_ns = 1700000000000000000,
					       .end_ns = 1700000010000000000};
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type t = {.period = PERIOD};
	const struct andiron_batch *batch;
	uint32_t labels[2];
	struct places p;

	if (!b)
		return NULL;
	t.name = batch_add_string(b, STR("process_cpu"));
	t.type = t.period_type = batch_add_string(b, STR("cpu"));
	t.unit = t.period_unit = batch_add_string(b, STR("nanoseconds"));
	batch_add_type(b, &t);
	add_places(b, &p);
	labels[0] = batch_add_str_attribute(b, STR("namespace"), STR("market"));
	labels[1] = batch_add_str_attribute(b, STR("pod"), STR("shop-a"));
	batch_group_begin(b, labels, 2);
	add_rows(b, &p, scale, 0);
	labels[1] = batch_add_str_attribute(b, STR("pod"), STR("shop-b"));
	batch_group_begin(b, labels, 2);
	add_rows(b, &p, scale, 1);
	batch_add_loss(b, STR("ring_full"), 12);
	return batch_finish(b, &head, &batch) == 0 ? batch : NULL;
}

int main(int argc, char **argv)
{
	uint64_t scale = argc > 2 ? strtoull(argv[1], NULL, 10) : 0, full, lost;
	const struct andiron_batch *batch = scale ? make_batch(scale) : NULL;
	struct error err = ERROR_NULL;
	struct str group = STR("process");
	struct recording *r;
	struct str *paths;
	int e = -1;

	if (!batch) {
		fprintf(stderr, "usage: make-profile SCALE PATH…\n");
		return 2;
	}
	paths = calloc((size_t)argc, sizeof(*paths));
	for (int i = 2; i < argc; i++)
		paths[i - 2] = str_of(argv[i]);
	r = recording_new(paths, (size_t)argc - 2,
			  &(struct recording_options){
				  .title = STR("golden"),
				  .groups = &group,
				  .n_groups = 1,
				  .max_bytes = RECORDING_MAX_BYTES,
			  });
	if (r) {
		recording_add(r, batch, &full, &lost);
		e = full || lost ? -1 : recording_write(r, &err);
		printf("%llu\n", (unsigned long long)recording_samples(r));
	}
	if (e < 0)
		fprintf(stderr, "make-profile: %s\n", err.text);
	recording_free(r);
	batch_release(batch);
	free(paths);
	return e < 0;
}
