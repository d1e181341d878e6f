/* SPDX-License-Identifier: Apache-2.0 */
/* Two plugins without andiron: discovery.process finds processes, discovery.relabel keeps those
 * whose name matches, and what is left is printed, one target a line.
 *
 *     cc -std=c11 targets.c -o targets
 *     ./targets andiron-process.so andiron-relabel.so 'bash|python3.*'
 *
 * It ends once there is a target. */
#include <andiron/host-min.h>

static struct andiron_str word(const char *text)
{
	const struct andiron_str s = {text, strlen(text)};

	return s;
}

/* rule { source_labels = ["__meta_process_comm"], action = "keep", regex = REGEX }
 * rule { source_labels = ["__meta_process_comm"], target_label = "service_name" } */
static int create_relabel(struct andiron_min *part, struct andiron_min_loop *loop,
			  const struct andiron_component *component, const char *regex)
{
	const struct andiron_value comm = andiron_min_string("__meta_process_comm");
	const struct andiron_value source = andiron_min_list(&comm, 1);
	const struct andiron_str keep_keys[] = {word("source_labels"), word("action"),
						word("regex")};
	const struct andiron_value keep[] = {source, andiron_min_string("keep"),
					     andiron_min_string(regex)};
	const struct andiron_str name_keys[] = {word("source_labels"), word("target_label")};
	const struct andiron_value name[] = {source, andiron_min_string("service_name")};
	const struct andiron_value rules[] = {andiron_min_map(keep_keys, keep, 3),
					      andiron_min_map(name_keys, name, 2)};
	const struct andiron_str key = word("rule");
	const struct andiron_value list = andiron_min_list(rules, 2);
	const struct andiron_value args = andiron_min_map(&key, &list, 1);

	return andiron_min_create(part, loop, component, &args);
}

/* Without process events it lists /proc at this interval. */
static int create_process(struct andiron_min *part, struct andiron_min_loop *loop,
			  const struct andiron_component *component)
{
	const struct andiron_str key = word("refresh_interval");
	const struct andiron_value second = andiron_min_number(ANDIRON_VALUE_INT, 1000000000);
	const struct andiron_value args = andiron_min_map(&key, &second, 1);

	return andiron_min_create(part, loop, component, &args);
}

/* The host's part of the work: what one component sends is what the other gets. */
static void forward(void *context, const char *export_name, const struct andiron_targets *update)
{
	const struct andiron_min *to = context;

	(void)export_name;
	to->component->targets(to->self, "targets", update);
}

static void print(void *context, const char *export_name, const struct andiron_targets *update)
{
	uint64_t *n_printed = context;

	(void)export_name;
	for (uint64_t i = 0; i < update->n_rows; i++) {
		const struct andiron_target *row = &update->rows[i];

		for (uint32_t k = 0; k < row->n_labels; k++) {
			const struct andiron_label *l = &update->labels[row->label_start + k];
			const struct andiron_str *name = &update->strings[l->name];
			const struct andiron_str *value = &update->strings[l->value];

			printf("%s%.*s=\"%.*s\"", k ? ", " : "{", (int)name->len, name->ptr,
			       (int)value->len, value->ptr);
		}
		printf("}\n");
		++*n_printed;
	}
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
	fprintf(stderr, "targets: %s: %s\n", what, why && *why ? why : strerror(-code));
	return 1;
}

/* Consumers start before producers, and end after them. */
static int run(struct andiron_min_loop *loop, struct andiron_min *process,
	       struct andiron_min *relabel, const uint64_t *n_printed)
{
	int r = andiron_min_start(relabel);

	if (r < 0)
		return complain("discovery.relabel", relabel->error.text, r);
	r = andiron_min_start(process);
	if (r < 0)
		return complain("discovery.process", process->error.text, r);
	while (*n_printed == 0 && r >= 0)
		r = andiron_min_turn(loop, -1);
	return r < 0 ? complain("waiting", NULL, r) : 0;
}

int main(int argc, char **argv)
{
	struct andiron_min_loop loop = {.log = log_line};
	uint64_t n_printed = 0;
	struct andiron_min relabel = {.on_targets = print, .context = &n_printed};
	struct andiron_min process = {.on_targets = forward, .context = &relabel};
	const struct andiron_component *finds, *rewrites;
	const char *why = NULL;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: targets PROCESS.so RELABEL.so REGEX\n");
		return 2;
	}
	finds = andiron_min_find(argv[1], "discovery.process", &why);
	if (!finds)
		return complain(argv[1], why, 0);
	rewrites = andiron_min_find(argv[2], "discovery.relabel", &why);
	if (!rewrites)
		return complain(argv[2], why, 0);
	r = andiron_min_open(&loop);
	if (r < 0)
		return complain("the loop", NULL, r);
	r = create_relabel(&relabel, &loop, rewrites, argv[3]);
	if (r < 0)
		complain("discovery.relabel", relabel.error.text, r);
	else if ((r = create_process(&process, &loop, finds)) < 0)
		complain("discovery.process", process.error.text, r);
	else
		r = run(&loop, &process, &relabel, &n_printed);
	andiron_min_end(&process);
	andiron_min_end(&relabel);
	andiron_min_close(&loop);
	return r != 0;
}
