/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender says that was taken over by a server: messages, each a byte for its type (its top
 * bit: of the second request), two for its length, and its payload. One request is a stream whose
 * body is made while it is sent, the other is plain. Each ends at most once, with an answer that is
 * one, and none is called for what it did not ask. The same bytes are also read as a request, which
 * the other end does. */
#include "fuzz.h"

#include "base/check.h"
#include "http/sender/sender-private.h"
#include "http/sender/wire.h"

#include <stdlib.h>

#define MAX_STREAM    4096u
#define MAX_COLLECTED 1000u

struct asked {
	bool begun, left, done;
	size_t received;
};

static void on_begun(void *context)
{
	struct asked *a = context;

	check(!a->begun && !a->done);
	a->begun = true;
}

static void on_left(void *context)
{
	struct asked *a = context;

	check(!a->left && !a->done);
	a->left = true;
}

static bool on_data(void *context, struct str piece)
{
	struct asked *a = context;

	check(a->begun && !a->done);
	a->received += piece.n;
	check(a->received <= MAX_STREAM);
	return !piece.n || piece.p[0] != '!';
}

static int64_t on_read(void *context, char *to, size_t n)
{
	check(n > 0 && n <= 100);
	to[0] = 'a';
	return 1;
}

static void on_done(void *context, const struct http_response *r)
{
	struct asked *a = context;

	check(!a->done && (r->status == 0) == (r->result < 0) && r->error);
	check(r->body.n <= MAX_COLLECTED + MAX_STREAM);
	a->done = true;
}

static struct waiting *ask(struct sender *s, uint64_t id, const struct http_request *q)
{
	struct waiting *w = calloc(1, sizeof(*w));

	check(w);
	w->request = *q;
	w->number.id = id;
	w->peer = strdup("server:1");
	w->deadline.at_ns = INT64_MAX;
	check(waiting_link(s, w) == 0);
	return w;
}

static void tell(struct sender *s, const uint8_t *bytes, size_t n)
{
	while (n >= 3) {
		size_t length = bytes[1] | (size_t)bytes[2] << 8;
		struct channel_message m = {.type = bytes[0] & 0x7f, .id = 1 + (bytes[0] >> 7)};

		length = length < n - 3 ? length : n - 3;
		m.payload = (struct str){(const char *)bytes + 3, length};
		if (sender_handle(s, &m) < 0)
			return;
		bytes += 3 + length;
		n -= 3 + length;
	}
}

static void read_as_request(const uint8_t *bytes, size_t n)
{
	struct wire_request q;

	if (wire_get_request((struct str){(const char *)bytes, n}, &q) == 0)
		wire_request_fini(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct sender s = {.channel = {.fd = -1}, .pidfd = -1, .unreaped = -1, .ready = true};
	struct asked streamed = {0}, plain = {0};
	struct waiting *w;
	const struct http_request stream = {.max_response = MAX_STREAM,
					    .read = on_read,
					    .read_bytes = 100,
					    .left = on_left,
					    .begun = on_begun,
					    .data = on_data,
					    .done = on_done,
					    .context = &streamed};
	const struct http_request whole = {
		.max_response = MAX_COLLECTED, .done = on_done, .context = &plain};

	ask(&s, 1, &stream);
	ask(&s, 2, &whole);
	tell(&s, bytes, n);
	while ((w = (struct waiting *)numbered_last(&s.requests))) {
		waiting_unlink(&s, w);
		waiting_free(w);
	}
	numbered_free(&s.requests);
	read_as_request(bytes, n);
	return 0;
}
