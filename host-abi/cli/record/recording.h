/* SPDX-License-Identifier: Apache-2.0 */
/* One recording, from the checks of the machine to the files and the exit code. */
#pragma once

#include "cli/record/child.h"
#include "host/config.h"
#include "cli/record/pidfd-set.h"
#include "cli/record/cpu-usage.h"
#include "cli/record/request.h"
#include "cli/session.h"

struct progress {
	bool terminal;
	int64_t started_ns;  /* CLOCK_MONOTONIC */
	int64_t duration_ns; /* 0: open-ended */
};

struct recording {
	/* The caller's to fill in. */
	struct record_request request;
	struct texts plugin_dirs;
	const char *ledger;
	bool verbose;
	struct caller caller;
	/* Its own. */
	struct child child;
	struct registry *registry;
	struct config *config;
	struct session *session;
	struct progress progress;
	struct machine_time before, after;
	struct stat *old_files; /* of each output, as it was */
	char aside[64]; /* folder of a pprof file that is for what is said at the end; "": none */
	char aside_file[96];
	struct ends ends; /* of the command, or of the processes of -p */
	bool live, failed, stopping, signalled;
};

#define RECORDING_NULL                                                                             \
	((struct recording){.request = {.rate_hz = 97}, .child = CHILD_NULL, .ends = ENDS_NULL})

/* Records, and returns the exit code; the request was checked. `again` is the command line, for
 * "run it as root". Once only. */
int recording_run(struct recording *r, char **again);

void recording_fini(struct recording *r);
