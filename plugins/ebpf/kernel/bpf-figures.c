/* SPDX-License-Identifier: Apache-2.0 */
/* See bpf-figures.h. */
#include "ebpf/kernel/bpf-figures.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>

void program_figures_add(struct program_figures *sum, const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (bpf_program__fd(program) < 0 ||
	    bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0)
		return;
	sum->verified_insns += info.verified_insns;
	sum->run_ns += info.run_time_ns;
	sum->runs += info.run_cnt;
	sum->missed += info.recursion_misses;
}

uint64_t map_memory_bytes(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	fclose(f);
	return bytes;
}
