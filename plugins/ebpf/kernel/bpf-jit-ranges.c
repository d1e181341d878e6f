/* SPDX-License-Identifier: Apache-2.0 */
/* See bpf-jit-ranges.h. Functions of programs share pages, in any order. */
#include "ebpf/kernel/bpf-jit-ranges.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>

#define PAGE      4096u
#define FUNCTIONS 64u /* of one program; more are left out */

static bool joins(const struct kernel_code *code, uint64_t start, uint64_t end)
{
	return code->bytes != 0 && start < code->start + code->bytes + PAGE &&
	       code->start < end + PAGE;
}

void bpf_jit_ranges_add_range(struct kernel_jit *c, uint64_t start, uint64_t bytes)
{
	uint64_t end = start + bytes;
	size_t i = 0;

	while (i < KERNEL_COMPILED && c->code[i].bytes != 0 && !joins(&c->code[i], start, end))
		i++;
	if (i == KERNEL_COMPILED || bytes == 0)
		return;
	if (c->code[i].bytes != 0) {
		if (c->code[i].start < start)
			start = c->code[i].start;
		if (c->code[i].start + c->code[i].bytes > end)
			end = c->code[i].start + c->code[i].bytes;
	}
	c->code[i] = (struct kernel_code){start, end - start};
}

static void add_program(struct kernel_jit *c, int fd)
{
	__u64 starts[FUNCTIONS] = {0};
	__u32 bytes[FUNCTIONS] = {0};
	struct bpf_prog_info info = {.jited_ksyms = (uintptr_t)starts,
				     .nr_jited_ksyms = FUNCTIONS,
				     .jited_func_lens = (uintptr_t)bytes,
				     .nr_jited_func_lens = FUNCTIONS};
	uint32_t size = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0)
		return;
	for (size_t i = 0; i < FUNCTIONS && i < info.nr_jited_ksyms && i < info.nr_jited_func_lens;
	     i++)
		if (starts[i] != 0)
			bpf_jit_ranges_add_range(c, starts[i], bytes[i]);
}

void bpf_jit_ranges_add(struct kernel_jit *c, const struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, object)
		add_program(c, bpf_program__fd(program));
}
