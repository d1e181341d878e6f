/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler without andiron: pyroscope.ebpf profiles one process for some seconds, and each stack
 * is printed with its samples, leaf first, as FILE+ADDRESS. Names are a symbolizer's to give.
 *
 *     cc -std=c11 sample.c -o sample
 *     sudo ./sample andiron-ebpf.so 1234 5 */
#include <andiron/host-min-objects.h>
#include <andiron/host-min.h>
#include <time.h>

static struct andiron_min_objects objects;

/* The one extension that the sampler cannot do without. */
static int32_t offer(void *context, const char *id, struct andiron_extension *ret)
{
	(void)context;
	if (strcmp(id, ANDIRON_OBJECTS_ID) != 0)
		return -ENOENT;
	ret->table = andiron_min_objects_table();
	ret->self = &objects;
	return 0;
}

/* Record i of a column, as far as this program knows it; zero where there is none. */
static void get(const struct andiron_batch *batch, uint32_t id, uint64_t i, void *to, size_t size)
{
	memset(to, 0, size);
	for (uint32_t k = 0; k < batch->n_columns; k++) {
		const struct andiron_column *c = &batch->columns[k];
		const struct andiron_segment *s = &batch->segments[c->segment];

		if (c->id == id && i < c->count)
			memcpy(to, (const char *)s->base + c->offset + i * c->elem_size,
			       c->elem_size < size ? c->elem_size : size);
	}
}

#define GET(batch, column, i, to) get((batch), ANDIRON_COL_##column, (i), (to), sizeof(*(to)))

static void print_string(const struct andiron_batch *batch, uint32_t index)
{
	struct andiron_string s;

	GET(batch, STRING, index, &s);
	if (s.length)
		printf("%.*s", (int)s.length,
		       (const char *)batch->segments[s.segment].base + s.offset);
}

/* A frame is an address in a file, or already has a text: what says why a stack ends. */
static void print_frame(const struct andiron_batch *batch, uint64_t position)
{
	uint32_t index;
	struct andiron_location location;
	struct andiron_mapping mapping;
	struct andiron_line line;
	struct andiron_function function;

	GET(batch, FRAME, position, &index);
	GET(batch, LOCATION, index, &location);
	GET(batch, MAPPING, location.mapping, &mapping);
	printf(" ");
	if (location.n_lines) {
		GET(batch, LINE, location.line_start, &line);
		GET(batch, FUNCTION, line.function, &function);
		print_string(batch, function.name);
	} else {
		print_string(batch, mapping.file);
		printf("+0x%llx", (unsigned long long)location.address);
	}
}

static void print(void *context, const struct andiron_batch *batch)
{
	uint64_t *n_samples = context, n_rows = 0;

	for (uint32_t k = 0; k < batch->n_columns; k++)
		if (batch->columns[k].id == ANDIRON_COL_ROW)
			n_rows = batch->columns[k].count;
	for (uint64_t i = 0; i < n_rows; i++) {
		struct andiron_row row;
		struct andiron_stack stack;

		GET(batch, ROW, i, &row);
		GET(batch, STACK, row.stack, &stack);
		printf("%llu", (unsigned long long)row.samples);
		for (uint32_t k = 0; k < stack.length; k++)
			print_frame(batch, (uint64_t)stack.start + k);
		printf("\n");
	}
	*n_samples += batch->samples;
}

/* The update is retained until the sampler has read it; it lives as long as the program. */
static void keep(void *owner)
{
	(void)owner;
}

/* {__process_pid__ = PID, service_name = "example"} */
static void send_target(struct andiron_min *sampler, const char *pid)
{
	static struct andiron_str strings[] = {
		{"__process_pid__", 15}, {NULL, 0}, {"service_name", 12}, {"example", 7}};
	static const struct andiron_label labels[] = {{0, 1}, {2, 3}};
	static const struct andiron_target row = {.row = 1, .n_labels = 2};
	static const struct andiron_targets update = {
		.size = sizeof(update),
		.flags = ANDIRON_TARGETS_SNAPSHOT,
		.producer = 1,
		.generation = 1,
		.strings = strings,
		.n_strings = 4,
		.labels = labels,
		.n_labels = 2,
		.rows = &row,
		.n_rows = 1,
		.n_added = 1,
		.retain = keep,
		.release = keep,
	};

	strings[1].ptr = pid;
	strings[1].len = strlen(pid);
	sampler->component->targets(sampler->self, "targets", &update);
}

static void log_line(void *context, uint32_t level, const struct andiron_min *part,
		     const struct andiron_str *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s: %.*s\n", part->component->name, (int)text->len, text->ptr);
}

static int complain(const char *what, const char *why, int code)
{
	fprintf(stderr, "sample: %s: %s\n", what, why && *why ? why : strerror(-code));
	return 1;
}

/* The drain delivers the samples of the unfinished interval, so this also works if the interval is
 * longer than SECONDS. */
static int run(struct andiron_min *sampler, const char *pid, const char *seconds)
{
	struct timespec now, end;
	int r = andiron_min_start(sampler);

	if (r < 0)
		return complain("start", sampler->error.text, r);
	send_target(sampler, pid);
	timespec_get(&end, TIME_UTC);
	end.tv_sec += strtol(seconds, NULL, 10);
	do {
		r = andiron_min_turn(sampler->loop, 1000);
		timespec_get(&now, TIME_UTC);
	} while (r >= 0 && now.tv_sec < end.tv_sec);
	if (r >= 0)
		r = andiron_min_drain(sampler, INT64_C(5000000000));
	return r < 0 ? complain("sampling", sampler->health_text, r) : 0;
}

int main(int argc, char **argv)
{
	struct andiron_min_loop loop = {.log = log_line};
	uint64_t n_samples = 0;
	struct andiron_min sampler = {
		.on_batch = print, .extension = offer, .context = &n_samples};
	const struct andiron_component *component;
	const struct andiron_value none = andiron_min_map(NULL, NULL, 0);
	const char *why = NULL;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: sample EBPF.so PID SECONDS\n");
		return 2;
	}
	component = andiron_min_find(argv[1], "pyroscope.ebpf", &why);
	if (!component)
		return complain(argv[1], why, 0);
	r = andiron_min_open(&loop);
	if (r < 0)
		return complain("the loop", NULL, r);
	r = andiron_min_create(&sampler, &loop, component, &none);
	if (r < 0)
		complain("create", sampler.error.text, r);
	else
		r = run(&sampler, argv[2], argv[3]);
	andiron_min_end(&sampler);
	andiron_min_close(&loop);
	fprintf(stderr, "%llu samples\n", (unsigned long long)n_samples);
	return r != 0 || n_samples == 0;
}
