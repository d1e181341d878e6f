/* SPDX-License-Identifier: Apache-2.0 */
/* Reading processes on a worker. Contract in job.h. */
#include "process/job.h"

#include <errno.h>
#include <stdlib.h>

struct job *job_new(void)
{
	return calloc(1, sizeof(struct job));
}

void job_free(struct job *job)
{
	if (!job)
		return;
	vec_free(&job->pids);
	vec_free(&job->results);
	arena_free(&job->arena);
	free(job);
}

static int read_one(struct job *job, uint32_t pid, struct proc_info *info)
{
	struct job_result result = {.pid = pid};
	int r = proc_read(job->proc, pid, label_choice_needs(&job->choice), info);

	if (r == -ENOMEM)
		return r;
	result.gone = r != 0;
	if (!result.gone) {
		result.start_ns = info->start_ns;
		result.target = !info->kernel_thread && !info->zombie;
	}
	if (result.target)
		r = process_labels(info, &job->choice, job->users, &job->arena, &result.labels);
	else
		r = 0;
	return r || vec_push(&job->results, result) ? r : -ENOMEM;
}

void job_run(struct job *job)
{
	struct proc_info info = PROC_INFO_NULL;

	if (job->list) {
		job->error = proc_list(job->proc, &job->pids);
		return;
	}
	if (job->choice.username)
		users_refresh(job->users, job->proc);
	for (size_t i = 0; !job->error && i < job->pids.n; i++)
		job->error = read_one(job, job->pids.p[i], &info);
	proc_info_free(&info);
}
