/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 after RFC 1321. */
#include "relabel/md5.h"

struct state {
	uint32_t a, b, c, d;
};

/* floor(2^32 · |sin(i + 1)|) */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391};

static const uint8_t shifts[4][4] = {
	{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t rotate(uint32_t x, unsigned int n)
{
	return x << n | x >> (32 - n);
}

static uint32_t load32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The round's function, and which word it takes. */
static uint32_t mix(unsigned int i, const struct state *s, unsigned int *ret_word)
{
	switch (i / 16) {
	case 0:
		*ret_word = i;
		return (s->b & s->c) | (~s->b & s->d);
	case 1:
		*ret_word = (5 * i + 1) % 16;
		return (s->d & s->b) | (~s->d & s->c);
	case 2:
		*ret_word = (3 * i + 5) % 16;
		return s->b ^ s->c ^ s->d;
	default:
		*ret_word = (7 * i) % 16;
		return s->c ^ (s->b | ~s->d);
	}
}

static void add_block(struct state *s, const uint8_t block[64])
{
	struct state t = *s;

	for (unsigned int i = 0; i < 64; i++) {
		unsigned int word;
		uint32_t f = mix(i, &t, &word) + t.a + sines[i] + load32(block + 4 * (size_t)word);

		t.a = t.d;
		t.d = t.c;
		t.c = t.b;
		t.b += rotate(f, shifts[i / 16][i % 4]);
	}
	s->a += t.a;
	s->b += t.b;
	s->c += t.c;
	s->d += t.d;
}

void md5(struct str data, uint8_t ret[16])
{
	struct state s = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	uint64_t bits = (uint64_t)data.n * 8;
	uint8_t tail[128] = {0};
	size_t rest = data.n % 64, end = rest < 56 ? 64 : 128;

	for (size_t i = 0; i + 64 <= data.n; i += 64)
		add_block(&s, (const uint8_t *)data.p + i);
	if (rest)
		memcpy(tail, data.p + data.n - rest, rest);
	tail[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		tail[end - 8 + i] = (uint8_t)(bits >> (8 * i));
	for (size_t i = 0; i < end; i += 64)
		add_block(&s, tail + i);
	for (size_t i = 0; i < 16; i++) {
		uint32_t word = i < 4 ? s.a : i < 8 ? s.b : i < 12 ? s.c : s.d;

		ret[i] = (uint8_t)(word >> (8 * (i % 4)));
	}
}
