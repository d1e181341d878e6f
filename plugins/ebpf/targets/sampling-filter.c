/* SPDX-License-Identifier: Apache-2.0 */
/* See sampling-filter.h. */
#include "ebpf/targets/sampling-filter.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

/* Searches of the process table for descendants, as long as the last one found some. */
#define ROUNDS_MAX 8

uint32_t sampling_filter_mode(const struct ebpf_options *options, struct matcher *matcher)
{
	size_t n;

	matcher_all(matcher, &n);
	if (!options->targets_only || n > SAMPLING_FILTER_PIDS_MAX)
		return SAMPLER_ALL;
	return matcher_has_containers(matcher) ? SAMPLER_CGROUPS : SAMPLER_PIDS;
}

static bool keep_root(void *context, uint32_t root)
{
	return matcher_has_pid(context, root);
}

/* Selects children of selected processes; returns how many, or an errno. */
static int add_children(struct session *session, struct matcher *matcher,
			struct processes *processes)
{
	struct proc_pids pids = {0};
	int r = proc_list(processes->proc, &pids), found = 0;

	for (size_t i = 0; r == 0 && i < pids.n; i++) {
		uint32_t root;

		if (session_root(session, pids.p[i]) != 0 ||
		    proc_read(processes->proc, pids.p[i], 0, &processes->info) != 0)
			continue;
		root = session_root(session, processes->info.parent);
		if (root == 0 || matcher_has_pid(matcher, pids.p[i]))
			continue;
		r = session_select(session, pids.p[i], root, true);
		found++;
	}
	free(pids.p);
	return r < 0 ? r : found;
}

static int add_targets(struct session *session, struct matcher *matcher, bool follow,
		       bool *ret_added)
{
	size_t n;
	struct match *const *all = matcher_all(matcher, &n);
	int r = 0;

	check(n == 0 || all);
	for (size_t i = 0; r == 0 && i < n && n <= SAMPLING_FILTER_PIDS_MAX; i++) {
		uint32_t pid = all[i]->pid;

		if (!pid || session_root(session, pid) == pid)
			continue;
		r = session_select(session, pid, pid, follow);
		*ret_added = true;
	}
	return r;
}

int sampling_filter_set(struct session *session, struct matcher *matcher,
			struct processes *processes, bool follow, struct error *err)
{
	bool added = false;
	int r = session_prune(session, keep_root, matcher);

	if (r == 0)
		r = session_forget_cgroups(session);
	if (r == 0)
		r = add_targets(session, matcher, follow, &added);
	if (follow && added)
		for (int i = 0; r >= 0 && i < ROUNDS_MAX; i++) {
			r = add_children(session, matcher, processes);
			if (r == 0)
				break;
		}
	if (r < 0)
		return error_errno(err, r, "cannot tell the kernel which processes to sample");
	return 0;
}

void sampling_filter_judge(struct session *session, struct matcher *matcher,
			   const struct process *p)
{
	bool selected = matcher_has_container(matcher, str_of(p->container));

	if (!p->known || !matcher_has_containers(matcher))
		return;
	/* A full set is begun anew: what is unknown is judged again. */
	if (session_judge_cgroup(session, p->cgroup, selected) == -E2BIG &&
	    session_forget_cgroups(session) == 0)
		session_judge_cgroup(session, p->cgroup, selected);
}
