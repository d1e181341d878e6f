/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins on hosts that do no more than docs/hosts.md says that they must. */
#include "hosts.h"

#include "abi/batch-build.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

static bool sent_targets(const struct trial *t)
{
	return t->n_rows > 0;
}

static void give_target(struct trial *t)
{
	trial_give_target(t, STR("a"), STR("b"));
}

/* The page's column of discovery.process is right. */
TEST(processes_are_found_on_the_least_host)
{
	job_check(&(struct job){.plugin = "andiron-process.so",
				.component = "discovery.process",
				.is_done = sent_targets});
}

/* The page's column of discovery.relabel is right. */
TEST(targets_are_relabeled_on_the_least_host)
{
	job_check(&(struct job){.plugin = "andiron-relabel.so",
				.component = "discovery.relabel",
				.give = give_target,
				.is_done = sent_targets});
}

static const struct andiron_batch *make_batch(void)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type type = {.period = 10};
	struct andiron_location location = {.kind = ANDIRON_FRAME_NATIVE};
	struct andiron_function function = {0};
	struct andiron_line line = {.line = 1};
	struct andiron_row row = {.value = 10, .samples = 1};
	const struct batch_head head = {.start_ns = 1, .end_ns = 2, .producer = 1};
	const struct andiron_batch *batch = NULL;
	uint32_t at;

	expect(b);
	function.name = batch_add_string(b, STR("f"));
	line.function = batch_add_function(b, &function);
	at = batch_add_named(b, &location, &line, 1);
	type.name = batch_add_string(b, STR("process_cpu"));
	type.type = type.period_type = batch_add_string(b, STR("cpu"));
	type.unit = type.period_unit = batch_add_string(b, STR("nanoseconds"));
	row.type = batch_add_type(b, &type);
	row.stack = batch_add_stack(b, &at, 1);
	batch_group_begin(b, NULL, 0);
	expect(batch_add_row(b, &row));
	expect_eq(batch_finish(b, &head, &batch), 0);
	return batch;
}

/* A batch, and the drain in which a writer delivers it. */
static void give_batch(struct trial *t)
{
	const struct andiron_batch *batch = make_batch();

	t->part.component->batch(t->part.self, batch);
	batch->release(batch->owner);
	expect_eq(t->part.component->drain(t->part.self, INT64_C(60000000000)), 0);
}

static char path[] = "/tmp/andiron-hosts-XXXXXX.folded";

static const struct andiron_value *file_args(void)
{
	static struct andiron_str key = {"paths", 5};
	static struct andiron_value text, list, args;

	text = andiron_min_string(path);
	list = andiron_min_list(&text, 1);
	args = andiron_min_map(&key, &list, 1);
	return &args;
}

static bool wrote_file(const struct trial *t)
{
	return access(path, R_OK) == 0;
}

/* The page's column of profile.file is right: such a host must offer nothing. */
TEST(a_file_is_written_on_the_least_host)
{
	int fd = mkstemps(path, 7);

	expect(fd >= 0);
	close(fd);
	unlink(path);
	job_check(&(struct job){.plugin = "andiron-file.so",
				.component = "profile.file",
				.args = file_args,
				.give = give_batch,
				.is_done = wrote_file});
	unlink(path);
}

static int server = -1, pushes[2];

/* Takes every request whose body comes with its head or at once after it; tells of each. */
static _Noreturn void serve(void)
{
	static const char answer[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n"
		"Connection: close\r\n\r\n";

	for (;;) {
		int fd = accept(server, NULL, NULL);
		char request[8192];
		size_t n = 0, whole = sizeof(request);
		ssize_t r;

		while (n < whole && (r = recv(fd, request + n, sizeof(request) - 1 - n, 0)) > 0) {
			const char *end, *length;

			n += (size_t)r;
			request[n] = '\0';
			end = strstr(request, "\r\n\r\n");
			length = strcasestr(request, "\r\nContent-Length:");
			if (end && length)
				whole = (size_t)(end + 4 - request) +
					strtoul(length + 17, NULL, 10);
		}
		if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0 ||
		    write(pushes[1], "x", 1) < 0)
			_exit(1);
		close(fd);
	}
}

static pid_t begin_server(char *ret_url, size_t size)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);
	pid_t child;

	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	expect(server >= 0 && pipe(pushes) == 0);
	expect(bind(server, (struct sockaddr *)&at, n) == 0 && listen(server, 8) == 0);
	expect(getsockname(server, (struct sockaddr *)&at, &n) == 0);
	snprintf(ret_url, size, "http://127.0.0.1:%d", ntohs(at.sin_port));
	child = fork();
	expect(child >= 0);
	if (child == 0)
		serve();
	return child;
}

static char url[64];

static const struct andiron_value *push_args(void)
{
	static struct andiron_str url_key = {"url", 3}, key = {"endpoint", 8};
	static struct andiron_value text, block, list, args;

	text = andiron_min_string(url);
	block = andiron_min_map(&url_key, &text, 1);
	list = andiron_min_list(&block, 1);
	args = andiron_min_map(&key, &list, 1);
	return &args;
}

static bool was_pushed(const struct trial *t)
{
	struct pollfd p = {.fd = pushes[0], .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* The page's column of pyroscope.write is right. */
TEST(a_profile_is_pushed_on_the_least_host)
{
	pid_t child = begin_server(url, sizeof(url));

	job_check(&(struct job){.plugin = "andiron-pyroscope.so",
				.component = "pyroscope.write",
				.args = push_args,
				.give = give_batch,
				.is_done = was_pushed,
				.is_trusting = true});
	kill(child, SIGKILL);
	expect_eq(waitpid(child, NULL, 0), child);
	close(server);
	close(pushes[0]);
	close(pushes[1]);
}
