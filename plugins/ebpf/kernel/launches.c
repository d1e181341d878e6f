/* SPDX-License-Identifier: Apache-2.0 */
/* See launches.h. */
#include "ebpf/kernel/launches.h"

#include "ebpf/kernel/bpf-figures.h"
#include "ebpf/kernel/types-excerpt.h"

#include "base/cleanup.h"
#include "bpfwire/launch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "launch.skel.h"
#pragma GCC diagnostic pop

struct launches {
	struct launch_bpf *skel;
};

static int share(struct bpf_map *map, const struct bpf_object *sampler)
{
	return bpf_map__reuse_fd(map, bpf_object__find_map_fd_by_name(sampler, bpf_map__name(map)));
}

static int load(struct launch_bpf *skel, const struct bpf_object *sampler, uint32_t hierarchy)
{
	int r = share(skel->maps.ring, sampler);

	if (r == 0)
		r = share(skel->maps.selected, sampler);
	if (r == 0)
		r = share(skel->maps.cgroups, sampler);
	skel->rodata->launch_hierarchy = hierarchy;
	if (r == 0)
		r = launch_bpf__load(skel);
	return r == 0 ? launch_bpf__attach(skel) : r;
}

int launches_open(const struct bpf_object *sampler, uint32_t hierarchy, struct launches **ret)
{
	_cleanup_(types_excerpt_close) struct types_excerpt types = {.fd = -1};
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types_excerpt_open(&types));
	struct launches *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (!l)
		return r;
	l->skel = launch_bpf__open_opts(&options);
	r = l->skel ? types_excerpt_fill(&types, l->skel->obj) : -errno;
	if (r == 0)
		r = load(l->skel, sampler, hierarchy);
	if (r == 0)
		*ret = l;
	else
		launches_close(l);
	return r;
}

void launches_close(struct launches *l)
{
	if (!l)
		return;
	launch_bpf__destroy(l->skel);
	free(l);
}

void launches_configure(struct launches *l, uint32_t mode)
{
	l->skel->bss->launch_config.mode = mode;
}

/* Of one that had begun before the program could see it. */
static bool exe_of(uint32_t tgid, struct launch_file *ret)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	if (stat(path, &st) != 0)
		return false;
	*ret = (struct launch_file){.inode = st.st_ino,
				    .device = major(st.st_dev) << 20 | minor(st.st_dev)};
	return true;
}

static bool executed(const struct launches *l, const struct sampler_process_key *process,
		     struct launch_exec *ret)
{
	return bpf_map__lookup_elem(l->skel->maps.launch_execs, process, sizeof(*process), ret,
				    sizeof(*ret), 0) == 0;
}

void launches_watch(struct launches *l, const struct sampler_process_key *process,
		    uint64_t generation)
{
	struct launch_exec exec;
	struct launch_file exe;
	uint32_t one = 1;

	if (executed(l, process, &exec)) {
		if (exec.generation != generation)
			return;
		exe = exec.file;
	} else if (!exe_of(process->tgid, &exe) || executed(l, process, &exec)) {
		return;
	}
	bpf_map__update_elem(l->skel->maps.launch_files, &exe, sizeof(exe), &one, sizeof(one),
			     BPF_ANY);
}

uint64_t launches_verified(const struct launches *l)
{
	struct program_figures sum = {0};
	struct bpf_program *program;

	bpf_object__for_each_program (program, l->skel->obj)
		program_figures_add(&sum, program);
	return sum.verified_insns;
}
