/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's answer. Contract in answer.h. */
#include "symbolize/parser/answer.h"

#include "base/check.h"

static int put_text(struct buf *b, struct str s)
{
	uint32_t n = (uint32_t)s.n;
	int r = buf_append(b, &n, sizeof(n));

	check(s.n <= UINT32_MAX);
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

/* Head and frame are three numbers and three texts each. */
struct parts {
	uint32_t numbers[3];
	struct str texts[3];
};

static int put_parts(struct buf *b, const struct parts *p)
{
	int r = buf_append(b, p->numbers, sizeof(p->numbers));

	for (size_t i = 0; r == 0 && i < 3; i++)
		r = put_text(b, p->texts[i]);
	return r;
}

static bool take_parts(struct str *rest, struct parts *ret)
{
	return take(rest, ret->numbers, sizeof(ret->numbers)) && take_text(rest, &ret->texts[0]) &&
	       take_text(rest, &ret->texts[1]) && take_text(rest, &ret->texts[2]);
}

int answer_put_head(struct buf *b, const struct answer_head *head)
{
	const struct parts p = {{head->n, (uint32_t)head->error, head->lacking},
				{head->why, head->link, head->alt}};

	return put_parts(b, &p);
}

bool answer_head(struct str *rest, struct answer_head *ret)
{
	struct parts p;

	if (!take_parts(rest, &p))
		return false;
	*ret = (struct answer_head){p.numbers[0], (int32_t)p.numbers[1],
				    p.numbers[2], p.texts[0],
				    p.texts[1],   p.texts[2]};
	return true;
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
	const struct parts p = {{frame->line, frame->column, frame->start_line},
				{frame->name, frame->linked, frame->file}};

	return put_parts(b, &p);
}

bool answer_frame(struct str *rest, struct answer_frame *ret)
{
	struct parts p;

	if (!take_parts(rest, &p))
		return false;
	*ret = (struct answer_frame){p.numbers[0], p.numbers[1], p.numbers[2],
				     p.texts[0],   p.texts[1],   p.texts[2]};
	return true;
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
