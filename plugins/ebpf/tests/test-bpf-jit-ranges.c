/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of programs' machine code. */
#include "ebpf/kernel/bpf-jit-ranges.h"

#include "testing/test.h"

/* Neighbours within a page are one range, whatever their order; what is further apart is not. */
TEST(neighbours_are_one_range)
{
	struct kernel_jit c = {0};

	bpf_jit_ranges_add_range(&c, 0x10000, 0x100);
	bpf_jit_ranges_add_range(&c, 0x10a00, 0x80);
	bpf_jit_ranges_add_range(&c, 0xff00, 0x40);
	bpf_jit_ranges_add_range(&c, 0x12000, 0x40);
	bpf_jit_ranges_add_range(&c, 0x9000, 0x40);
	expect_eq(c.code[0].start, 0xff00);
	expect_eq(c.code[0].start + c.code[0].bytes, 0x10a80);
	expect_eq(c.code[1].start, 0x12000);
	expect_eq(c.code[1].bytes, 0x40);
	expect_eq(c.code[2].start, 0x9000);
	expect_eq(c.code[3].bytes, 0);
}

/* What there is no room for is left out, and so is nothing. */
TEST(more_than_there_is_room_for_is_left_out)
{
	struct kernel_jit c = {0};

	bpf_jit_ranges_add_range(&c, 0x5000, 0);
	expect_eq(c.code[0].bytes, 0);
	for (uint64_t i = 1; i <= KERNEL_COMPILED + 3; i++)
		bpf_jit_ranges_add_range(&c, i << 20, 16);
	for (uint64_t i = 0; i < KERNEL_COMPILED; i++)
		expect_eq(c.code[i].start, (i + 1) << 20);
	bpf_jit_ranges_add_range(&c, (2 << 20) + 16, 16);
	expect_eq(c.code[1].bytes, 32);
}
