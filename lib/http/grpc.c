/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's frames and statuses. Contract in grpc.h. */
#include "http/grpc.h"

#include "base/ascii.h"

#include <errno.h>
#include <stdio.h>

#define CODE_UNKNOWN 2
#define CODE_LAST    16

const struct http_header grpc_headers[GRPC_N_HEADERS] = {
	{{"Content-Type", 12}, {"application/grpc", 16}},
	{{"TE", 2}, {"trailers", 8}},
};

void grpc_frame(char out[GRPC_FRAME_BYTES], size_t n)
{
	out[0] = 0;
	for (int i = 0; i < 4; i++)
		out[1 + i] = (char)(n >> (24 - 8 * i));
}

size_t grpc_frame_size(const char frame[GRPC_FRAME_BYTES])
{
	size_t n = 0;

	for (int i = 1; i < GRPC_FRAME_BYTES; i++)
		n = n << 8 | (unsigned char)frame[i];
	return n;
}

size_t grpc_begin(struct buf *b)
{
	static const char empty[GRPC_FRAME_BYTES];

	buf_append(b, empty, GRPC_FRAME_BYTES);
	return b->n;
}

void grpc_end(struct buf *b, size_t start)
{
	if (!b->failed)
		grpc_frame(b->p + start - GRPC_FRAME_BYTES, b->n - start);
}

/* grpc-message is percent-encoded. It becomes one line. */
static void decode(struct str s, char *out, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < s.n && used + 1 < n; i++) {
		bool coded = s.p[i] == '%' && i + 2 < s.n && ascii_hex_value(s.p[i + 1]) >= 0 &&
			     ascii_hex_value(s.p[i + 2]) >= 0;

		char c = coded ? (char)(ascii_hex_value(s.p[i + 1]) * 16 +
					ascii_hex_value(s.p[i + 2]))
			       : s.p[i];

		out[used++] = (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
		i += coded ? 2 : 0;
	}
	out[used] = '\0';
}

int grpc_status(const struct http_response *r, char *text, size_t n)
{
	uint64_t code;

	if (r->status == 0) {
		snprintf(text, n, "%.300s", r->error);
	} else if (r->status != 200) {
		snprintf(text, n, "status %d instead of a gRPC answer", r->status);
	} else if (!str_starts(r->content_type, STR("application/grpc"))) {
		snprintf(text, n, "content type \"%.*s\" is not the answer of a gRPC server",
			 STR_FMT(str_first(r->content_type, 80)));
	} else if (!str_u64(r->wanted[0], &code)) {
		snprintf(text, n, "the answer ended without a gRPC status");
	} else {
		decode(r->wanted[1], text, n);
		return code > CODE_LAST ? CODE_UNKNOWN : (int)code;
	}
	return -ENOENT;
}

struct str grpc_message(struct str body)
{
	size_t n;

	if (body.n < GRPC_FRAME_BYTES || body.p[0] != 0)
		return STR_NULL;
	n = grpc_frame_size(body.p);
	body.p += GRPC_FRAME_BYTES;
	body.n -= GRPC_FRAME_BYTES;
	return n > body.n ? STR_NULL : (struct str){body.p, n};
}
