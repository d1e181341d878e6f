/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information for servers that give names themselves: which files are offered, when, and
 * within what. A file is offered once per build id and endpoint, when a batch has frames of it
 * without a name (or any, if so configured), and is sent if the server asks for it.
 *
 * Bytes a second are those of the node, for all writers and agents together (node-bandwidth.h), or
 * where that cannot be, of the writer. Uploads at once, bytes of one file and of all are the whole
 * writer's, for all endpoints together. At most UPLOADS_WAITING files wait, with a descriptor each,
 * so that one whose process exits can still be sent; at most UPLOADS_KNOWN build ids are
 * remembered. What is beyond is counted and not sent.
 *
 * Used under the component's strand. An upload under way reads its file there, a piece of 64 KiB at
 * a time, which the kernel was asked to read ahead. */
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
