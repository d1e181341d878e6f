/* SPDX-License-Identifier: Apache-2.0 */
/* See running-agent.h. The answer is as trusted as who may bind the path. */
#include "cli/doctor/running-agent.h"

#include "base/cleanup.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TRIES       20 /* 503: the sampler is at work */
#define TRY_MS      100
#define ANSWER_MAX  (16u << 20)
#define ANSWER_SECS 5

static bool send_request(int fd)
{
	static const char request[] = "GET /targets HTTP/1.0\r\n\r\n";
	const struct timeval limit = {.tv_sec = ANSWER_SECS};

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
	       send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == sizeof(request) - 1;
}

/* The whole answer to one request; false: nobody answers. */
static bool ask(const char *path, struct buf *ret)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char bytes[4096];
	ssize_t n = 0;

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    !send_request(fd))
		return false;
	buf_clear(ret);
	while (ret->n < ANSWER_MAX && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		buf_append(ret, bytes, (size_t)n);
	return n == 0 && !ret->failed;
}

static void take_target(json_t *target, json_t *ret)
{
	json_t *process, *one;
	size_t i;

	json_array_foreach(json_object_get(target, "processes"), i, process)
	{
		const char *runtime = json_string_value(json_object_get(process, "runtime"));
		const char *name = json_string_value(json_object_get(process, "name"));
		json_int_t pid = json_integer_value(json_object_get(process, "pid"));

		one = runtime && *runtime ? json_pack("{s:I, s:s, s:s}", "pid", pid, "name",
						      name ? name : "", "runtime", runtime)
					  : NULL;
		if (one)
			json_array_append_new(ret, one);
	}
}

json_t *running_agent_runtimes(const char *path)
{
	struct buf answer = BUF_NULL;
	json_t *all = NULL, *ret = NULL, *targets, *target;
	const char *name;
	size_t i;

	for (int n = 0; n < TRIES && !all && ask(path, &answer); n++) {
		size_t body = str_search(buf_str(&answer), STR("\r\n\r\n"));

		if (str_starts(buf_str(&answer), STR("HTTP/1.0 503")))
			poll(NULL, 0, TRY_MS);
		else if (body < answer.n)
			all = json_loadb(answer.p + body + 4, answer.n - body - 4, 0, NULL);
		else
			break;
	}
	buf_free(&answer);
	ret = all ? json_array() : NULL;
	json_object_foreach(all, name, targets) json_array_foreach(targets, i, target)
		take_target(target, ret);
	json_decref(all);
	return ret;
}
