/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads of debug information to servers that symbolize. A file is offered once per build id and
 * endpoint, when a batch has frames of it without a name (or any frames, if so configured). It is
 * sent if the server asks for it.
 *
 * The limit of bytes a second is the node's, for all writers and agents (node-bandwidth.h), else
 * the writer's. The other limits are the writer's, for all endpoints together. At most
 * UPLOADS_WAITING files wait, each with a descriptor, since its process may exit. At most
 * UPLOADS_KNOWN build ids are remembered. Files beyond are counted and not sent.
 *
 * Used under the component's strand. A running upload reads its file there, 64 KiB at a time, which
 * the kernel was asked to read ahead. */
#pragma once

#include "abi/batch-view.h"
#include "abi/log.h"
#include "http/http.h"
#include "pyroscope-push/options.h"

#define UPLOADS_WAITING 64u
#define UPLOADS_KNOWN   8192u

struct uploads;

#define UPLOADS_REASONS 12
struct uploads_counts {
	uint64_t uploaded, bytes; /* files that are the server's by us; all bytes of files sent */
	uint64_t unwanted;        /* which the server had already */
	uint64_t retries;
	uint64_t waiting; /* now, under way included */
	struct {
		const char *word; /* NULL: no more */
		uint64_t files;
	} refused[UPLOADS_REASONS];
};

/* `config` is retained. NULL when memory is short. */
struct uploads *uploads_new(const struct abi_context *context, struct http_client *http,
			    struct push_config *config);

/* Ends all uploads. What a worker still holds is freed when it is done. */
void uploads_free(struct uploads *u);

/* New arguments. What is under way goes on if they have it sent as it was begun, and ends else, to
 * be offered again; what was over a limit is offered again, too. */
void uploads_configure(struct uploads *u, struct push_config *config);

/* Offers what a batch has. Its objects are retained as long as need be. O(locations). */
void uploads_see(struct uploads *u, const struct batch_view *view);

const struct uploads_counts *uploads_counts(const struct uploads *u);
