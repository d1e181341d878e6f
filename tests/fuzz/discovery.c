/* SPDX-License-Identifier: Apache-2.0 */
/* What discoveries read: target groups, answers of DNS servers, of a Docker engine and of a swarm's
 * manager, patterns of paths. The first byte chooses the reader. */
#include "fuzz.h"

#include "discovery/dns-answer.h"
#include "discovery/groups.h"
#include "discovery/path-pattern.h"
#include "docker/container.h"
#include "docker/events.h"
#include "docker/swarm-targets.h"

#include "base/check.h"

#include <stdlib.h>

static void tell(void *context, const struct event *event)
{
	*(size_t *)context += event->type.n + event->action.n + event->id.n + event->container.n;
}

static void read_events(struct str text)
{
	struct events events = {0};
	size_t told = 0;

	events_begin(&events);
	events_feed(&events, str_first(text, text.n / 2), tell, &told);
	events_feed(&events, str_skip(text, text.n / 2), tell, &told);
	check(told <= text.n);
	events_fini(&events);
}

static void read_lists(struct str text)
{
	struct container_list containers = {0};
	struct network_list networks = {0};

	if (container_list_parse(text, &containers, NULL) == 0)
		container_list_free(&containers);
	if (network_list_parse(text, &networks, NULL) == 0)
		network_list_free(&networks);
}

/* The first byte is the role, each line an answer. */
static void read_swarm(struct str text)
{
	struct swarm_options options = {.port = 80, .without_network = true};
	struct str rest = str_skip(text, 1), answers[SWARM_LISTS] = {STR_NULL};
	struct swarm_targets targets = {0};

	if (text.n == 0)
		return;
	options.role = swarm_role(str_of(swarm_role_names[(unsigned char)text.p[0] % 3]));
	for (size_t i = 0; i < SWARM_LISTS; i++)
		answers[i] = str_cut(&rest, '\n');
	if (swarm_targets_read(&options, answers, &targets, NULL) < 0)
		return;
	check(targets.keys.n == targets.rows.rows.n);
	swarm_targets_free(&targets);
}

/* What follows a line's end is the path. */
static void match_path(struct str text)
{
	size_t end = str_find(text, '\n');
	struct path_pattern pattern;
	char *path;

	if (path_pattern_read(str_first(text, end), &pattern) < 0)
		return;
	path = str_dup(str_skip(text, end));
	if (path)
		path_pattern_matches(&pattern, path);
	free(path);
	path_pattern_free(&pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const struct target_label label = {STR("__meta_url"), STR("u")};
	struct str text = {(const char *)bytes + 1, n - 1};
	struct target_rows rows = {0};
	int r = -1;

	if (n == 0)
		return 0;
	switch (bytes[0]) {
	case 'j':
		r = groups_from_json(text, label, &rows, NULL);
		break;
	case 'y':
		r = groups_from_yaml(text, label, &rows, NULL);
		break;
	case 'e':
		read_events(text);
		break;
	case 'p':
		match_path(text);
		break;
	case 's':
		read_swarm(text);
		break;
	case 'l':
		read_lists(text);
		break;
	default:
		r = dns_answer_read(bytes + 1, n - 1, (enum dns_type)(bytes[0] & 3), STR("n"), 80,
				    &rows);
		break;
	}
	if (r == 0)
		target_rows_free(&rows);
	return 0;
}
