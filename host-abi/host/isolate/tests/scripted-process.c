/* SPDX-License-Identifier: Apache-2.0 */
/* What test-isolated.c isolates: a process that speaks as an isolated component's does, and says of
 * its samples what the component's name has it say. Called as `andiron worker` is. */
#include "host/isolate/batch-memory.h"
#include "host/isolate/message.h"
#include "host/isolate/target-bytes.h"
#include "host/services/sandboxed-worker.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static void say(uint32_t type, uint64_t number, struct str text, int fd)
{
	struct isolate_message m = {.type = type, .number = number, .text = text};

	if (isolate_put(SANDBOXED_WORKER_SOCKET, &m, fd, true) < 0)
		_exit(1);
}

/* A batch of 10 samples. */
static void on_batch(const char *script, uint64_t number, int fd)
{
	static uint64_t spooled;
	struct isolate_counts c = {0};

	if (strcmp(script, "says.uncertain") == 0)
		c.uncertain = 10;
	else if (strcmp(script, "says.nothing") != 0)
		c.spooled = spooled += 10;
	say(ISOLATE_COUNTS, 0, isolate_counts_text(&c), -1);
	if (strcmp(script, "sends.spooled") == 0)
		say(ISOLATE_SEND, 10, STR_NULL, fd);
	say(ISOLATE_DONE, number, STR_NULL, -1);
}

/* So many more targets of a list, which share a label of 1 MiB. */
static void make(const char *list, uint64_t generation, uint64_t n)
{
	static struct andiron_target rows[300];
	static char text[1 << 20];
	const struct andiron_str strings[] = {{"name", 4}, {text, sizeof(text)}};
	const struct andiron_label label = {0, 1};
	const struct andiron_targets update = {
		.size = sizeof(update),
		.flags = generation == 1 ? ANDIRON_TARGETS_SNAPSHOT : 0,
		.producer = 1,
		.generation = generation,
		.strings = strings,
		.n_strings = 2,
		.labels = &label,
		.n_labels = 1,
		.rows = rows,
		.n_rows = n,
		.n_added = n,
	};
	struct buf bytes = BUF_NULL;
	struct andiron_segment segment = {0};
	int fd = -1;

	memset(text, 'x', sizeof(text));
	for (uint64_t i = 0; i < n; i++)
		rows[i] = (struct andiron_target){.row = generation << 32 | i, .n_labels = 1};
	target_bytes_put(&bytes, list, &update);
	segment.base = bytes.p;
	segment.size = bytes.n;
	if (memory_of_batch(&(struct andiron_batch){.n_segments = 1, .segments = &segment}, &fd))
		_exit(1);
	say(ISOLATE_SEND, 0, STR_NULL, fd);
	close(fd);
	buf_free(&bytes);
}

/* Once it is given some: the agent has it started by then. */
static void on_targets(const char *script, uint64_t number)
{
	say(ISOLATE_DONE, number, STR_NULL, -1);
	if (strcmp(script, "makes.many") == 0)
		make("a", 1, 300);
	if (strcmp(script, "makes.apart") == 0) {
		make("a", 1, 130);
		make("b", 1, 1);
		make("a", 2, 130);
	}
	if (strcmp(script, "makes.three") == 0) {
		make("a", 1, 90);
		make("b", 1, 90);
		make("c", 1, 90);
	}
}

static void on_drain(const char *script)
{
	struct isolate_counts nothing = {0};

	if (strcmp(script, "forgets.spooled") == 0)
		say(ISOLATE_COUNTS, 0, isolate_counts_text(&nothing), -1);
	if (strncmp(script, "says.un", 7) != 0 && strcmp(script, "says.spooled") != 0)
		say(ISOLATE_ENDED, 0, STR_NULL, -1); /* the others are never drained */
}

int main(int argc, char **argv)
{
	static struct isolate_packet packet;
	struct pollfd readable = {.fd = SANDBOXED_WORKER_SOCKET, .events = POLLIN};
	struct isolate_message m;
	int fd = -1, r;

	for (;;) {
		r = isolate_take(SANDBOXED_WORKER_SOCKET, &packet, &m, &fd);
		if (r < 0 || argc != 5)
			return 1;
		if (r == 0)
			poll(&readable, 1, -1);
		else if (m.type == ISOLATE_START)
			say(ISOLATE_READY, 0, STR_NULL, -1);
		else if (m.type == ISOLATE_BATCH && strncmp(argv[3], "makes.", 6) == 0)
			on_targets(argv[3], m.number);
		else if (m.type == ISOLATE_BATCH)
			on_batch(argv[3], m.number, fd);
		else
			on_drain(argv[3]);
		if (r == 1 && fd >= 0)
			close(fd);
	}
}
