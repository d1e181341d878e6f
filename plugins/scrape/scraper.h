/* SPDX-License-Identifier: Apache-2.0 */
/* The scraper: thousands of targets, each asked for its profiles once in an interval, over one
 * client. A target's hash gives it its place in the interval, so requests spread evenly.
 *
 * Answers are judged on a worker, all that came within some milliseconds at a time, and sent on in
 * one batch. Bounded are requests under way, bytes of one answer and of all, and the time of a
 * request. What does not fit waits and is counted. */
#pragma once

#include "abi/log.h"
#include "abi/target-list.h"
#include "scrape/settings.h"

struct client_loop;
struct scraper;

struct scraper_counts {
	uint64_t targets, jobs, down, faults; /* now; faults: targets that cannot be asked */
	uint64_t in_flight, held_bytes, totals_bytes;
	uint64_t scrapes, failures, profiles, bytes, postponed; /* since the start */
};

/* Takes the settings over, also on failure. */
int scraper_new(const struct abi_context *context, struct settings *settings,
		struct scraper **ret);
void scraper_free(struct scraper *s);

int scraper_start(struct scraper *s, struct error *err);
/* No requests and no timer from then on. Idempotent. */
void scraper_stop(struct scraper *s);
/* Begins no more; host->drained when what has been answered is sent on. */
void scraper_drain(struct scraper *s);

/* New settings, taken over. What is asked as before goes on, requests under way included. */
void scraper_update(struct scraper *s, struct settings *settings);
void scraper_targets(struct scraper *s, const struct andiron_targets *update);

struct scraper_counts scraper_counts(const struct scraper *s);
/* NULL: it is not started. */
const struct client_loop *scraper_loop(const struct scraper *s);

/* A target as people see it: `why` says what is wrong with it, NULL: nothing. */
typedef void (*scraper_target_fn)(void *context, const struct target_row *row, const char *why);
/* 0 or -ENOMEM. O(n log n) */
int scraper_each(struct scraper *s, scraper_target_fn fn, void *context);
