/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of call stubs, as JVMs have them, and of what is none. */
#include "jvm/call-stub.h"

#include "testing/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AT 0x1000 /* where the stub begins */

struct stub {
	uint8_t bytes[512];
	uint32_t n, returns, end;
};

static void add(struct stub *s, const char *bytes, uint32_t n)
{
	memcpy(s->bytes + s->n, bytes, n);
	s->n += n;
}

#define ADD(s, text) add(s, text, sizeof(text) - 1)

/* Jumps back to an offset. */
static void add_jump(struct stub *s, uint32_t to)
{
	char jump[2] = {(char)0xeb, (char)(to - s->n - 2)};

	add(s, jump, 2);
}

/* The stub of a CPU with or without AVX, and behind it the next one. */
static struct stub stub_of(bool avx)
{
	struct stub s = {.n = 0};
	uint32_t leaves;

	ADD(&s, "\x55\x48\x8b\xec\x48\x83\xec\x60");             /* push; mov; sub $0x60, %rsp */
	ADD(&s, "\x4c\x89\x4d\xf8\x4c\x89\x45\xf0");             /* mov %r9, -8(%rbp); … */
	ADD(&s, "\x48\x8b\x5d\xe8\x48\x8b\x75\xf0\x4c\x8b\xec"); /* mov -24(%rbp), %rbx; … */
	ADD(&s, "\xff\xd6");
	s.returns = s.n;
	ADD(&s, "\x48\x8b\x7d\xd8\x8b\x75\xe0\x83\xfe\x0c"); /* mov -40(%rbp), %rdi; … */
	ADD(&s, "\x0f\x84\x5d\xc3\x00\x00\x89\x07");         /* je; mov %eax, (%rdi) */
	leaves = s.n;
	ADD(&s, "\x48\x8d\x65\xa0\x4c\x8b\x7d\xa8\x48\x8b\x5d\xc8\x48\x83\xc4\x60");
	if (avx)
		ADD(&s, "\xc5\xf8\x77");
	ADD(&s, "\x5d\xc3\x48\x89\x07");
	add_jump(&s, leaves);
	add(&s, avx ? "\xc5\xfa\x11\x07" : "\xf3\x0f\x11\x07", 4);
	add_jump(&s, leaves);
	add(&s, avx ? "\xc5\xfb\x11\x07" : "\xf2\x0f\x11\x07", 4);
	add_jump(&s, leaves);
	s.end = s.n;
	ADD(&s, "\x49\x89\x47\x08\x4c\x8d\x15"); /* of the next one */
	return s;
}

static struct jvm_process bounds_of(const struct stub *s)
{
	struct target_reader *r = target_reader_new(false);
	struct jvm_process ret = {.call_stub = AT + s->returns};
	int fd = memfd_create("process", MFD_CLOEXEC);
	struct target_memory *m;

	expect_eq(ftruncate(fd, 2 * AT), 0);
	expect_eq(pwrite(fd, s->bytes, s->n, AT), s->n);
	expect_eq(target_memory_of(r, fd, &m), 0);
	call_stub_read(m, &ret);
	target_memory_close(m);
	target_reader_free(r);
	return ret;
}

/* All of the stub is its own, also what stores results behind its return, and nothing else. */
TEST(bounds_are_the_stubs_own)
{
	for (int avx = 0; avx < 2; avx++) {
		struct stub s = stub_of(avx);
		struct jvm_process p = bounds_of(&s);

		expect_eq(p.call_stub_before, s.returns);
		expect_eq(p.call_stub_behind, s.end - s.returns);
	}
}

/* Stores that jump elsewhere are another stub's. */
TEST(another_stubs_code_is_left_out)
{
	struct stub s = stub_of(true);
	struct jvm_process p;

	s.bytes[s.end - 1] = 0x10;
	p = bounds_of(&s);
	expect_eq(p.call_stub_behind, s.end - 6 - s.returns);
	s.bytes[s.end - 1] = 0x80;
	p = bounds_of(&s);
	expect_eq(p.call_stub_behind, s.end - 6 - s.returns);
}

/* Code that is not known has no bounds. */
TEST(what_is_not_known_has_no_bounds)
{
	struct stub s = stub_of(true);
	struct jvm_process p;

	s.bytes[s.returns - 1] = 0xd0;
	p = bounds_of(&s);
	expect_eq(p.call_stub_before + p.call_stub_behind, 0);
	s = stub_of(true);
	s.bytes[0] = 0x90;
	p = bounds_of(&s);
	expect_eq(p.call_stub_before + p.call_stub_behind, 0);
	s = stub_of(true);
	s.n = s.returns + 10;
	p = bounds_of(&s);
	expect_eq(p.call_stub_before + p.call_stub_behind, 0);
}
