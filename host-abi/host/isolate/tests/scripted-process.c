/* SPDX-License-Identifier: Apache-2.0 */
/* What test-isolated.c isolates: a process that speaks as an isolated component's does, and says of
 * its samples what the component's name has it say. Called as `andiron worker` is. */
#include "host/isolate/message.h"
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
		else if (m.type == ISOLATE_BATCH)
			on_batch(argv[3], m.number, fd);
		else
			on_drain(argv[3]);
		if (r == 1 && fd >= 0)
			close(fd);
	}
}
