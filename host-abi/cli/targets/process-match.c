/* SPDX-License-Identifier: Apache-2.0 */
/* See process-match.h. */
#include "cli/targets/process-match.h"

#include "abi/target-selector.h"
#include "base/cleanup.h"
#include "cli/doctor/probe.h"
#include "proc/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void machine_processes_fini(struct machine_processes *p)
{
	vec_free(&p->list);
}

static int read_one(int proc, uint32_t pid, struct proc_info *info, struct machine_processes *p)
{
	struct machine_process process = {.pid = pid};

	if (proc_read(proc, pid, PROC_CGROUP, info) || info->kernel_thread)
		return 0; /* it has exited, or there is nothing to profile */
	memcpy(process.comm, info->comm, sizeof(process.comm));
	p->n_in_containers += container_id(info->cgroup, process.container);
	return vec_push(&p->list, process) ? 0 : -ENOMEM;
}

int machine_processes_read(struct machine_processes *ret)
{
	_cleanup_(closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct machine_processes p = {0};
	struct proc_info info = PROC_INFO_NULL;
	struct proc_pids pids = {0};
	int r = proc < 0 ? -errno : proc_list(proc, &pids);

	for (size_t i = 0; !r && i < pids.n; i++)
		r = read_one(proc, pids.p[i], &info, &p);
	proc_info_free(&info);
	vec_free(&pids);
	p.partial = probe_first_pid_namespace() == 0;
	if (r)
		machine_processes_fini(&p);
	else
		*ret = p;
	return r;
}

static int add(struct matched *m, const struct machine_process *process, struct arena *arena)
{
	struct machine_process *copy = arena_alloc(arena, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *process;
	m->processes[m->n++] = copy;
	return 0;
}

/* Why there is no process, if the labels do not say it. */
static const char *why_nobody(const struct machine_processes *processes,
			      struct target_selector selector)
{
	if (processes->partial)
		return "only the processes of this PID namespace are visible, not those of the "
		       "node (in a pod: hostPID: true)";
	if (selector.pid)
		return "no process has this pid";
	if (!processes->n_in_containers)
		return "no visible process has a container's id in its cgroup's path";
	return "no visible process runs in this container: it has exited, or runs on "
	       "another machine";
}

int matched_find(const struct machine_processes *processes, const struct target_label *labels,
		 size_t n_labels, struct arena *arena, struct matched *ret)
{
	struct target_selector selector = target_selector_of(labels, n_labels);
	struct matched m = {.processes = arena_array(arena, const struct machine_process *,
						     processes->list.n + 1)};

	if (!m.processes)
		return -ENOMEM;
	vec_each (&processes->list, p) {
		bool same = selector.pid ? p->pid == selector.pid
					 : selector.container.n &&
						   str_is(selector.container, p->container);

		if (same && add(&m, p, arena))
			return -ENOMEM;
	}
	if (!m.n)
		m.why = target_selector_absent(labels, n_labels, getenv("NODE_NAME"));
	if (!m.n && !m.why)
		m.why = why_nobody(processes, selector);
	*ret = m;
	return 0;
}
