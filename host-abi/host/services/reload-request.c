/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in reload-request.h. */
#include "host/services/reload-request.h"

#include "base/check.h"
#include "host/state.h"

#include <errno.h>
#include <stdlib.h>

struct reload_request {
	struct loop_task task;
	struct job job;
	struct instance *from;
	andiron_offer_fn fn;
	void *arg;
	int32_t result;
};

static void request_free(struct reload_request *r)
{
	instance_unref(r->from);
	free(r);
}

int reload_now(struct host *host, struct error *err)
{
	if (!host->options.reload)
		return -EOPNOTSUPP;
	if (!host->running || atomic_load(&host->n_stops) > 0)
		return -ECANCELED;
	return host->reloading ? -EBUSY : host->options.reload(host->options.context, err);
}

static void answer(struct job *job)
{
	struct reload_request *r = container_of(job, struct reload_request, job);

	r->fn(r->arg, r->result);
	request_free(r);
}

/* A host that is not running is being freed, which runs what is left of the tasks. */
static void run(struct loop_task *task)
{
	struct reload_request *r = container_of(task, struct reload_request, task);
	struct host *host = r->from->host;
	struct error err = ERROR_NULL;

	check(host->reload_requested);
	r->result = reload_now(host, &err);
	host->reload_requested = false;
	r->job.light = answer;
	if (!strand_submit(&r->from->strand, &r->job))
		request_free(r); /* it has been destroyed */
}

int reload_request(struct instance *from, andiron_offer_fn fn, void *arg)
{
	struct host *host = from->host;
	struct reload_request *r;

	if (!host->options.reload)
		return -EOPNOTSUPP;
	if (host->reloading || host->reload_requested)
		return -EBUSY;
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct reload_request){
		.task.run = run, .from = instance_ref(from), .fn = fn, .arg = arg};
	host->reload_requested = true;
	loop_post(&host->loop, &r->task);
	return 0;
}
