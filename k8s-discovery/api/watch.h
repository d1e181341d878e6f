/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list-and-watch: the objects of one kind, of one namespace or of all.
 *
 *     initial ─(events, then a bookmark)──▶ the same request goes on as a watch
 *       │ the server knows no such watch              │ ends
 *       ▼                                             ▼
 *     LIST page by page ─▶ WATCH from its version ─▶ WATCH again
 *       ▲                                             │ 410: too old
 *       └──────────── or the initial watch ◀──────────┘
 *
 * A page can be asked for only as long as the server knows how things were at
 * the first: a list that takes longer than that is begun again, in one piece,
 * for a second list in pages would end as the first. The token that the server
 * offers in its place is of another version, and is not used: what was deleted
 * since, and listed before, would stay for good.
 *
 * Every failure leaves what is known as it is, and waits: a server that is out
 * of reach or refuses us is asked again after a thirtieth of the time that it
 * has been so, at least 0.8 s, so that a short outage is over for us when it
 * is over, and a long one costs the server little; one that is overloaded
 * (429, 5xx) after 0.8 s, doubled up to 30 s. Retry-After wins. All plus a
 * quarter at random.
 *
 * Answers are read as they arrive, on the loop of the owner, in pieces of at
 * most what one read of the socket gives.
 */
#ifndef K8S_DISCOVERY_API_WATCH_H
#define K8S_DISCOVERY_API_WATCH_H

#include "abi/log.h"
#include "http/http.h"
#include "k8s-discovery/objects/store.h"

/* Whom to ask. Borrowed by the watch, and outlives it. */
struct api {
	const struct http_config *http;
	struct str server; /* https://host:port, without a slash at the end */
};

/* What to ask for. Strings are borrowed like the api; not yet escaped. */
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
	/* Whether it works has changed; see watch_trouble. */
	void (*state)(void *context);
	/* A request was refused as unauthorized: credentials are to be had anew. */
	void (*unauthorized)(void *context);
};

struct watch;

/* space: as in store.h. NULL: out of memory. */
struct watch *watch_new(const struct watch_owner *owner, const struct api *api, uint32_t space,
			const struct selection *selection);
/* Begins. */
void watch_start(struct watch *w);
/* Ends requests and timers. */
void watch_stop(struct watch *w);
void watch_free(struct watch *w);
/* Asks at once if it is waiting: something has changed that may help. */
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
	uint64_t events[3]; /* by WATCH_… */
};
struct watch_counts watch_counts(const struct watch *w);
void watch_counts_add(struct watch_counts *sum, const struct watch_counts *more);
enum kind watch_kind(const struct watch *w);

#endif
