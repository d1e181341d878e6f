/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a ceiling. After a failed append the buffer is unchanged and `failed`
 * is set, so a run of appends can be checked once at its end. BUF_NULL is a valid empty buffer. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf {
	char *p;
	size_t n;
	size_t capacity;
	size_t limit; /* 0: 1 GiB */
	bool failed;
};

#define BUF_NULL ((struct buf){0})

void buf_free(struct buf *b);

/* Keeps the memory. */
static inline void buf_clear(struct buf *b)
{
	b->n = 0;
	b->failed = false;
}

static inline struct str buf_str(const struct buf *b)
{
	return (struct str){b->p, b->n};
}

/* Each 0, -ENOMEM or -E2BIG (limit). Amortised O(n). */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_str_append(struct buf *b, struct str s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Digits of base64 by value (RFC 4648, sections 4 and 5). */
#define BUF_BASE64     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define BUF_BASE64_URL "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/* Appends the bytes in these digits, padded with "=". Failure is in b->failed. */
void buf_base64_append(struct buf *b, struct str bytes, const char *digits);

/* The bytes that a text in these digits stands for, to `out`, which has room for
 * text.n / 4 * 3 + 2. Line breaks are passed over; padding may be absent unless it is `padded`. How
 * many bytes; -1: the text is not base64. */
ssize_t base64_decode(char *out, struct str text, const char *digits, bool padded);

/* Appends the text percent-encoded (RFC 3986): letters, digits, "-._~" and the characters of
 * `also` stay. Failure is in b->failed. */
void buf_percent_append(struct buf *b, struct str text, const char *also);

/* Room for n more bytes; NULL on failure. The caller fills them in and adds what it used to b->n.
 */
char *buf_reserve(struct buf *b, size_t n);

/* The content, NUL-terminated and to be freed, and an empty buffer; NULL if anything failed (the
 * buffer is freed then). */
char *buf_take(struct buf *b);
