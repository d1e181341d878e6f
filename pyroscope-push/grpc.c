/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC frames and statuses. Contract in grpc.h. */
#include "grpc.h"

#include <stdio.h>

#define FRAME_BYTES 5 /* compressed or not, length big-endian */

const struct http_header grpc_headers[GRPC_N_HEADERS] = {
	{{"Content-Type", 12}, {"application/grpc", 16}},
	{{"TE", 2}, {"trailers", 8}},
};

size_t grpc_begin(struct buf *b)
{
	static const char empty[FRAME_BYTES];

	buf_append(b, empty, FRAME_BYTES);
	return b->n;
}

void grpc_end(struct buf *b, size_t start)
{
	size_t n = b->n - start;

	if (b->failed)
		return;
	for (int i = 0; i < 4; i++)
		b->p[start - 4 + (size_t)i] = (char)(n >> (24 - 8 * i));
}

/* By the code of grpc-status. */
static const struct answer_row statuses[] = {
	{0, 0, NULL, ANSWER_ACCEPTED},
	{1, 1, NULL, ANSWER_UNKNOWN}, /* cancelled */
	{2, 3, NULL, ANSWER_ISOLATE}, /* unknown, invalid argument */
	{4, 4, NULL, ANSWER_UNKNOWN}, /* deadline exceeded */
	{5, 5, NULL, ANSWER_REFUSED}, /* not found */
	{6, 6, NULL, ANSWER_ISOLATE}, /* already exists */
	{7, 7, NULL, ANSWER_REFUSED}, /* permission denied */
	{8, 8, "larger than max", ANSWER_ISOLATE},
	{8, 8, NULL, ANSWER_LIMITED},   /* resource exhausted */
	{9, 9, NULL, ANSWER_ISOLATE},   /* failed precondition */
	{10, 10, NULL, ANSWER_RETRY},   /* aborted */
	{11, 11, NULL, ANSWER_ISOLATE}, /* out of range */
	{12, 12, NULL, ANSWER_REFUSED}, /* unimplemented */
	{13, 13, NULL, ANSWER_ISOLATE}, /* internal */
	{14, 14, NULL, ANSWER_RETRY},   /* unavailable */
	{15, 15, NULL, ANSWER_ISOLATE}, /* data loss */
	{16, 16, NULL, ANSWER_REFUSED}, /* unauthenticated */
};

/* Of who stands in front of the server, where it is no gRPC at all. */
static const struct answer_row https[] = {
	{408, 408, NULL, ANSWER_UNKNOWN}, {413, 413, NULL, ANSWER_ISOLATE},
	{429, 429, NULL, ANSWER_LIMITED}, {300, 499, NULL, ANSWER_REFUSED},
	{502, 503, NULL, ANSWER_RETRY},   {505, 505, NULL, ANSWER_REFUSED},
	{500, 599, NULL, ANSWER_UNKNOWN},
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* grpc-message is percent-encoded. */
static void decode(struct str s, char *out, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < s.n && used + 1 < n; i++) {
		bool coded = s.p[i] == '%' && i + 2 < s.n && hex_value(s.p[i + 1]) >= 0 &&
			     hex_value(s.p[i + 2]) >= 0;

		out[used++] =
			coded ? (char)(hex_value(s.p[i + 1]) * 16 + hex_value(s.p[i + 2])) : s.p[i];
		i += coded ? 2 : 0;
	}
	out[used] = '\0';
}

static struct answer judge(const struct http_response *r, uint64_t code)
{
	struct answer a = {0};
	char text[256];

	decode(r->wanted[1], text, sizeof(text));
	a.action = answer_find(statuses, sizeof(statuses) / sizeof(statuses[0]),
			       code > 16 ? 2 : (int)code, str_of(text));
	if (a.action != ANSWER_ACCEPTED)
		snprintf(a.text, sizeof(a.text), "gRPC status %u%s%s", (unsigned int)code,
			 text[0] ? ": " : "", text);
	return a;
}

struct answer classify_grpc(const struct http_response *r)
{
	struct answer a = {.action = ANSWER_LOST};
	uint64_t code;

	if (r->status == 0) {
		snprintf(a.text, sizeof(a.text), "%.300s", r->error);
	} else if (r->status != 200) {
		a.action = answer_find(https, sizeof(https) / sizeof(https[0]), r->status, r->body);
		snprintf(a.text, sizeof(a.text), "status %d instead of a gRPC answer", r->status);
	} else if (!str_starts(r->content_type, STR("application/grpc"))) {
		a.action = ANSWER_REFUSED;
		snprintf(a.text, sizeof(a.text),
			 "content type \"%.*s\" is not the answer of a gRPC server",
			 STR_FMT(str_first(r->content_type, 80)));
	} else if (!str_u64(r->wanted[0], &code)) {
		a.action = ANSWER_UNKNOWN;
		snprintf(a.text, sizeof(a.text), "the answer ended without a gRPC status");
	} else {
		a = judge(r, code);
	}
	answer_clean(&a);
	return a;
}
