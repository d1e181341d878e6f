/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on their way. Contract in receiver.h.
 *
 * A job belongs to a request. It may outlive it (the port is closed while a worker reads the body),
 * and then has the body, and no one to answer. */
#include "receive-http/receiver.h"

#include "abi/batch-build.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "grpc-server/grpc-server.h"
#include "protobuf/message.h"
#include "protobuf/otlp.pb-c.h"
#include "protobuf/wire.h"
#include "receive-http/intake.h"
#include "receive-http/options.h"

#include <errno.h>
#include <stdlib.h>

#define RETRY_S     5
#define PROTOBUF    "application/x-protobuf"
#define GRPC_METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

/* Where requests of a protocol come in. */
struct door {
	struct receiver *receiver;
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

/* The words of Connect for a status. */
static const char *connect_code(unsigned int status)
{
	switch (status) {
	case 401:
		return "unauthenticated";
	case 404:
	case 405:
	case 415:
		return "unimplemented";
	case 413:
	case 429:
		return "resource_exhausted";
	case 503:
		return "unavailable";
	default:
		return status < 500 ? "invalid_argument" : "internal";
	}
}

static bool is_push(const struct server_request *request)
{
	return str_is(server_request_path(request), "/push.v1.PusherService/Push");
}

/* At a request's end, since the server answers some by itself. */
static void count(struct receiver *r, unsigned int status)
{
	if (status == 0) /* whoever asked has gone */
		return;
	if (status == 200)
		r->counts.accepted++;
	else if (status == 429)
		r->counts.rejected++;
	else if (status < 500)
		r->counts.refused++;
	else
		r->counts.failed++;
}

/* google.rpc.Status{ code=1, message=2 }: of it OTLP's senders look at none, they go by the status
 * of HTTP. */
static void put_status(struct buf *b, unsigned int status, const char *why)
{
	wire_put_field(b, 1, grpc_server_code(status));
	wire_put_bytes(b, 2, str_of(why));
}

static bool is_grpc(const struct door *door)
{
	return door == &door->receiver->doors[RECEIVE_GRPC];
}

static void refuse(const struct door *door, struct server_request *request, unsigned int status,
		   const char *why)
{
	struct server_answer answer = {.status = status, .type = "text/plain; charset=utf-8"};
	struct buf text = BUF_NULL;

	if (is_grpc(door)) {
		buf_printf(&text, "%s", why);
	} else if (door->receiver->otlp) {
		answer.type = PROTOBUF;
		put_status(&text, status, why);
	} else if (is_push(request)) {
		answer.type = "application/json";
		buf_printf(&text, "{\"code\":\"%s\",\"message\":", connect_code(status));
		json_put_str(&text, str_of(why));
		buf_putc(&text, '}');
	} else {
		buf_printf(&text, "%s\n", why);
	}
	answer.body = buf_str(&text);
	if (status == 429 || status == 503)
		answer.retry_s = RETRY_S;
	server_answer(request, &answer);
	buf_free(&text);
}

/* What was left out is said, and is not to be sent again. */
static void accept_otlp(struct server_request *request, const struct otlp_rejected *rejected)
{
	Otlp__ExportProfilesPartialSuccess partial = OTLP__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	Otlp__ExportProfilesServiceResponse response = OTLP__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	struct server_answer answer = {.status = 200, .type = PROTOBUF};
	struct buf body = BUF_NULL;

	partial.rejected_profiles = (int64_t)rejected->n;
	partial.error_message = message_bytes(str_of(rejected->why.text));
	if (rejected->n)
		response.partial_success = &partial;
	message_pack(&response, &body);
	answer.body = buf_str(&body);
	server_answer(request, &answer);
	buf_free(&body);
}

static void accept_request(struct server_request *request)
{
	struct server_answer answer = {.status = 200};

	if (is_push(request)) {
		bool json = str_starts(server_request_header(request, "Content-Type"),
				       STR("application/json"));

		answer.type = json ? "application/json" : "application/proto";
		answer.body = json ? STR("{}") : STR_NULL;
	}
	server_answer(request, &answer);
}

static size_t job_bytes(const struct job *job)
{
	return sizeof(*job) + job->body.n;
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

	if (request && status == 200 && job->receiver->otlp)
		accept_otlp(request, &job->rejected);
	else if (request && status == 200)
		accept_request(request);
	else if (request)
		refuse(door, request, status, why);
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
	for (size_t i = 0; i < n && job->texts; i++) {
		char *to = job->texts + at;

		if (texts[i]->n)
			memcpy(to, texts[i]->p, texts[i]->n);
		at += texts[i]->n;
		*texts[i] = (struct str){to, texts[i]->n};
	}
	return job->texts != NULL;
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
		.api = r->otlp            ? INTAKE_OTLP
		       : is_push(request) ? INTAKE_PUSH
					  : INTAKE_INGEST,
		.rejected = &job->rejected,
		.body = server_request_body(request),
		.content_type = server_request_header(request, "Content-Type"),
		.content_encoding = server_request_header(request, "Content-Encoding"),
		.name = server_request_query(request, "name"),
		.from = server_request_query(request, "from"),
		.until = server_request_query(request, "until"),
		.format = server_request_query(request, "format"),
		.sample_rate = server_request_query(request, "sampleRate"),
		.spy_name = server_request_query(request, "spyName"),
		.units = server_request_query(request, "units"),
		.aggregation = server_request_query(request, "aggregationType"),
	};
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
		refuse(door, request, 429, "too much is under way; send it again later");
		return;
	}
	job = job_new(door, request);
	if (job && c->host->work(c->instance, run, on_read, job) == 0)
		return;
	if (job)
		job_free(job);
	refuse(door, request, 503, "memory is short");
}

static const char *wrong_method(const struct server_request *request, unsigned int *ret_status)
{
	*ret_status = 404;
	return str_is(server_request_path(request), GRPC_METHOD)
		       ? NULL
		       : "of profiles there is " GRPC_METHOD
			 ", from version 1.10 of OTLP on; other signals are not taken";
}

/* Why this is no request for here, and what HTTP calls that; NULL: it is one. */
static const char *wrong_place(const struct receiver *r, const struct server_request *request,
			       unsigned int *ret_status)
{
	struct str path = server_request_path(request);
	struct str type = server_request_header(request, "Content-Type");

	*ret_status = 404;
	if (r->otlp && !str_is(path, "/v1development/profiles"))
		return "there is /v1development/profiles; gRPC has a port of its own, and other "
		       "signals are not taken";
	if (!r->otlp && !is_push(request) && !str_is(path, "/ingest"))
		return "there are /push.v1.PusherService/Push and /ingest";
	*ret_status = 405;
	if (!server_request_is(request, "POST"))
		return "profiles are sent by POST";
	*ret_status = 415;
	if (r->otlp && !str_starts(type, STR(PROTOBUF)) &&
	    !str_starts(type, STR("application/protobuf")))
		return "send profiles with Content-Type " PROTOBUF
		       ", which is an exporter's encoding proto; JSON is not taken";
	if (is_push(request) && !str_starts(type, STR("application/proto")) &&
	    !str_starts(type, STR("application/json")))
		return "push with Content-Type application/proto or application/json; gRPC is not "
		       "spoken here";
	return NULL;
}

/* What the head alone decides. */
static void on_head(void *context, struct server_request *request)
{
	const struct door *door = context;
	struct str encoding = server_request_header(request, "Content-Encoding");
	unsigned int status;
	const char *why = is_grpc(door) ? wrong_method(request, &status)
					: wrong_place(door->receiver, request, &status);

	if (door->receiver->ending)
		refuse(door, request, 503, "this agent is stopping");
	else if (why)
		refuse(door, request, status, why);
	else if (encoding.n && !str_is(encoding, "gzip") && !str_is(encoding, "identity"))
		refuse(door, request, 415, "the only Content-Encoding that is taken is gzip");
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
	struct listener *http = &r->doors[RECEIVE_HTTP].listener;
	bool were_two = http->server && r->doors[RECEIVE_GRPC].listener.server;
	struct error lost = ERROR_NULL;
	struct server_options former;
	int rc = server_options_copy(&former, &http->options);

	if (rc)
		return rc;
	rc = listener_update(http, &options[RECEIVE_HTTP], err);
	if (!rc) {
		rc = listener_update(&r->doors[RECEIVE_GRPC].listener, &options[RECEIVE_GRPC], err);
		if (rc && listener_update(http, &former, &lost))
			abi_health(context_of(r), ANDIRON_HEALTH_UNHEALTHY, "%s",
				   lost.code ? lost.text : "memory is short");
		else if (rc == 0)
			tell_places(r, were_two);
	}
	server_options_fini(&former);
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

		if (!l->server)
			continue;
		counts.connection_limit += l->options.limits.connections;
		counts.connections += server_connections(l->server);
		counts.held_bytes += server_bodies(l->server);
	}
	return counts;
}
