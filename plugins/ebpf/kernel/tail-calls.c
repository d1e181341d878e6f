/* SPDX-License-Identifier: Apache-2.0 */
/* See tail-calls.h. */
#include "ebpf/kernel/tail-calls.h"

#include <bpf/bpf.h>
#include <stddef.h>
#include <unistd.h>

#define INSN(code_, dst_, src_, imm_) \
	{.code = (code_), .dst_reg = (dst_), .src_reg = (src_), .imm = (imm_)}
#define MOVE_REG  (BPF_ALU64 | BPF_MOV | BPF_X)
#define MOVE      (BPF_ALU64 | BPF_MOV | BPF_K)
#define CALL      (BPF_JMP | BPF_CALL)
#define EXIT      INSN(BPF_JMP | BPF_EXIT, 0, 0, 0)
#define FUNCTION  6 /* from the call behind it to the function */

bool tail_calls_work(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "probe", 4, 4, 1, NULL);
	const struct bpf_insn program[] = {
		INSN(MOVE_REG, BPF_REG_6, BPF_REG_1, 0),
		INSN(CALL, 0, BPF_PSEUDO_CALL, FUNCTION + 1),
		INSN(MOVE_REG, BPF_REG_1, BPF_REG_6, 0),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, map),
		INSN(0, 0, 0, 0), /* the upper half of the same */
		INSN(MOVE, BPF_REG_3, 0, 0),
		INSN(CALL, 0, 0, BPF_FUNC_tail_call),
		INSN(MOVE, BPF_REG_0, 0, 0),
		EXIT,
		INSN(MOVE, BPF_REG_0, 0, 0), /* the function */
		EXIT,
	};
	int fd = -1;

	if (map >= 0)
		fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "GPL", program,
				   sizeof(program) / sizeof(program[0]), NULL);
	if (fd >= 0)
		close(fd);
	if (map >= 0)
		close(map);
	return fd >= 0;
}
