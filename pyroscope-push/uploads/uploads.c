/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads. Contract in uploads.h. A job is a file on its way to one endpoint: it is opened
 * by a worker, waits until the budget has room, and runs (debuginfo-upload/upload.h) until the
 * server has it, does not want it, or it was tried often enough. What came of a
 * build id is remembered, so that batch after batch of the same frames costs a look-up.
 */
#include "pyroscope-push/uploads/uploads.h"

#include "pyroscope-push/uploads/upload-file.h"
#include "pyroscope-push/uploads/node-bandwidth.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"
#include "debuginfo-upload/upload.h"

#include <andiron/object.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TRIES 10
#define BUSY_NS                                                                                    \
	(300 * NS_PER_SEC)           /* somebody else uploads it, for a quarter of an hour at most \
				      */
#define AGAIN_NS (3600 * NS_PER_SEC) /* what could not be sent is offered again */
#define CALL_MS 30000
#define SHARE_NS (NS_PER_SEC / 4) /* until it is asked again whether others are done */
#define NEVER INT64_MAX

/* What came of a build id at an endpoint; CLOCK_MONOTONIC when it is offered again. */
struct known {
	int64_t again_ns;
	bool by_limit; /* it was refused for a limit of ours, which new arguments may raise */
};

enum job_state { JOB_NEW, JOB_OPENING, JOB_READY, JOB_RUNNING };

struct job {
	struct uploads *uploads; /* NULL: freed while the job was opened */
	enum job_state state;
	uint32_t known;
	uint64_t endpoint;
	struct str build_id; /* of the table of what is known, or copied when that is gone */
	struct upload_source source;
	struct upload_opened opened;
	int tries;
	int part; /* of the node's budget, while it runs; -1: none */
	int64_t due_ns;
	uint64_t counted;           /* of the upload's bytes */
	struct push_config *config; /* while it runs */
	struct upload_server server;
	struct upload_file file;
	struct upload upload;
};

struct uploads {
	struct abi_context context;
	struct http_client *http;
	struct push_config *config;
	struct andiron_extension objects; /* table NULL: the host has none */
	struct intern names;              /* "endpoint build-id"; ids index `known` */
	VEC(struct known) known;
	VEC(struct job *) jobs;
	uint64_t timer;
	uint64_t random;
	struct upload_share share;
	struct uploads_counts counts;
};

static void pump(struct uploads *u);

static void count_refused(struct uploads *u, const char *word)
{
	for (size_t i = 0; i < UPLOADS_REASONS; i++) {
		if (u->counts.refused[i].word && strcmp(u->counts.refused[i].word, word) != 0)
			continue;
		u->counts.refused[i].word = word;
		u->counts.refused[i].files++;
		return;
	}
}

static void free_job(struct job *j)
{
	const struct andiron_objects *objects = j->source.objects.table;

	upload_fini(&j->upload);
	upload_share_give(&j->part);
	upload_file_close(&j->opened);
	objects->release(j->source.objects.self, j->source.object);
	push_config_release(j->config);
	free((void *)(uintptr_t)j->build_id.p);
	free(j);
}

static void remove_job(struct uploads *u, struct job *j)
{
	for (size_t i = 0; i < u->jobs.n; i++)
		if (u->jobs.p[i] == j) {
			/* In order: who came first goes first. */
			memmove(&u->jobs.p[i], &u->jobs.p[i + 1],
				(u->jobs.n - i - 1) * sizeof(*u->jobs.p));
			u->jobs.n--;
			break;
		}
	u->counts.waiting = u->jobs.n;
	free_job(j);
}

static void add_bytes(struct job *j)
{
	j->uploads->counts.bytes += j->upload.sent_in_all - j->counted;
	j->counted = j->upload.sent_in_all;
}

/* The end of a job; `again_ns` from now it may be offered again, or never. */
static void settle(struct job *j, int64_t again_ns)
{
	struct uploads *u = j->uploads;

	add_bytes(j);
	u->known.p[j->known] = (struct known){
		.again_ns = again_ns == NEVER ? NEVER : clock_mono() + again_ns,
	};
	remove_job(u, j);
}

static void refuse(struct job *j, const char *word, int64_t again_ns, const char *why)
{
	struct uploads *u = j->uploads;

	count_refused(u, word);
	abi_log(&u->context,
		strcmp(word, "no_debuginfo") == 0 ? ANDIRON_LOG_DEBUG : ANDIRON_LOG_WARN,
		"debug information of build id %.*s is not uploaded (%s): %s",
		STR_FMT(str_first(j->build_id, 64)), word, why);
	settle(j, again_ns);
}

static void refuse_by_limit(struct job *j, const char *word, int64_t again_ns, const char *why)
{
	struct known *known = &j->uploads->known.p[j->known];

	refuse(j, word, again_ns, why);
	known->by_limit = true;
}

/* Later, and more rarely each time; given up after MAX_TRIES. */
static void retry(struct job *j, const struct endpoint_options *o, const char *text)
{
	struct uploads *u = j->uploads;
	int64_t ms = o->min_backoff_ms;

	if (j->tries >= MAX_TRIES) {
		refuse(j, "retries_exhausted", AGAIN_NS, text);
		return;
	}
	for (int i = 1; i < j->tries && ms < o->max_backoff_ms; i++)
		ms *= 2;
	ms = ms < o->max_backoff_ms ? ms : o->max_backoff_ms;
	u->random = hash_u64(u->random + 1);
	u->counts.retries++;
	j->state = JOB_READY;
	j->due_ns = clock_mono() + ms * NS_PER_MSEC / 2 +
		    (int64_t)(u->random % (uint64_t)(ms * NS_PER_MSEC / 2 + 1));
	abi_log(&u->context, ANDIRON_LOG_DEBUG, "%s: upload of build id %.*s is tried again: %s",
		o->name, STR_FMT(str_first(j->build_id, 64)), text);
}

/* Somebody else's upload is waited out, as often as one can follow another. */
static void wait_for_others(struct job *j, const char *text)
{
	if (j->tries >= MAX_TRIES) {
		refuse(j, "retries_exhausted", AGAIN_NS, text);
		return;
	}
	j->uploads->counts.retries++;
	j->state = JOB_READY;
	j->due_ns = clock_mono() + BUSY_NS;
}

static const struct endpoint_options *endpoint_of(const struct push_config *c, uint64_t id)
{
	for (size_t i = 0; i < c->n_endpoints; i++)
		if (c->endpoints[i].id == id)
			return &c->endpoints[i];
	return NULL;
}

/* Whether these arguments have it sent as it was begun. */
static bool is_wanted(const struct job *j, const struct push_config *c)
{
	return c->uploads.on && endpoint_of(c, j->endpoint) && j->source.whole == !c->uploads.strip;
}

static void on_done(void *context, enum upload_outcome outcome, const char *text)
{
	struct job *j = context;
	struct uploads *u = j->uploads;
	struct push_config *config = j->config;
	const struct endpoint_options *o = endpoint_of(config, j->endpoint);

	check(j->state == JOB_RUNNING && o);
	upload_share_give(&j->part);
	add_bytes(j);
	j->config = NULL;
	switch (outcome) {
	case UPLOAD_DONE:
		u->counts.uploaded++;
		abi_log(&u->context, ANDIRON_LOG_INFO,
			"%s: debug information of build id %.*s uploaded, %llu bytes", o->name,
			STR_FMT(str_first(j->build_id, 64)),
			(unsigned long long)j->opened.image.size);
		settle(j, NEVER);
		break;
	case UPLOAD_UNWANTED:
		u->counts.unwanted++;
		settle(j, NEVER);
		break;
	case UPLOAD_BUSY:
		wait_for_others(j, text);
		break;
	case UPLOAD_REFUSED:
		refuse(j, "refused", AGAIN_NS, text);
		break;
	case UPLOAD_LOST:
	default:
		retry(j, o, text);
	}
	push_config_release(config);
	pump(u);
}

static void open_apart(void *arg)
{
	struct job *j = arg;

	upload_file_open(&j->source, &j->opened);
}

static void on_opened(void *arg)
{
	struct job *j = arg;
	struct uploads *u = j->uploads;

	check(j->state == JOB_OPENING);
	if (!u) {
		free_job(j);
		return;
	}
	j->state = JOB_READY;
	if (j->opened.refused)
		refuse(j, j->opened.refused,
		       strcmp(j->opened.refused, "no_debuginfo") == 0 ? NEVER : AGAIN_NS,
		       j->opened.why.text);
	pump(u);
}

/* Files are opened one at a time, and before any is sent: who waits may exit. */
static void open_next(struct uploads *u)
{
	struct job *next = NULL;

	vec_each (&u->jobs, j) {
		if ((*j)->state == JOB_OPENING)
			return;
		if ((*j)->state == JOB_NEW && !next)
			next = *j;
	}
	if (!next)
		return;
	next->state = JOB_OPENING;
	if (u->context.host->work(u->context.instance, open_apart, on_opened, next) != 0)
		next->state = JOB_NEW; /* the next batch tries again */
}

/* What was sent, and will have been when all that is under way has ended. */
static uint64_t spent(const struct uploads *u)
{
	uint64_t sum = u->counts.bytes;

	vec_each (&u->jobs, j)
		if ((*j)->state == JOB_RUNNING)
			sum += (*j)->opened.image.size;
	return sum;
}

/* Whether it fits into what may be sent; it is refused where it does not. */
static bool fits(struct job *j)
{
	const struct uploads_options *o = &j->uploads->config->uploads;
	uint64_t size = j->opened.image.size, sent = spent(j->uploads);

	if (!is_wanted(j, j->uploads->config)) { /* it came to that while this was opened */
		settle(j, 0);
		return false;
	}
	if (size > o->max_file_bytes) {
		refuse_by_limit(j, "too_large", NEVER,
				"it is larger than debuginfo.max_file_bytes");
		return false;
	}
	if (o->max_total_bytes && (sent > o->max_total_bytes || size > o->max_total_bytes - sent)) {
		refuse_by_limit(j, "budget", AGAIN_NS, "debuginfo.max_total_bytes are used up");
		return false;
	}
	return true;
}

static void run(struct job *j)
{
	struct uploads *u = j->uploads;
	const struct uploads_options *limits = &u->config->uploads;
	const struct endpoint_options *o = endpoint_of(u->config, j->endpoint);
	struct error err = ERROR_NULL;

	check(o);
	j->config = push_config_retain(u->config);
	j->state = JOB_RUNNING;
	j->tries++;
	j->server = (struct upload_server){
		.url = str_of(o->server),
		.config = &o->client.http,
		.headers = o->headers,
		.n_headers = o->n_headers,
		.call_ms = CALL_MS,
		.send_ms = limits->timeout_ms,
		.bytes_per_second = upload_share_rate(limits),
	};
	j->file = (struct upload_file){.build_id = j->build_id,
				       .id_type = UPLOAD_ID_UNKNOWN,
				       .hash = str_of(j->opened.hash),
				       .image = &j->opened.image};
	j->upload.http = u->http;
	j->upload.server = &j->server;
	j->upload.file = &j->file;
	j->upload.done = on_done;
	j->upload.context = j;
	if (upload_run(&j->upload, &err) < 0) {
		upload_share_give(&j->part);
		push_config_release(take_ptr(j->config));
		retry(j, o, err.code ? err.text : "memory is short");
	}
}

static void on_timer(void *arg)
{
	struct uploads *u = arg;

	u->timer = 0;
	pump(u);
}

static void arm(struct uploads *u, int64_t due_ns)
{
	int64_t now = clock_mono();

	if (u->timer)
		u->context.host->timer_cancel(u->context.instance, u->timer);
	u->timer = 0;
	if (due_ns == NEVER)
		return;
	if (u->context.host->timer_set(u->context.instance, due_ns > now ? due_ns - now : 0, 0,
				       on_timer, u, &u->timer) != 0)
		u->timer = 0; /* the next batch tries again */
}

/* The first that may go now; *due_ns: when another could. */
static struct job *next_ready(const struct uploads *u, int64_t *due_ns)
{
	int64_t now = clock_mono();
	size_t running = 0;

	*due_ns = NEVER;
	vec_each (&u->jobs, j)
		running += (*j)->state == JOB_RUNNING;
	if (running >= (size_t)u->config->uploads.max_parallel)
		return NULL;
	vec_each (&u->jobs, j) {
		if ((*j)->state != JOB_READY)
			continue;
		if ((*j)->due_ns <= now)
			return *j;
		if ((*j)->due_ns < *due_ns)
			*due_ns = (*j)->due_ns;
	}
	return NULL;
}

static void pump(struct uploads *u)
{
	int64_t due_ns;
	struct job *j;

	open_next(u);
	while ((j = next_ready(u, &due_ns))) {
		if (!fits(j))
			continue;
		if (!upload_share_take(&u->share, &u->config->uploads, &j->part)) {
			due_ns = clock_mono() + SHARE_NS;
			break;
		}
		run(j);
	}
	arm(u, due_ns);
}

/* The entry of a build id at an endpoint; INDEX_NONE: no room. */
static uint32_t know(struct uploads *u, uint64_t endpoint, struct str build_id)
{
	char name[200];
	uint32_t id;

	snprintf(name, sizeof(name), "%016llx %.*s", (unsigned long long)endpoint,
		 STR_FMT(str_first(build_id, 160)));
	if (u->names.strings.n > UPLOADS_KNOWN || !vec_reserve(&u->known, 2))
		return INDEX_NONE;
	id = intern_add(&u->names, str_of(name));
	while (id != INDEX_NONE && u->known.n <= id)
		u->known.p[u->known.n++] = (struct known){0};
	return id;
}

static bool is_on_its_way(const struct uploads *u, uint32_t known)
{
	vec_each (&u->jobs, j)
		if ((*j)->known == known)
			return true;
	return false;
}

static void add_job(struct uploads *u, uint64_t endpoint, uint32_t known,
		    const struct upload_source *source)
{
	const struct andiron_objects *objects = u->objects.table;
	struct job *j = calloc(1, sizeof(*j));
	char *id = str_dup(source->build_id);

	if (!j || !id || !vec_reserve(&u->jobs, 1)) {
		count_refused(u, "no_memory");
		free(j);
		free(id);
		return;
	}
	*j = (struct job){.uploads = u,
			  .known = known,
			  .endpoint = endpoint,
			  .build_id = {id, source->build_id.n},
			  .source = *source,
			  .part = -1,
			  .opened = {.fd = -1, .image = ELF_IMAGE_NULL}};
	j->source.build_id = j->build_id;
	objects->retain(u->objects.self, source->object);
	u->jobs.p[u->jobs.n++] = j;
	u->counts.waiting = u->jobs.n;
}

static void offer(struct uploads *u, const struct upload_source *source)
{
	for (size_t i = 0; i < u->config->n_endpoints; i++) {
		uint64_t endpoint = u->config->endpoints[i].id;
		uint32_t known = know(u, endpoint, source->build_id);

		if (known == INDEX_NONE) {
			count_refused(u, u->names.strings.n > UPLOADS_KNOWN ? "too_many_ids"
									    : "no_memory");
			continue;
		}
		if (u->known.p[known].again_ns > clock_mono() || is_on_its_way(u, known))
			continue;
		if (u->jobs.n >= UPLOADS_WAITING)
			count_refused(u, "queue_full");
		else
			add_job(u, endpoint, known, source);
	}
}

/* Whether a frame is left to the server to be named. */
static bool is_left(const struct push_config *c, const struct andiron_location *l)
{
	return c->addresses && (l->n_lines == 0 || (l->flags & ANDIRON_LOCATION_UNSYMBOLIZED));
}

/* Marks the mappings that have a frame to be named elsewhere. */
static bool *find_mappings(const struct uploads *u, const struct batch_view *v)
{
	uint64_t n = batch_count(v, ANDIRON_COL_MAPPING);
	bool *wanted = calloc(n + 1, sizeof(*wanted));

	for (uint32_t i = 1; wanted && i < batch_count(v, ANDIRON_COL_LOCATION); i++) {
		struct andiron_location l = batch_location(v, i);

		if (l.kind == ANDIRON_FRAME_NATIVE && l.mapping < n &&
		    (u->config->uploads.all || is_left(u->config, &l)))
			wanted[l.mapping] = true;
	}
	return wanted;
}

void uploads_see(struct uploads *u, const struct batch_view *v)
{
	bool *wanted;

	if (!u->config->uploads.on || !u->objects.table)
		return;
	wanted = find_mappings(u, v);
	for (uint32_t i = 1; wanted && i < batch_count(v, ANDIRON_COL_MAPPING); i++) {
		struct andiron_mapping m = batch_mapping(v, i);
		struct upload_source source = {
			.objects = u->objects,
			.object = m.object,
			.build_id = batch_str(v, m.gnu_build_id ? m.gnu_build_id : m.go_build_id),
			.whole = !u->config->uploads.strip,
		};

		if (wanted[i] && m.object > ANDIRON_OBJECT_KERNEL && source.build_id.n > 2)
			offer(u, &source);
	}
	free(wanted);
	pump(u);
}

struct uploads *uploads_new(const struct abi_context *context, struct http_client *http,
			    struct push_config *config)
{
	struct uploads *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->context = u->share.context = *context;
	u->http = http;
	u->config = push_config_retain(config);
	u->random = hash_mix((uint64_t)clock_real(), (uintptr_t)u);
	if (context->host->extension(context->instance, ANDIRON_OBJECTS_ID, &u->objects) != 0)
		u->objects = (struct andiron_extension){0};
	return u;
}

void uploads_configure(struct uploads *u, struct push_config *config)
{
	push_config_retain(config);
	push_config_release(u->config);
	u->config = config;
	vec_each (&u->known, k)
		if (k->by_limit)
			*k = (struct known){0};
	for (size_t i = u->jobs.n; i--;) {
		struct job *j = u->jobs.p[i];

		/* One that is being opened ends when it is open. */
		if (!is_wanted(j, config) && j->state != JOB_OPENING)
			settle(j, 0);
	}
	pump(u);
}

void uploads_free(struct uploads *u)
{
	if (!u)
		return;
	arm(u, NEVER);
	vec_each (&u->jobs, j) {
		if ((*j)->state == JOB_OPENING)
			(*j)->uploads = NULL;
		else
			free_job(*j);
	}
	vec_free(&u->jobs);
	vec_free(&u->known);
	intern_free(&u->names);
	push_config_release(u->config);
	free(u);
}

const struct uploads_counts *uploads_counts(const struct uploads *u)
{
	return &u->counts;
}
