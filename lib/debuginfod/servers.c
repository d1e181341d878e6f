/* SPDX-License-Identifier: Apache-2.0 */
/* One request at a time. Contract in servers.h. */
#include "debuginfod/servers.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

struct get {
	bool done;
	int fd;
	int failure; /* of writing */
	int result, status;
	struct error *err;
};

int servers_init(struct servers *s, struct error *err)
{
	return http_polled_init(&s->loop, err);
}

void servers_fini(struct servers *s)
{
	http_polled_fini(&s->loop);
}

static bool on_data(void *context, struct str piece)
{
	struct get *g = context;

	g->failure = file_write_fd(g->fd, piece.p, piece.n);
	return g->failure == 0;
}

static void on_done(void *context, const struct http_response *response)
{
	struct get *g = context;

	g->done = true;
	g->status = response->status;
	g->result = g->failure ? g->failure : response->result;
	if (response->result)
		error_set(g->err, response->result, "%s", response->error);
}

static int meaning_of(const struct get *g, struct error *err)
{
	if (g->result < 0)
		return g->result;
	if (g->status >= 200 && g->status <= 299)
		return 0;
	/* What a server does not know, and what an older one cannot do. */
	if (g->status == 404 || g->status == 400 || g->status == 405 || g->status == 406)
		return -ENOENT;
	return error_set(err, -EPROTO, "a debuginfod server answered with status %d", g->status);
}

static int get(struct servers *s, struct str url, int fd, struct error *err)
{
	const struct http_config config = {
		.follow_redirects = true, .proxy_from_environment = true, .enable_http2 = true};
	struct get g = {.fd = fd, .err = err};
	int64_t left_ms = (s->until_ns - clock_mono()) / NS_PER_MSEC;
	const struct http_request request = {.method = "GET",
					     .url = url,
					     .timeout_ms = left_ms,
					     .stall_ms = s->stall_ms,
					     .max_response = s->max_bytes,
					     .data = on_data,
					     .done = on_done,
					     .context = &g};
	uint64_t id;
	int r;

	if (left_ms <= 0)
		return error_set(err, -ETIME, "the debuginfod servers took too long");
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = http_send(s->loop.client, &config, &request, &id, err);
	if (r < 0)
		return r;
	/* The request ends by its own limits; these only guard against mistakes of ours. */
	if (!http_polled_until(&s->loop, &g.done, left_ms + 5000)) {
		http_cancel(s->loop.client, id);
		return -ETIME;
	}
	return meaning_of(&g, err);
}

/* "ima:enforcing" and the like stand among the servers, and are none. */
static bool is_server(struct str word)
{
	return str_starts(word, STR("http://")) || str_starts(word, STR("https://"));
}

static struct str next_word(struct str *rest)
{
	size_t n = 0;
	struct str word;

	*rest = str_trim(*rest);
	while (n < rest->n && !memchr(" \t\r\n", rest->p[n], 4))
		n++;
	word = str_first(*rest, n);
	*rest = str_skip(*rest, n);
	return word;
}

int servers_get(struct servers *s, struct str path, int fd, struct error *err)
{
	int result = -EINVAL;

	for (struct str rest = s->urls; rest.n;) {
		struct str word = next_word(&rest);
		struct buf url = BUF_NULL;
		int r;

		if (!is_server(word))
			continue;
		while (word.n && word.p[word.n - 1] == '/')
			word.n--;
		buf_printf(&url, "%.*s%.*s", STR_FMT(word), STR_FMT(path));
		r = url.failed ? -ENOMEM : get(s, buf_str(&url), fd, err);
		buf_free(&url);
		if (r == 0 || r == -ENOMEM)
			return r;
		/* That one server has not got it says less than that another could not tell. */
		if (r != -ENOENT || result == -EINVAL)
			result = r;
	}
	return result;
}
