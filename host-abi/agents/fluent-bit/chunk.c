/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk.h. */
#include "agents/fluent-bit/chunk.h"

#include "abi/batch-build.h"
#include "agents/fluent-bit/cprofiles.h"
#include "receive-http/otlp-request.h"

#include <errno.h>
#include <stdlib.h>

/* What tables of a batch take for a profile and for a label, besides the bytes, at most. */
#define PROFILE_BYTES 128u
#define LABEL_BYTES   64u

struct reading {
	VEC(struct push_request) requests;
	size_t n_profiles, n_bytes; /* of the batch */
	uint64_t left_out;
	struct error why; /* the first was */
};

static void free_request(struct push_request *r)
{
	vec_free(&r->labels);
	vec_free(&r->profiles);
	arena_free(&r->arena);
}

static void leave_out(struct reading *r, const struct error *why)
{
	if (r->left_out++ == 0)
		r->why = *why;
}

/* Of the batch, at most. */
static size_t size_of(const struct push_request *request)
{
	size_t n = request->profiles.n * PROFILE_BYTES;

	vec_each (&request->labels, l)
		n += l->name.n + l->value.n + LABEL_BYTES;
	vec_each (&request->profiles, p)
		n += p->profile.n;
	return n;
}

static int parse(struct reading *r, struct str bytes, struct push_request *ret, struct error *err)
{
	struct otlp_rejected rejected;
	int rc;

	bytes = arena_str(&ret->arena, bytes); /* labels are borrowed from there */
	if (!bytes.p)
		return -ENOMEM;
	rc = otlp_request_parse(bytes, ret, &rejected, err);
	if (rc == 0 && size_of(ret) > OTLP_MAX_RAW - r->n_bytes)
		rc = error_set(err, -E2BIG, "a chunk has more than %u MiB of profiles",
			       OTLP_MAX_RAW >> 20);
	return rc;
}

/* What one profile at fault costs is that profile. */
static int take(void *context, int result, struct str bytes)
{
	struct reading *r = context;
	struct push_request request = {.named = true};
	struct error why = ERROR_NULL;
	int rc = result;

	if (result == -E2BIG)
		error_set(&why, result, "with its resource it is too large for this chunk");
	else if (result)
		error_set(&why, result, "it is not as Fluent Bit writes profiles");
	else
		rc = parse(r, bytes, &request, &why);
	if (rc == -EBADMSG || rc == -E2BIG)
		leave_out(r, &why);
	if (rc == 0 && request.profiles.n) {
		if (vec_push(&r->requests, request)) {
			r->n_profiles += request.profiles.n;
			r->n_bytes += size_of(&request);
			return 0;
		}
		rc = -ENOMEM;
	}
	free_request(&request);
	return rc == -EBADMSG || rc == -E2BIG ? 0 : rc;
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
	struct error broken = ERROR_NULL;
	struct reading r = {0};
	const struct andiron_batch *batch = NULL;
	int rc = cprofiles_read(chunk, take, &r);

	if (rc == -EBADMSG)
		error_set(&broken, rc, "the chunk's bytes are no profiles");
	if (rc == -EBADMSG && r.n_profiles > 0) {
		leave_out(&r, &broken);
		rc = 0;
	}
	if (rc == 0 && r.n_profiles > 0)
		rc = make(&r, head, &batch);
	vec_each (&r.requests, request)
		free_request(request);
	vec_free(&r.requests);
	*err = rc ? broken : r.why;
	if (rc)
		return rc;
	*ret = batch;
	*ret_left_out = r.left_out;
	return 0;
}
