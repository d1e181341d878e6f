/* SPDX-License-Identifier: Apache-2.0 */
/* What is offered to the endpoints. Contract in uploads.h. What came of a build id is remembered,
 * so that batch after batch of the same frames costs a look-up. */
#include "pyroscope-push/uploads/uploads-private.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"

#include <andiron/object.h>

#include <stdio.h>
#include <stdlib.h>

void uploads_count_refused(struct uploads *u, const char *word)
{
	for (size_t i = 0; i < UPLOADS_REASONS; i++) {
		if (u->counts.refused[i].word && strcmp(u->counts.refused[i].word, word) != 0)
			continue;
		u->counts.refused[i].word = word;
		u->counts.refused[i].files++;
		return;
	}
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
	struct upload_job *j = calloc(1, sizeof(*j));
	char *id = str_dup(source->build_id);

	if (!j || !id || !vec_reserve(&u->jobs, 1)) {
		uploads_count_refused(u, "no_memory");
		free(j);
		free(id);
		return;
	}
	*j = (struct upload_job){.uploads = u,
				 .known = known,
				 .endpoint = endpoint,
				 .build_id = {id, source->build_id.n},
				 .source = *source,
				 .part = -1,
				 .opened = {.fd = -1, .image = ELF_IMAGE_NULL}};
	j->source.build_id = j->build_id;
	objects->retain(u->objects.self, source->object);
	check(known < u->known.n && u->jobs.n < UPLOADS_WAITING);
	u->jobs.p[u->jobs.n++] = j;
	u->counts.waiting = u->jobs.n;
}

static void offer(struct uploads *u, const struct upload_source *source)
{
	for (size_t i = 0; i < u->config->n_endpoints; i++) {
		uint64_t endpoint = u->config->endpoints[i].id;
		uint32_t known = know(u, endpoint, source->build_id);

		if (known == INDEX_NONE) {
			uploads_count_refused(u, u->names.strings.n > UPLOADS_KNOWN ? "too_many_ids"
										    : "no_memory");
			continue;
		}
		if (u->known.p[known].again_ns > clock_mono() || is_on_its_way(u, known))
			continue;
		if (u->jobs.n >= UPLOADS_WAITING)
			uploads_count_refused(u, "queue_full");
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
	uploads_pump(u);
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
		struct upload_job *j = u->jobs.p[i];

		/* One that is being opened ends when it is open. */
		if (!upload_job_is_requested(j, config) && j->state != JOB_OPENING)
			upload_job_settle(j, 0);
	}
	uploads_pump(u);
}

void uploads_free(struct uploads *u)
{
	if (!u)
		return;
	uploads_arm(u, UPLOADS_NEVER);
	vec_each (&u->jobs, j) {
		if ((*j)->state == JOB_OPENING)
			(*j)->uploads = NULL;
		else
			upload_job_free(*j);
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
