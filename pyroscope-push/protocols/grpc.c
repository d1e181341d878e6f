/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's statuses as answers. Contract in grpc.h. */
#include "pyroscope-push/protocols/grpc.h"

#include <stdio.h>

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

/* Of an answer that has no gRPC status. */
static int judge_http(const struct http_response *r)
{
	if (r->status == 0)
		return ANSWER_LOST;
	if (r->status != 200)
		return answer_find(https, sizeof(https) / sizeof(https[0]), r->status, r->body);
	/* Without its trailers it broke off; of another type it is another server. */
	return str_starts(r->content_type, STR("application/grpc")) ? ANSWER_UNKNOWN
								    : ANSWER_REFUSED;
}

struct answer classify_grpc(const struct http_response *r)
{
	struct answer a = {0};
	char text[320];
	int code = grpc_status(r, text, sizeof(text));

	if (code < 0) {
		a.action = judge_http(r);
		snprintf(a.text, sizeof(a.text), "%s", text);
	} else {
		a.action = answer_find(statuses, sizeof(statuses) / sizeof(statuses[0]), code,
				       str_of(text));
		if (a.action != ANSWER_ACCEPTED)
			snprintf(a.text, sizeof(a.text), "gRPC status %d%s%.255s", code,
				 text[0] ? ": " : "", text);
	}
	answer_clean(&a);
	return a;
}
