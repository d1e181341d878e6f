/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list-and-watch: the pods of one namespace, or of all.
 *
 *     LIST page by page → WATCH from the list's version → (ends) WATCH again
 *       ▲                          │ 410: too old
 *       └──────────────────────────┘
 *
 * Every failure waits (0.8 s, doubled up to 30 s, plus as much again at random;
 * Retry-After wins) and leaves what is known as it is; so does a watch that
 * ends at once with nothing said. An event, or a watch that lasts, ends the
 * doubling. A list is parsed by a worker, events one by one. Everything else
 * runs on the loop of the owner.
 */
#ifndef K8S_WATCH_H
#define K8S_WATCH_H

#include "abi/log.h"
#include "http/http.h"
#include "store.h"

/* How and where to ask. Borrowed by the watch, and outlives it. */
struct api {
	const struct http_config *http;
	struct str server;         /* https://host:port, without a slash at the end */
	struct str label_selector; /* not yet escaped */
	struct str field_selector;
};

struct watch_owner {
	const struct abi_context *host;
	struct http_client *client;
	struct store *store;
	void *context;
	/* The store has changed; after the first list also when it has not. */
	void (*changed)(void *context);
	/* `text` says what is wrong, or is NULL when it works (again). */
	void (*state)(void *context, const char *text);
};

struct watch;

/* space: as in store.h; namespace_: STR_NULL for all. NULL: out of memory. */
struct watch *watch_new(const struct watch_owner *owner, const struct api *api, uint32_t space,
			struct str namespace_);
/* Begins. */
void watch_start(struct watch *w);
/* Ends requests and timers. Work in progress may still call back until the
 * host has waited for it, so free comes after that. */
void watch_stop(struct watch *w);
void watch_free(struct watch *w);

/* Whether the first list is complete. */
bool watch_synced(const struct watch *w);
/* Whether the last thing that it did has failed. */
bool watch_failing(const struct watch *w);

struct watch_counts {
	uint64_t lists, watches, events, failures;
};
struct watch_counts watch_counts(const struct watch *w);

#endif
