/* SPDX-License-Identifier: Apache-2.0 */
/* A writer without andiron: this program makes a profile batch, of one stack with names, and hands
 * it to a writer's plugin. It says what the writer says has become of it.
 *
 *     cc -std=c11 write.c -o write
 *     ./write andiron-file.so example.pb.gz
 *     ./write andiron-pyroscope.so http://localhost:4040 */
#include <andiron/host-min.h>

#define N(array)       (sizeof(array) / sizeof((array)[0]))
#define SECOND         INT64_C(1000000000)
#define EXAMPLE_NUMBER 97 /* samples, of a clock that ticks 97 times a second */

/* Strings by their indices; 0 is the null entry, here as in all tables but TYPE, GROUP and ROW. */
enum { NONE, MAIN, WORK, FILE_C, PROCESS_CPU, CPU, NANOSECONDS, SERVICE_NAME, EXAMPLE, N_STRINGS };
static const char *const words[N_STRINGS] = {
	"",    "main",        "work",         "example.c", "process_cpu",
	"cpu", "nanoseconds", "service_name", "example",
};

/* The one piece of memory: all tables of the batch. */
static struct tables {
	char text[256];
	struct andiron_string strings[N_STRINGS];
	struct andiron_function functions[3];
	struct andiron_line lines[2];
	struct andiron_location locations[3];
	struct andiron_mapping mappings[1];
	struct andiron_stack stacks[2];
	uint32_t frames[2];
	struct andiron_attribute attributes[2];
	uint32_t attr_indices[2];
	struct andiron_profile_type types[1];
	struct andiron_group groups[1];
	struct andiron_row rows[1];
} tables = {
	.functions = {{0}, {MAIN, MAIN, FILE_C, 1}, {WORK, WORK, FILE_C, 10}},
	.lines = {{1, 3, 0, 0}, {2, 12, 0, 0}}, /* main at line 3, work at line 12 */
	.locations = {{0},
		      {.kind = ANDIRON_FRAME_NATIVE, .line_start = 0, .n_lines = 1},
		      {.kind = ANDIRON_FRAME_NATIVE, .line_start = 1, .n_lines = 1}},
	.stacks = {{0}, {.start = 0, .length = 2}},
	.frames = {2, 1}, /* the leaf first: work, called by main */
	.attributes = {{0}, {EXAMPLE, SERVICE_NAME, ANDIRON_ATTRIBUTE_STRING, 0, 0}},
	.attr_indices = {1},
	.types = {{PROCESS_CPU, CPU, NANOSECONDS, CPU, NANOSECONDS, 0, SECOND / EXAMPLE_NUMBER}},
	.groups = {{.label_start = 0, .n_labels = 1, .row_start = 0, .n_rows = 1}},
	.rows = {{.value = SECOND, .samples = EXAMPLE_NUMBER, .stack = 1}},
};

#define COLUMN(id_, member)                                                                        \
	{(id_), sizeof(tables.member[0]), 0, 0, offsetof(struct tables, member), N(tables.member)}

static const struct andiron_column columns[] = {
	COLUMN(ANDIRON_COL_STRING, strings),
	COLUMN(ANDIRON_COL_FUNCTION, functions),
	COLUMN(ANDIRON_COL_LINE, lines),
	COLUMN(ANDIRON_COL_LOCATION, locations),
	COLUMN(ANDIRON_COL_MAPPING, mappings),
	COLUMN(ANDIRON_COL_STACK, stacks),
	COLUMN(ANDIRON_COL_FRAME, frames),
	COLUMN(ANDIRON_COL_ATTRIBUTE, attributes),
	COLUMN(ANDIRON_COL_ATTR_INDEX, attr_indices),
	COLUMN(ANDIRON_COL_TYPE, types),
	COLUMN(ANDIRON_COL_GROUP, groups),
	COLUMN(ANDIRON_COL_ROW, rows),
};

/* Offsets in a column's table are multiples of 8. */
_Static_assert(offsetof(struct tables, attributes) % 8 == 0, "frames must be an even number");

/* The batch lives as long as the program: nothing is counted. */
static void count(void *owner)
{
	(void)owner;
}

static struct andiron_batch make_batch(const struct andiron_segment *segment)
{
	size_t n = 0;
	struct timespec now;

	for (uint32_t i = 0; i < N_STRINGS; i++) {
		tables.strings[i].offset = n;
		tables.strings[i].length = (uint32_t)strlen(words[i]);
		memcpy(tables.text + n, words[i], tables.strings[i].length);
		n += tables.strings[i].length;
	}
	timespec_get(&now, TIME_UTC);
	return (struct andiron_batch){
		.size = sizeof(struct andiron_batch),
		.n_columns = N(columns),
		.n_segments = 1,
		.columns = columns,
		.segments = segment,
		.start_ns = (now.tv_sec - 1) * SECOND + now.tv_nsec,
		.end_ns = now.tv_sec * SECOND + now.tv_nsec,
		.samples = EXAMPLE_NUMBER,
		.bytes = sizeof(tables),
		.producer = 1,
		.sequence = 1,
		.retain = count,
		.release = count,
	};
}

static int complain(const char *what, const char *why, int code)
{
	fprintf(stderr, "write: %s: %s\n", what, why && *why ? why : strerror(-code));
	return 1;
}

/* paths = [TO], or endpoint { url = TO } */
static int create(struct andiron_min *part, struct andiron_min_loop *loop,
		  const struct andiron_component *component, const char *to)
{
	int is_file = strcmp(component->name, "profile.file") == 0;
	const struct andiron_value text = andiron_min_string(to);
	const struct andiron_str url = {"url", 3};
	const struct andiron_value block = andiron_min_map(&url, &text, 1);
	const struct andiron_str key = is_file ? (struct andiron_str){"paths", 5}
					       : (struct andiron_str){"endpoint", 8};
	const struct andiron_value list = andiron_min_list(is_file ? &text : &block, 1);
	const struct andiron_value args = andiron_min_map(&key, &list, 1);

	return andiron_min_create(part, loop, component, &args);
}

/* Hands it the batch and waits until it has delivered what it has. 0: all of it. A writer whose
 * drain took too long holds the batch until it ends, so the batch outlives this function. */
static int deliver(struct andiron_min *part)
{
	static const struct andiron_segment segment = {&tables, sizeof(tables), -1, 0};
	static struct andiron_batch batch;
	int r = andiron_min_start(part);

	if (r < 0)
		return complain("start", part->error.text, r);
	batch = make_batch(&segment);
	part->component->batch(part->self, &batch);
	r = andiron_min_drain(part, 10 * SECOND);
	if (r < 0)
		return complain("drain", part->health_text, r);
	printf("delivered %llu, dropped %llu\n",
	       (unsigned long long)part->ledger[ANDIRON_LEDGER_DELIVERED],
	       (unsigned long long)part->ledger[ANDIRON_LEDGER_DROPPED]);
	if (part->ledger[ANDIRON_LEDGER_DELIVERED] == EXAMPLE_NUMBER)
		return 0;
	return complain(part->component->name, part->health_text, 0);
}

int main(int argc, char **argv)
{
	struct andiron_min_loop loop = {0};
	struct andiron_min part = {0};
	const struct andiron_component *component;
	const char *why = NULL, *name;
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: write WRITER.so FILE|URL\n");
		return 2;
	}
	name = strstr(argv[2], "://") ? "pyroscope.write" : "profile.file";
	component = andiron_min_find(argv[1], name, &why);
	if (!component)
		return complain(argv[1], why, 0);
	r = andiron_min_open(&loop);
	if (r < 0)
		return complain("the loop", NULL, r);
	r = create(&part, &loop, component, argv[2]);
	if (r < 0)
		complain("create", part.error.text, r);
	else
		r = deliver(&part);
	andiron_min_end(&part);
	andiron_min_close(&loop);
	return r != 0;
}
