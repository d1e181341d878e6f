/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's tables, by the addresses of its symbols. */
#include "ebpf/kernel/orc-tables.h"

#include "testing/test.h"

#include <string.h>

/* Of three entries. */
static const __u64 sound[KERNEL_SYMBOLS] = {
	[KERNEL_SYMBOL_TEXT] = 0xffffffff81000000,
	[KERNEL_SYMBOL_TEXT_END] = 0xffffffff82209988,
	[KERNEL_SYMBOL_ADDRESSES] = 0xffffffff8329dbdc,
	[KERNEL_SYMBOL_ADDRESSES_END] = 0xffffffff8329dbe8,
	[KERNEL_SYMBOL_ENTRIES] = 0xffffffff8329dbe8,
	[KERNEL_SYMBOL_ENTRIES_END] = 0xffffffff8329dbfa,
	[KERNEL_SYMBOL_HOOKS] = 0xffffffff81248fd0,
};

TEST(tables_are_found)
{
	struct kernel_tables t = {0};

	expect(orc_make(sound, &t));
	expect_eq(t.text, 0xffffffff81000000);
	expect_eq(t.text_end, 0xffffffff82209988);
	expect_eq(t.addresses, 0xffffffff8329dbdc);
	expect_eq(t.entries, 0xffffffff8329dbe8);
	expect_eq(t.n, 3);
	expect_eq(t.return_hooks[0], 0xffffffff81248fd0);
	expect_eq(t.return_hooks[1], 0);
}

/* Hidden, missing, or of another format: none, and nothing is written. */
TEST(what_is_not_as_expected_is_left_alone)
{
	static const struct {
		uint32_t place;
		uint64_t address;
	} wrong[] = {
		{KERNEL_SYMBOL_TEXT, 0},
		{KERNEL_SYMBOL_TEXT, 0xffffffff81000010},
		{KERNEL_SYMBOL_TEXT, 0xffffffff71000000},
		{KERNEL_SYMBOL_TEXT_END, 0xffffffff80000000},
		{KERNEL_SYMBOL_ADDRESSES, 0},
		{KERNEL_SYMBOL_ADDRESSES_END, 0},
		{KERNEL_SYMBOL_ADDRESSES_END, 0xffffffff8329dbdc},
		{KERNEL_SYMBOL_ADDRESSES_END, 0xffffffff8329dbe9},
		{KERNEL_SYMBOL_ENTRIES, 0},
		{KERNEL_SYMBOL_ENTRIES_END, 0xffffffff8329dc00}, /* of 8 bytes */
		{KERNEL_SYMBOL_ENTRIES_END, 0},
	};
	struct kernel_tables t = {.n = 77};
	__u64 symbols[KERNEL_SYMBOLS];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(symbols, sound, sizeof(symbols));
		symbols[wrong[i].place] = wrong[i].address;
		expect(!orc_make(symbols, &t));
	}
	expect_eq(t.n, 77);
}
