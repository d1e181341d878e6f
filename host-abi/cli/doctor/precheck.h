/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements of sampling on the machine and on this process, each with its cause and the
 * command that fixes it. `doctor` shows all of them. `record` and `run` check before they start a
 * sampler, since the same refusal from deep inside would be an errno. */
#pragma once

#include <stddef.h>
#include <stdbool.h>

enum point_state {
	POINT_OK,
	POINT_NOTE,    /* sampling works, and something is missing from the result */
	POINT_FAILED,  /* sampling cannot work */
	POINT_UNKNOWN, /* unknown, since a point before it failed */
};

struct point {
	const char *name; /* a word, stable: "capabilities" */
	enum point_state state;
	char text[256]; /* what was found, and what follows from it */
	char fix[192];  /* a command or an action; "" if none is needed */
};

#define PRECHECK_POINTS 12

struct precheck {
	struct point points[PRECHECK_POINTS + 1]; /* and that of runtimes */
	size_t n;
};

/* Checks everything. Opens one perf event and loads two BPF programs, and closes them again. Takes
 * milliseconds. */
void precheck_run(struct precheck *checks);

/* Adds what is said of language runtimes, of which plugins with these names are installed. */
void precheck_add_runtimes(struct precheck *checks, const char *names);

/* The first point that failed, NULL if sampling will work. Points are in the order of causes. */
const struct point *precheck_failure(const struct precheck *checks);

/* For `record` and `run`: prints the first failure with its fix to standard error, or else, with
 * `notes`, what samples and their names lack. `again` is the command line, for "run it as root".
 * Whether it can go ahead. */
bool precheck_announce(const char *verb, bool notes, char **again);
