/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that an agent runs, and how another takes its place: it is read, becomes a plan
 * and is given to the host, all or nothing. What is refused is said, and counted in the host's
 * metrics; what ran goes on. So it does beside a new configuration that would stop something and
 * waits for values: their suppliers begin, and the change is made when the values are there. */
#pragma once

#include "cli/privileges/kept.h"
#include "cli/run/followed-files.h"
#include "host/config.h"
#include "host/host.h"
#include "host/report/log.h"

#include <stdbool.h>

#define RUN_LOG_NAME "andiron" /* what the log calls the command itself */

struct live_config {
	/* Borrowed: what it is made of, and where refusals are said. */
	char *const *paths;
	size_t n_paths;
	struct registry **registry; /* of the plan that runs; a change may put another there */
	const struct kept *kept;    /* what a new plan has to do with */
	struct log *log;
	const struct source *more; /* texts beside them; empty ones are left out */
	size_t n_more;
	const char *log_level, *log_format; /* of the command line; NULL: as the files have it */
	struct followed_files *files;       /* told of each plan */
	/* Its own. */
	struct config *config;  /* of the graph that runs */
	struct config *pending; /* takes its place when values are there that it names, or NULL */
	struct config *refused; /* what was tried last, if that was refused; else NULL */
	struct buf unread;      /* why it could not be read when it was tried last */
	bool refreshing;        /* a plan is made of the texts that run */
	struct buf said;        /* why that was refused last; "" if it was not */
	bool said_again;        /* it was refused for the same, which was not said again */
	struct buf warned;      /* findings about the one that was planned last without errors */
	char finding[400];      /* the first error of the one that was planned last, or "" */
};

void live_config_fini(struct live_config *live);

/* Reads it for the first time, and writes the log as it says from then on: 0 and the plan, or a
 * negative errno after a message on standard error. */
int live_config_begin(struct live_config *live, struct plan **ret);

/* Whether its files can be read now, those of local.file and import.file among them. */
bool live_config_readable(const struct live_config *live);

/* Reads it again, takes up plugin files that were replaced (registry_renew), changes the graph.
 * 0, or a negative errno after a message, whose cause is in `err`, too; -EBUSY and
 * -ETIMEDOUT: a component had no time, so try again; -EINPROGRESS: it waits for values. */
int live_config_reload(struct live_config *live, struct host *host, struct error *err);

/* The same with the plugins that are known, if the files differ from what was tried last. */
int live_config_follow(struct live_config *live, struct host *host);

/* Makes a new plan of the texts that run, for what is in it has changed: content of files, or
 * values that components have supplied. */
int live_config_refresh(struct live_config *live, struct host *host);
