/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way. Contract in receiver.h.
 *
 * A job belongs to a request. It may outlive it (the port is closed while a worker reads the body),
 * and then has the body, and no one to answer. */
#include "receive-http/receiver.h"

#include "abi/batch-build.h"
#include "base/check.h"
#include "base/clock.h"
#include "receive-http/dialect.h"
#include "receive-http/intake.h"
#include "receive-http/options.h"

#include <errno.h>
#include <stdlib.h>

/* Where requests of a protocol come in. */
struct door {
	struct receiver *receiver;
	enum dialect dialect;
	struct listener listener;
};

struct job {
	struct job *next, **link; /* among the receiver's */
	struct receiver *receiver;
	struct door *door;
	struct server_request *request; /* NULL: it is gone */
	struct buf body;                /* the request's, once it is gone */
	struct intake_request asked;
	struct intake_head head;
	char *texts; /* what `asked` points into, but for the body */
	size_t n_texts;
	const struct andiron_batch *batch;
	unsigned int status;
	struct error error;
	struct otlp_rejected rejected;
};

struct receiver {
	struct abi_context context;
	struct door doors[RECEIVE_PROTOCOLS];
	bool otlp;
	struct job *jobs;
	size_t abandoned; /* bytes of jobs whose requests are gone */
	uint64_t sequence;
	struct receiver_counts counts;
	bool draining; /* drained is to be said when no job is left */
	bool ending;   /* nothing new is taken */
};

static const struct abi_context *context_of(const struct receiver *r)
{
	return &r->context;
}

/* At a request's end, since the server answers some by itself. */
static void count(struct receiver *r, unsigned int status)
{
	if (status == 0)
		r->counts.broken_off++;
	else if (status == 200)
		r->counts.accepted++;
	else if (status == 429)
		r->counts.rejected++;
	else if (status < 500)
		r->counts.refused++;
	else
		r->counts.failed++;
}

static size_t job_bytes(const struct job *job)
{
	return sizeof(*job) + job->n_texts + job->body.n;
}

static void job_free(struct job *job)
{
	struct receiver *r = job->receiver;

	*job->link = job->next;
	if (job->next)
		job->next->link = job->link;
	if (job->request)
		server_request_set(job->request, NULL);
	else
		r->abandoned -= job_bytes(job);
	if (job->batch)
		batch_release(job->batch);
	buf_free(&job->body);
	free(job->texts);
	free(job);
	if (r->draining && !r->jobs) {
		r->draining = false;
		context_of(r)->host->drained(context_of(r)->instance);
	}
}

/* Answers, and ends the job, which `why` may belong to. */
static void end(struct job *job, unsigned int status, const char *why)
{
	struct server_request *request = job->request;
	struct door *door = job->door;

	if (request && status == 200)
		dialect_accept(door->dialect, request, &job->rejected);
	else if (request)
		dialect_refuse(door->dialect, request, status, why);
	job_free(job);
	if (request)
		listener_turn(&door->listener);
}

static void on_offered(void *arg, int32_t result)
{
	struct job *job = arg;

	if (result) {
		end(job, 503,
		    "whoever takes the profiles from here has stopped, or has not started; send it "
		    "again");
		return;
	}
	job->receiver->counts.bytes += job->asked.body.n;
	end(job, 200, NULL);
}

static void run(void *arg)
{
	struct job *job = arg;
	int rc = intake_read(&job->asked, &job->head, &job->batch, &job->status, &job->error);

	if (rc && !job->error.code)
		error_set(&job->error, rc, "memory is short");
	if (!rc)
		job->status = 200;
}

/* Why an offer was not taken. */
static void end_unoffered(struct job *job, int rc)
{
	switch (rc) {
	case -EAGAIN:
		end(job, 429, "whoever takes the profiles from here has no room; send it again");
		break;
	case -E2BIG:
		end(job, 413, "the request is larger than a queue of this agent");
		break;
	case -ENOTCONN:
		end(job, 503, "forward_to is empty: nobody takes profiles from here");
		break;
	case -ESHUTDOWN:
		end(job, 503,
		    "whoever takes the profiles from here is stopping, or has not started");
		break;
	case -ENOMEM:
		end(job, 503, "memory is short");
		break;
	default:
		end(job, 500,
		    "this agent made a batch of it that it refuses itself: a defect of the agent; "
		    "please report it, with what was sent");
	}
}

static void on_read(void *arg)
{
	struct job *job = arg;
	struct receiver *r = job->receiver;
	const struct abi_context *c = context_of(r);
	int rc;

	if (job->status != 200) {
		end(job, job->status, job->error.text);
		return;
	}
	if (!job->request) { /* nobody would hear that it was taken */
		end(job, 503, NULL);
		return;
	}
	if (!job->batch) {
		end(job, 200, NULL);
		return;
	}
	rc = c->host->offer_batch(c->instance, job->batch, on_offered, job);
	if (rc) {
		end_unoffered(job, rc);
		return;
	}
	batch_release(job->batch);
	job->batch = NULL;
}

/* Copies of what the worker reads; the request may go at any time. */
static bool keep_texts(struct job *job, struct str *const *texts, size_t n)
{
	size_t size = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		size += texts[i]->n;
	job->texts = malloc(size + 1);
	job->n_texts = size;
	for (size_t i = 0; i < n && job->texts; i++) {
		char *to = job->texts + at;

		if (texts[i]->n)
			memcpy(to, texts[i]->p, texts[i]->n);
		at += texts[i]->n;
		*texts[i] = (struct str){to, texts[i]->n};
	}
	return job->texts != NULL;
}

/* What an SDK says beside the body. */
static void read_head(struct intake_request *ret, const struct server_request *request)
{
	ret->api = dialect_is_push(request) ? INTAKE_PUSH : INTAKE_INGEST;
	ret->name = server_request_query(request, "name");
	ret->from = server_request_query(request, "from");
	ret->until = server_request_query(request, "until");
	ret->format = server_request_query(request, "format");
	ret->sample_rate = server_request_query(request, "sampleRate");
	ret->spy_name = server_request_query(request, "spyName");
	ret->units = server_request_query(request, "units");
	ret->aggregation = server_request_query(request, "aggregationType");
}

static struct job *job_new(struct door *door, struct server_request *request)
{
	struct receiver *r = door->receiver;
	struct job *job = calloc(1, sizeof(*job));
	struct intake_request *a;

	if (!job)
		return NULL;
	a = &job->asked;
	*a = (struct intake_request){
		.api = INTAKE_OTLP,
		.rejected = &job->rejected,
		.body = server_request_body(request),
		.content_type = server_request_header(request, "Content-Type"),
		.content_encoding = server_request_header(request, "Content-Encoding"),
	};
	if (!r->otlp)
		read_head(a, request);
	job->head = (struct intake_head){context_of(r)->instance, ++r->sequence, clock_real()};
	struct str *const texts[] = {
		&a->content_type, &a->content_encoding, &a->name,     &a->from,  &a->until,
		&a->format,       &a->sample_rate,      &a->spy_name, &a->units, &a->aggregation};
	if (!keep_texts(job, texts, sizeof(texts) / sizeof(texts[0]))) {
		free(job);
		return NULL;
	}
	job->receiver = r;
	job->door = door;
	job->request = request;
	job->next = r->jobs;
	job->link = &r->jobs;
	if (job->next)
		job->next->link = &job->next;
	r->jobs = job;
	server_request_set(request, job);
	return job;
}

static void on_whole(void *context, struct server_request *request)
{
	struct door *door = context;
	const struct abi_context *c = context_of(door->receiver);
	struct job *job;

	if (door->receiver->abandoned > door->listener.options.limits.max_bodies) {
		dialect_refuse(door->dialect, request, 429,
			       "too much is under way; send it again later");
		return;
	}
	job = job_new(door, request);
	if (job && c->host->work(c->instance, run, on_read, job) == 0)
		return;
	if (job)
		job_free(job);
	dialect_refuse(door->dialect, request, 503, "memory is short");
}

/* What the head alone decides. */
static void on_head(void *context, struct server_request *request)
{
	const struct door *door = context;
	unsigned int status;
	const char *why = dialect_fault(door->dialect, request, &status);

	if (door->receiver->ending)
		dialect_refuse(door->dialect, request, 503, "this agent is stopping");
	else if (why)
		dialect_refuse(door->dialect, request, status, why);
}

/* A caller of gRPC may break off at once and call again, and the job goes on. */
static void on_over(void *context, struct server_request *request)
{
	struct receiver *r = ((struct door *)context)->receiver;
	struct job *job = server_request_get(request);

	count(r, server_request_status(request));
	if (!job)
		return;
	job->request = NULL;
	job->body = server_request_take_body(request);
	r->abandoned += job_bytes(job);
}

int receiver_new(const struct abi_context *context, const struct server_options *options, bool otlp,
		 struct receiver **ret)
{
	struct receiver *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->context = *context;
	r->otlp = otlp;
	for (int i = 0; i < RECEIVE_PROTOCOLS; i++) {
		struct door *door = &r->doors[i];
		const struct server_events events = {door, on_head, on_whole, on_over};

		door->receiver = r;
		door->dialect = i == RECEIVE_GRPC ? DIALECT_GRPC
				: otlp            ? DIALECT_OTLP
						  : DIALECT_SDK;
		if (listener_init(&door->listener, context, &events, &options[i])) {
			while (i--)
				listener_fini(&r->doors[i].listener);
			free(r);
			return -ENOMEM;
		}
	}
	*ret = r;
	return 0;
}

void receiver_free(void *self)
{
	struct receiver *r = self;

	r->draining = false;
	while (r->jobs) /* offered to somebody who was left behind */
		job_free(r->jobs);
	for (int i = 0; i < RECEIVE_PROTOCOLS; i++)
		listener_fini(&r->doors[i].listener);
	free(r);
}

/* A listener tells of its own place when it comes there. This tells of two, and of the one that is
 * left of two. */
static void tell_places(const struct receiver *r, bool were_two)
{
	const struct server *http = r->doors[RECEIVE_HTTP].listener.server;
	const struct server *grpc = r->doors[RECEIVE_GRPC].listener.server;

	if (http && grpc)
		abi_health(context_of(r), ANDIRON_HEALTH_HEALTHY,
			   "listening at port %u for HTTP and %u for gRPC", server_port(http),
			   server_port(grpc));
	else if (were_two && (http || grpc))
		abi_health(context_of(r), ANDIRON_HEALTH_HEALTHY, "listening at port %u for %s",
			   server_port(http ? http : grpc), http ? "HTTP" : "gRPC");
}

int receiver_start(struct receiver *r, struct error *err)
{
	int rc = listener_start(&r->doors[RECEIVE_HTTP].listener, err);

	if (rc)
		return rc;
	rc = listener_start(&r->doors[RECEIVE_GRPC].listener, err);
	if (rc)
		listener_stop(&r->doors[RECEIVE_HTTP].listener);
	else
		tell_places(r, false);
	return rc;
}

int receiver_update(struct receiver *r, const struct server_options *options, struct error *err)
{
	bool were_two =
		r->doors[RECEIVE_HTTP].listener.server && r->doors[RECEIVE_GRPC].listener.server;
	struct listener_change changes[RECEIVE_PROTOCOLS] = {0};
	int rc;

	for (int i = 0; i < RECEIVE_PROTOCOLS; i++) {
		changes[i].listener = &r->doors[i].listener;
		changes[i].options = &options[i];
	}
	rc = listeners_update(changes, RECEIVE_PROTOCOLS, err);
	if (!rc)
		tell_places(r, were_two);
	return rc;
}

int32_t receiver_drain(void *self, int64_t deadline_ns)
{
	struct receiver *r = self;

	r->ending = true;
	r->draining = r->jobs != NULL;
	if (!r->draining)
		context_of(r)->host->drained(context_of(r)->instance);
	return 0;
}

void receiver_stop(void *self)
{
	struct receiver *r = self;

	for (int i = 0; i < RECEIVE_PROTOCOLS; i++)
		listener_stop(&r->doors[i].listener);
}

const struct andiron_host *receiver_host(const struct receiver *r)
{
	return context_of(r)->host;
}

bool receiver_takes_otlp(const struct receiver *r)
{
	return r->otlp;
}

struct receiver_counts receiver_counts(const struct receiver *r)
{
	struct receiver_counts counts = r->counts;

	counts.held_bytes = r->abandoned;
	for (int i = 0; i < RECEIVE_PROTOCOLS; i++) {
		const struct listener *l = &r->doors[i].listener;

		counts.refused_connections += listener_refused(l);
		if (!l->server)
			continue;
		counts.waiting_connections += server_waiting(l->server);
		counts.connection_limit += l->options.limits.connections;
		counts.connections += server_connections(l->server);
		counts.held_bytes += server_bodies(l->server);
	}
	return counts;
}
