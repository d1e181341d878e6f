/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk.h. */
#include "agents/fluent-bit/chunk.h"

#include "abi/batch-build.h"
#include "agents/fluent-bit/cprofiles.h"
#include "receive-http/otlp-request.h"

#include <errno.h>
#include <stdlib.h>

struct reading {
	VEC(struct push_request) requests;
	size_t n_profiles, n_bytes;
	uint64_t left_out;
	struct error *err, *why;
};

static void free_request(struct push_request *r)
{
	vec_free(&r->labels);
	vec_free(&r->profiles);
	arena_free(&r->arena);
}

/* What one profile at fault costs is that profile. */
static int take(void *context, struct str bytes)
{
	struct reading *r = context;
	struct otlp_rejected rejected = {0};
	struct push_request request = {.named = true};
	int rc;

	bytes = arena_str(&request.arena, bytes); /* labels are borrowed from there */
	if (!bytes.p)
		return -ENOMEM;
	rc = otlp_request_parse(bytes, &request, &rejected, r->err);
	if (rejected.n && !r->left_out)
		*r->why = rejected.why;
	r->left_out += rejected.n;
	vec_each (&request.profiles, p)
		r->n_bytes += p->profile.n;
	r->n_profiles += request.profiles.n;
	if (rc == -EBADMSG && rejected.n)
		rc = 0; /* it is counted */
	if (rc == 0 && r->n_bytes > OTLP_MAX_RAW)
		rc = error_set(r->err, -E2BIG, "a chunk has more than %u MiB of profiles",
			       OTLP_MAX_RAW >> 20);
	if (rc == 0 && !vec_push(&r->requests, request))
		rc = -ENOMEM;
	if (rc)
		free_request(&request);
	return rc;
}

static int make(const struct reading *r, const struct chunk_head *head,
		const struct andiron_batch **ret)
{
	const struct batch_head h = {
		.start_ns = head->now_ns, .end_ns = head->now_ns, .producer = head->producer};
	struct encoded_profile *profiles = calloc(r->n_profiles, sizeof(*profiles));
	size_t n = 0;
	int rc;

	if (!profiles)
		return -ENOMEM;
	vec_each (&r->requests, request)
		vec_each (&request->profiles, p)
			profiles[n++] = (struct encoded_profile){
				.labels = request->labels.p + p->label_start,
				.n_labels = p->n_labels,
				.format = ANDIRON_ENCODED_PPROF,
				.bytes = p->profile,
			};
	rc = encoded_batch(profiles, n, &h, ret);
	free(profiles);
	return rc;
}

int chunk_read(struct str chunk, const struct chunk_head *head, const struct andiron_batch **ret,
	       uint64_t *ret_left_out, struct error *err)
{
	struct error broken = ERROR_NULL, why = ERROR_NULL;
	struct reading r = {.err = &broken, .why = &why};
	const struct andiron_batch *batch = NULL;
	int rc = cprofiles_read(chunk, take, &r);

	if (rc == 0 && r.n_profiles > 0)
		rc = make(&r, head, &batch);
	vec_each (&r.requests, request)
		free_request(request);
	vec_free(&r.requests);
	*err = rc ? broken : why;
	if (rc)
		return err->text[0] || rc == -ENOMEM
			       ? rc
			       : error_set(err, rc, "the chunk's bytes are no profiles");
	*ret = batch;
	*ret_left_out = r.left_out;
	return 0;
}
