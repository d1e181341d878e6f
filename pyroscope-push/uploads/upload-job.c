/* SPDX-License-Identifier: Apache-2.0 */
/* One file on its way to one endpoint. Contract in uploads-private.h. */
#include "pyroscope-push/uploads/uploads-private.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "elf/ids.h"

#include <andiron/object.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_TRIES 10
#define BUSY_NS   (300 * NS_PER_SEC) /* another uploads it, for a quarter of an hour at most */
#define CALL_MS   30000

static void close_opened(struct upload_opened *opened)
{
	elf_image_free(&opened->image);
	if (opened->fd >= 0)
		close(opened->fd);
	opened->fd = -1;
}

/* Whether it is the file of that build id; its hash is noted. */
static int identify(struct elf_file *f, struct str build_id, char hash[33], struct error *err)
{
	struct elf_ids ids;
	int r = elf_ids_read(f, &ids);

	if (r < 0)
		return error_errno(err, r, "its ids cannot be read");
	if (!str_is(build_id, ids.gnu_build_id) && !str_is(build_id, ids.go_build_id))
		return error_set(err, -ESTALE, "it has another build id by now");
	snprintf(hash, 33, "%s", ids.file_id);
	return 0;
}

static int lay_out(struct upload_opened *o, const struct upload_source *s)
{
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, o->fd, &o->why);

	if (r == 0)
		r = identify(&f, s->build_id, o->hash, &o->why);
	if (r == 0)
		r = elf_image_make(&o->image, &f, s->whole, &o->why);
	elf_file_close(&f);
	return r;
}

/* One of the object's files: 0, or why it is none to send. */
static int try_file(struct upload_opened *o, const struct upload_source *s, uint32_t what)
{
	const struct andiron_objects *objects = s->objects.table;
	int r = objects->open(s->objects.self, s->object, what, &o->fd);

	if (r < 0) {
		o->fd = -1;
		return error_errno(&o->why, r, "it cannot be opened any more");
	}
	r = lay_out(o, s);
	if (r == 0 && (o->image.holds & ~IMAGE_DYNSYM))
		return 0;
	if (r == 0)
		r = error_set(&o->why, -ENODATA, "it holds no names but those that are exported");
	close_opened(o);
	return r;
}

static const char *refusal_word(int r)
{
	switch (r) {
	case -ENOMEM:
		return "no_memory";
	case -ENODATA:
		return "no_debuginfo";
	case -ENOEXEC:
	case -ENOTSUP:
	case -E2BIG:
		return "broken";
	default:
		return "gone";
	}
}

/* Opens the separate debug file if it is of the build id and holds more than the object itself,
 * else the object, and lays it out. Refused: "gone" (neither can be opened), "broken",
 * "no_debuginfo" (neither has more than exported names, which were looked up already), "no_memory".
 * [worker] */
static void open_source(const struct upload_source *source, struct upload_opened *ret)
{
	struct upload_opened o = {.fd = -1, .image = ELF_IMAGE_NULL};
	int r = try_file(&o, source, ANDIRON_OPEN_DEBUG);

	if (r < 0) {
		o.why = ERROR_NULL;
		r = try_file(&o, source, ANDIRON_OPEN_FILE);
	}
	o.refused = r < 0 ? refusal_word(r) : NULL;
	*ret = o;
}

void upload_job_free(struct upload_job *j)
{
	const struct andiron_objects *objects = j->source.objects.table;

	upload_fini(&j->upload);
	upload_share_give(&j->part);
	close_opened(&j->opened);
	objects->release(j->source.objects.self, j->source.object);
	push_config_release(j->config);
	free((void *)(uintptr_t)j->build_id.p);
	free(j);
}

static void remove_job(struct uploads *u, struct upload_job *j)
{
	for (size_t i = 0; i < u->jobs.n; i++)
		if (u->jobs.p[i] == j) {
			/* In order: who came first goes first. */
			memmove(&u->jobs.p[i], &u->jobs.p[i + 1],
				(u->jobs.n - i - 1) * sizeof(*u->jobs.p));
			u->jobs.n--;
			break;
		}
	check(u->counts.waiting == u->jobs.n + 1);
	u->counts.waiting = u->jobs.n;
	upload_job_free(j);
}

static void add_bytes(struct upload_job *j)
{
	check(j->upload.sent_in_all >= j->counted);
	j->uploads->counts.bytes += j->upload.sent_in_all - j->counted;
	j->counted = j->upload.sent_in_all;
}

void upload_job_settle(struct upload_job *j, int64_t again_ns)
{
	struct uploads *u = j->uploads;

	add_bytes(j);
	u->known.p[j->known] = (struct known){
		.again_ns = again_ns == UPLOADS_NEVER ? UPLOADS_NEVER : clock_mono() + again_ns,
	};
	remove_job(u, j);
}

static void upload_job_refuse(struct upload_job *j, const char *word, int64_t again_ns,
			      const char *why)
{
	struct uploads *u = j->uploads;

	uploads_count_refused(u, word);
	abi_log(&u->context,
		strcmp(word, "no_debuginfo") == 0 ? ANDIRON_LOG_DEBUG : ANDIRON_LOG_WARN,
		"debug information of build id %.*s is not uploaded (%s): %s",
		STR_FMT(str_first(j->build_id, 64)), word, why);
	upload_job_settle(j, again_ns);
}

void upload_job_refuse_by_limit(struct upload_job *j, const char *word, int64_t again_ns,
				const char *why)
{
	struct known *known = &j->uploads->known.p[j->known];

	upload_job_refuse(j, word, again_ns, why);
	known->by_limit = true;
}

/* Later, and more rarely each time; given up after MAX_TRIES. */
static void retry(struct upload_job *j, const struct endpoint_options *o, const char *text)
{
	struct uploads *u = j->uploads;

	if (j->tries >= MAX_TRIES) {
		upload_job_refuse(j, "retries_exhausted", UPLOADS_AGAIN_NS, text);
		return;
	}
	u->counts.retries++;
	j->state = JOB_READY;
	j->due_ns = clock_mono() + push_backoff_ns(o, j->tries, &u->random);
	abi_log(&u->context, ANDIRON_LOG_DEBUG, "%s: upload of build id %.*s is tried again: %s",
		o->name, STR_FMT(str_first(j->build_id, 64)), text);
}

/* Somebody else's upload is waited out, as often as one can follow another. */
static void wait_for_others(struct upload_job *j, const char *text)
{
	if (j->tries >= MAX_TRIES) {
		upload_job_refuse(j, "retries_exhausted", UPLOADS_AGAIN_NS, text);
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

bool upload_job_is_requested(const struct upload_job *j, const struct push_config *c)
{
	return c->uploads.on && endpoint_of(c, j->endpoint) && j->source.whole == !c->uploads.strip;
}

static void on_done(void *context, enum upload_outcome outcome, const char *text)
{
	struct upload_job *j = context;
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
		upload_job_settle(j, UPLOADS_NEVER);
		break;
	case UPLOAD_UNWANTED:
		u->counts.unwanted++;
		upload_job_settle(j, UPLOADS_NEVER);
		break;
	case UPLOAD_BUSY:
		wait_for_others(j, text);
		break;
	case UPLOAD_REFUSED:
		upload_job_refuse(j, "refused", UPLOADS_AGAIN_NS, text);
		break;
	case UPLOAD_LOST:
	default:
		retry(j, o, text);
	}
	push_config_release(config);
	uploads_pump(u);
}

static void open_file(void *arg)
{
	struct upload_job *j = arg;

	open_source(&j->source, &j->opened);
}

static void on_opened(void *arg)
{
	struct upload_job *j = arg;
	struct uploads *u = j->uploads;

	check(j->state == JOB_OPENING);
	if (!u) {
		upload_job_free(j);
		return;
	}
	j->state = JOB_READY;
	if (j->opened.refused)
		upload_job_refuse(j, j->opened.refused,
				  strcmp(j->opened.refused, "no_debuginfo") == 0 ? UPLOADS_NEVER
										 : UPLOADS_AGAIN_NS,
				  j->opened.why.text);
	uploads_pump(u);
}

void upload_job_run(struct upload_job *j)
{
	struct uploads *u = j->uploads;
	const struct uploads_options *limits = &u->config->uploads;
	const struct endpoint_options *o = endpoint_of(u->config, j->endpoint);
	struct error err = ERROR_NULL;

	check(o && j->state == JOB_READY && !j->config);
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
	j->file = (struct upload_file){
		.build_id = j->build_id, .hash = str_of(j->opened.hash), .image = &j->opened.image};
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

void upload_job_open(struct upload_job *j)
{
	struct uploads *u = j->uploads;

	check(j->state == JOB_NEW);
	j->state = JOB_OPENING;
	if (u->context.host->work(u->context.instance, open_file, on_opened, j) != 0)
		j->state = JOB_NEW; /* the next batch tries again */
}
