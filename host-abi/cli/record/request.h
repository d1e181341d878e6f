/* SPDX-License-Identifier: Apache-2.0 */
/* What `record` was asked to do, and the configuration text that does it. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/options.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record_request {
	struct texts outputs; /* once checked not empty, unless to_stdout */
	bool chose_outputs;   /* none was typed */
	bool to_stdout;       /* -o -: pprof goes there; "-" is not in `outputs` */
	const char *aside;    /* one more file to write, that nobody asked for; NULL: none */
	const char *group_by; /* labels with commas; NULL: as profile.file does by itself */
	struct texts pids;    /* as typed, each a list with commas */
	bool everything;      /* -a */
	uint64_t rate_hz;
	int64_t duration_ns; /* 0: until the command ends */
	char **command;      /* NULL: none */
};

/* Fills in what was left out, and refuses what makes no sense or could not be written at the end.
 * 0, or -EINVAL and text. */
int record_check(struct record_request *request, struct error *err);

/* Calls fn for each process id of -p, until it returns non-zero; -EINVAL and text for what is none.
 */
int record_each_pid(const struct record_request *request,
		    int (*fn)(void *context, pid_t pid, struct error *err), void *context,
		    struct error *err);

/* One of them: whether there is such a process. */
int record_check_pid(void *n_checked, pid_t pid, struct error *err);

/* The configuration; `command` is the process id of the command, 0 without one. 0 or a negative
 * errno with text. */
int record_config(const struct record_request *request, pid_t command, struct buf *out,
		  struct error *err);
