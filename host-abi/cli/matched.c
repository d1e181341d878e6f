/* SPDX-License-Identifier: Apache-2.0 */
/* See matched.h. */
#include "matched.h"

#include "base/cleanup.h"
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
		return 0; /* gone meanwhile, or nothing to profile */
	memcpy(process.comm, info->comm, sizeof(process.comm));
	container_id(info->cgroup, process.container);
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
	if (r)
		machine_processes_fini(&p);
	else
		*ret = p;
	return r;
}

static struct str value_of(const struct target_label *labels, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(labels[i].name, name))
			return labels[i].value;
	return STR_NULL;
}

/* The id behind "containerd://", of whatever runtime. */
static struct str container_of_target(const struct target_label *labels, size_t n)
{
	static const char *const names[] = {
		"__container_id__",
		"__meta_kubernetes_pod_container_id",
		"__meta_docker_container_id",
		"__meta_dockerswarm_task_container_id",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct str id = value_of(labels, n, names[i]);
		size_t at = str_search(id, STR("://"));

		if (id.n)
			return at < id.n ? str_skip(id, at + 3) : id;
	}
	return STR_NULL;
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

int matched_find(const struct machine_processes *processes, const struct target_label *labels,
		 size_t n_labels, struct arena *arena, struct matched *ret)
{
	struct str pid_text = value_of(labels, n_labels, "__process_pid__");
	struct str container = container_of_target(labels, n_labels);
	struct matched m = {.processes = arena_array(arena, const struct machine_process *,
						     processes->list.n + 1)};
	uint64_t pid = 0;
	bool by_pid = str_u64(pid_text, &pid) && pid;

	if (!m.processes)
		return -ENOMEM;
	vec_each (&processes->list, p) {
		bool same = by_pid ? p->pid == pid : container.n && str_is(container, p->container);

		if (same && add(&m, p, arena))
			return -ENOMEM;
	}
	if (!m.n && by_pid)
		m.why = "no process has this pid";
	else if (!m.n && container.n)
		m.why = "no process of this machine runs in this container";
	else if (!m.n)
		m.why = "it has neither __process_pid__ nor a container's id";
	*ret = m;
	return 0;
}
