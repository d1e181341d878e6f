/* SPDX-License-Identifier: Apache-2.0 */
/* One list-and-watch: the objects of one kind, of one namespace or of all.
 *
 *     initial ─(events, then a bookmark)──▶ the same request goes on as a watch
 *       │ the server supports no such watch           │ ends
 *       ▼                                             ▼
 *     LIST page by page ─▶ WATCH from its version ─▶ WATCH again
 *       ▲                                             │ 410: too old
 *       └──────────── or the initial watch ◀──────────┘
 *
 * A server remembers the state that the first page shows for some minutes only. A list that takes
 * longer is restarted in one piece, since a second list in pages would fail likewise. The token
 * that the server offers instead is not used: it continues at another version, so objects that were
 * listed before and deleted since would stay forever.
 *
 * A failure leaves the store as it is. The next attempt follows after
 *   unreachable, refused   1/30 of the outage so far, at least 0.8 s: short outages end at once
 *                          for us, long ones cost the server little
 *   overloaded (429, 5xx)  0.8 s, doubled up to 30 s
 * and up to a quarter more at random. Retry-After wins.
 *
 * Answers are parsed as they arrive, on the owner's loop, one read of the socket at a time. */
#pragma once

#include "abi/log.h"
#include "http/http.h"
#include "k8s-discovery/objects/store.h"

/* The server. Borrowed by the watch, and outlives it. */
struct api {
	const struct http_config *http;
	struct str server; /* https://host:port, without a slash at the end */
};

/* What to list. Strings are borrowed like the api; not yet escaped. */
struct selection {
	enum kind kind;
	struct str namespace_; /* STR_NULL: all */
	struct str label, field;
	const struct annotations *annotations; /* to keep; NULL: all */
};

struct watch_owner {
	const struct abi_context *host;
	struct http_client *client;
	struct store *store;
	void *context;
	/* The store has changed; after the first list also when it has not. */
	void (*changed)(void *context);
	/* watch_trouble or watch_synced has changed. */
	void (*state)(void *context);
	/* A request was refused as unauthorized: new credentials are needed. */
	void (*unauthorized)(void *context);
};

struct watch;

/* space: as in store.h. NULL: out of memory. */
struct watch *watch_new(const struct watch_owner *owner, const struct api *api, uint32_t space,
			const struct selection *selection);
/* Sends the first request. */
void watch_start(struct watch *w);
/* Ends requests and timers. */
void watch_stop(struct watch *w);
void watch_free(struct watch *w);
/* Ends a wait at once: something has changed that may help. */
void watch_retry(struct watch *w);

/* Whether the first list is complete. */
bool watch_synced(const struct watch *w);
/* What is wrong, for people; NULL while it works. */
const char *watch_trouble(const struct watch *w);

#define WATCH_ADD    0
#define WATCH_UPDATE 1
#define WATCH_DELETE 2

struct watch_counts {
	uint64_t lists; /* initial watches and pages of lists */
	uint64_t watches, failures, bookmarks, bytes;
	uint64_t skipped;   /* objects that are not to be read */
	uint64_t events[3]; /* by WATCH_… */
};
struct watch_counts watch_counts(const struct watch *w);
void watch_counts_add(struct watch_counts *sum, const struct watch_counts *more);
enum kind watch_kind(const struct watch *w);
