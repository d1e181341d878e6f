/* SPDX-License-Identifier: Apache-2.0 */
/* Names among a kernel's types: in texts of our own, and in what this machine's kernel says. */
#include "proc/kernel-types.h"

#include "testing/test.h"

#include <linux/btf.h>
#include <string.h>
#include <unistd.h>

#define STRINGS "\0task_struct\0a_task\0task\0end"

static struct str btf_with(char *room, uint32_t str_off, uint32_t str_len)
{
	struct btf_header head = {.magic = BTF_MAGIC,
				  .version = 1,
				  .hdr_len = sizeof(head),
				  .str_off = str_off,
				  .str_len = str_len};

	memset(room, 'x', 256);
	memcpy(room, &head, sizeof(head));
	memcpy(room + sizeof(head) + 8, STRINGS, sizeof(STRINGS));
	return (struct str){room, sizeof(head) + 8 + sizeof(STRINGS)};
}

TEST(names_are_whole)
{
	char room[256];
	struct str btf = btf_with(room, 8, sizeof(STRINGS));

	expect(kernel_types_text_names(btf, "task_struct"));
	expect(kernel_types_text_names(btf, "task")); /* which ends another name, too */
	expect(kernel_types_text_names(btf, "end"));
	expect(!kernel_types_text_names(btf, "struct"));
	expect(!kernel_types_text_names(btf, "task_"));
	expect(!kernel_types_text_names(btf, ""));
	/* Cut off before the last NUL. */
	expect(!kernel_types_text_names(btf_with(room, 8, sizeof(STRINGS) - 2), "end"));
}

TEST(other_bytes_name_nothing)
{
	char room[256];
	struct str btf = btf_with(room, 8, sizeof(STRINGS));

	for (size_t n = 0; n < sizeof(struct btf_header); n++)
		expect(!kernel_types_text_names(str_first(btf, n), "task"));
	expect(!kernel_types_text_names(btf_with(room, UINT32_MAX, 9), "task"));
	expect(kernel_types_text_names(btf_with(room, 8, UINT32_MAX), "task"));
	room[0] = 0;
	expect(!kernel_types_text_names(btf, "task"));
}

TEST(this_kernel_names_its_own)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return;
	expect(kernel_types_name("task_struct"));
	expect(kernel_types_name("schedule"));
	expect(!kernel_types_name("no_kernel_has_such_a_type"));
}
