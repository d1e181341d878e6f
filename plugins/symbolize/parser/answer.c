/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's answer. Contract in answer.h. */
#include "symbolize/parser/answer.h"

static int put_text(struct buf *b, struct str s)
{
	uint32_t n = (uint32_t)s.n;
	int r = buf_append(b, &n, sizeof(n));

	return r < 0 ? r : buf_append(b, s.p, n);
}

static bool take(struct str *rest, void *ret, size_t n)
{
	if (rest->n < n)
		return false;
	memcpy(ret, rest->p, n);
	*rest = (struct str){rest->p + n, rest->n - n};
	return true;
}

static bool take_text(struct str *rest, struct str *ret)
{
	uint32_t n;

	if (!take(rest, &n, sizeof(n)) || rest->n < n)
		return false;
	*ret = (struct str){rest->p, n};
	*rest = (struct str){rest->p + n, rest->n - n};
	return true;
}

int answer_put_head(struct buf *b, const struct answer_head *head)
{
	const uint32_t numbers[] = {head->n, (uint32_t)head->error, head->lacking};
	int r = buf_append(b, numbers, sizeof(numbers));

	if (r == 0)
		r = put_text(b, head->why);
	if (r == 0)
		r = put_text(b, head->link);
	return r < 0 ? r : put_text(b, head->alt);
}

bool answer_head(struct str *rest, struct answer_head *ret)
{
	uint32_t numbers[3];

	if (!take(rest, numbers, sizeof(numbers)))
		return false;
	ret->n = numbers[0];
	ret->error = (int32_t)numbers[1];
	ret->lacking = numbers[2];
	return take_text(rest, &ret->why) && take_text(rest, &ret->link) &&
	       take_text(rest, &ret->alt);
}

int answer_put_address(struct buf *b, const struct answer_address *address)
{
	return buf_append(b, address, sizeof(*address));
}

bool answer_address(struct str *rest, struct answer_address *ret)
{
	return take(rest, ret, sizeof(*ret));
}

int answer_put_frame(struct buf *b, const struct answer_frame *frame)
{
	const uint32_t numbers[] = {frame->line, frame->column, frame->start_line};
	int r = buf_append(b, numbers, sizeof(numbers));

	if (r == 0)
		r = put_text(b, frame->name);
	if (r == 0)
		r = put_text(b, frame->linked);
	return r < 0 ? r : put_text(b, frame->file);
}

bool answer_frame(struct str *rest, struct answer_frame *ret)
{
	uint32_t numbers[3];

	if (!take(rest, numbers, sizeof(numbers)))
		return false;
	ret->line = numbers[0];
	ret->column = numbers[1];
	ret->start_line = numbers[2];
	return take_text(rest, &ret->name) && take_text(rest, &ret->linked) &&
	       take_text(rest, &ret->file);
}

int answer_put_tail(struct buf *b, const struct answer_tail *tail)
{
	const uint32_t numbers[] = {(uint32_t)tail->wanted.n, (uint32_t)tail->over};
	int r = buf_append(b, tail->wanted.p, tail->wanted.n);

	return r < 0 ? r : buf_append(b, numbers, sizeof(numbers));
}

bool answer_tail(struct str *rest, struct answer_tail *ret)
{
	uint32_t numbers[2];

	if (rest->n < sizeof(numbers))
		return false;
	memcpy(numbers, rest->p + rest->n - sizeof(numbers), sizeof(numbers));
	if (numbers[0] > rest->n - sizeof(numbers))
		return false;
	rest->n -= sizeof(numbers) + numbers[0];
	*ret = (struct answer_tail){(int32_t)numbers[1], {rest->p + rest->n, numbers[0]}};
	return true;
}
