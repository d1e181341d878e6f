/* SPDX-License-Identifier: Apache-2.0 */
/* Nanoseconds per stack to make a pprof of 1,000, 10,000 and 100,000 distinct stacks of 30 frames
 * with our encoder, beside protobuf-c given the same tables ready made, and peak memory of each
 * beside the length of its output. The figures should not rise with the number of stacks. */
#include "base/buf.h"
#include "base/clock.h"
#include "pprof/encode.h"
#include "profile.pb-c.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAMES    30u
#define LOCATIONS 4000u

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Stacks share their roots and differ at their leaves, as real ones do. */
static void make_stack(uint64_t *seed, uint32_t i, uint32_t *stack)
{
	for (uint32_t k = 0; k < FRAMES; k++)
		stack[k] = k < 6 ? (uint32_t)next_random(seed) % LOCATIONS
				 : (i / (1u << (k / 3)) * 31 + k * 97) % LOCATIONS;
}

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

struct result {
	int64_t ns;
	size_t bytes;
	size_t memory;
};

static struct result with_ours(uint32_t n, int level)
{
	size_t before = in_use();
	int64_t begun = clock_mono();
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = 1, .duration_ns = 1, .period = 1};
	uint32_t stack[FRAMES], *locations = calloc(LOCATIONS, sizeof(*locations));
	uint64_t seed = 1;
	struct buf out = BUF_NULL;
	struct result r;

	pprof_add_type(e, pprof_add_string(e, STR("cpu")), pprof_add_string(e, STR("nanoseconds")));
	for (uint32_t i = 0; i < LOCATIONS; i++) {
		char name[32];
		struct pprof_function f = {0};
		struct pprof_line line = {0};
		struct pprof_location l = {
			.address = 0x1000 + i * 16, .n_lines = 1, .lines = &line};
		struct pprof_mapping m = {.file = pprof_add_string(e, STR("/usr/lib/libdemo.so"))};

		snprintf(name, sizeof(name), "namespace::function_%u", i);
		f.name = pprof_add_string(e, str_of(name));
		line.function = pprof_add_function(e, &f);
		l.mapping = pprof_add_mapping(e, &m);
		locations[i] = pprof_add_location(e, &l);
	}
	for (uint32_t i = 0; i < n; i++) {
		int64_t value = 10309278;
		struct pprof_sample s = {stack, NULL, &value, FRAMES, 0};

		make_stack(&seed, i, stack);
		for (uint32_t k = 0; k < FRAMES; k++)
			stack[k] = locations[stack[k]];
		pprof_add_sample(e, &s);
	}
	if (pprof_finish(e, &head, level, &out, NULL) < 0)
		abort();
	r = (struct result){clock_mono() - begun, out.n, in_use() - before};
	pprof_encoder_free(e);
	buf_free(&out);
	free(locations);
	return r;
}

static Andiron__Pprof__Location *new_location(uint32_t i)
{
	Andiron__Pprof__Location *l = malloc(sizeof(*l));

	andiron__pprof__location__init(l);
	l->id = i + 1;
	l->address = 0x1000 + i * 16;
	l->n_line = 1;
	l->line = malloc(sizeof(*l->line));
	l->line[0] = malloc(sizeof(**l->line));
	andiron__pprof__line__init(l->line[0]);
	l->line[0]->function_id = i + 1;
	return l;
}

static Andiron__Pprof__Sample *new_sample(uint64_t *seed, uint32_t i)
{
	Andiron__Pprof__Sample *s = malloc(sizeof(*s));
	uint32_t stack[FRAMES];

	andiron__pprof__sample__init(s);
	make_stack(seed, i, stack);
	s->n_location_id = FRAMES;
	s->location_id = malloc(FRAMES * sizeof(*s->location_id));
	for (uint32_t k = 0; k < FRAMES; k++)
		s->location_id[k] = stack[k] + 1;
	s->n_value = 1;
	s->value = malloc(sizeof(*s->value));
	s->value[0] = 10309278;
	return s;
}

static void fill(Andiron__Pprof__Profile *p, uint32_t n)
{
	uint64_t seed = 1;

	p->n_string_table = p->n_function = p->n_location = LOCATIONS;
	p->string_table = calloc(LOCATIONS, sizeof(*p->string_table));
	p->function = calloc(LOCATIONS, sizeof(*p->function));
	p->location = calloc(LOCATIONS, sizeof(*p->location));
	for (uint32_t i = 0; i < LOCATIONS; i++) {
		p->string_table[i] = malloc(32);
		snprintf(p->string_table[i], 32, "namespace::function_%u", i);
		p->function[i] = malloc(sizeof(**p->function));
		andiron__pprof__function__init(p->function[i]);
		p->function[i]->id = i + 1;
		p->function[i]->name = i;
		p->location[i] = new_location(i);
	}
	p->n_sample = n;
	p->sample = calloc(n, sizeof(*p->sample));
	for (uint32_t i = 0; i < n; i++)
		p->sample[i] = new_sample(&seed, i);
}

/* All of it came from malloc, as if protobuf-c had unpacked it. */
static void empty(Andiron__Pprof__Profile *p)
{
	Andiron__Pprof__Profile *owned = malloc(sizeof(*owned));

	*owned = *p;
	andiron__pprof__profile__free_unpacked(owned, NULL);
}

/* protobuf-c wants the whole message as a tree of structs. Equal samples are not looked for, so
 * this is less work than ours. */
static struct result with_protobuf_c(uint32_t n, int level)
{
	size_t before = in_use();
	int64_t begun = clock_mono();
	Andiron__Pprof__Profile p = ANDIRON__PPROF__PROFILE__INIT;
	struct result r;
	uint8_t *out;

	(void)level;
	fill(&p, n);
	r.bytes = andiron__pprof__profile__get_packed_size(&p);
	out = malloc(r.bytes);
	andiron__pprof__profile__pack(&p, out);
	r.ns = clock_mono() - begun;
	r.memory = in_use() - before;
	free(out);
	empty(&p);
	return r;
}

static void print(const char *what, uint32_t n, struct result r)
{
	printf("%-22s %7u stacks  %7.0f ns/stack  %9zu bytes  memory %5.2f x output\n", what, n,
	       (double)r.ns / n, r.bytes, (double)r.memory / (double)r.bytes);
}

static struct result best_of_three(struct result (*run)(uint32_t n, int level), uint32_t n,
				   int level)
{
	struct result best = run(n, level);

	for (int i = 0; i < 2; i++) {
		struct result r = run(n, level);

		if (r.ns < best.ns)
			best = r;
	}
	return best;
}

int main(void)
{
	static const uint32_t counts[] = {1000, 10000, 100000};

	for (size_t i = 0; i < 3; i++) {
		print("encoder, plain", counts[i], best_of_three(with_ours, counts[i], 0));
		print("encoder, gzip level 1", counts[i], best_of_three(with_ours, counts[i], 1));
		print("protobuf-c, plain", counts[i], best_of_three(with_protobuf_c, counts[i], 0));
	}
	return 0;
}
