/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of the command line, read and merged into one. What each of them said of its time is
 * kept, since periods and windows may differ from file to file. */
#pragma once

#include "base/vec.h"
#include "cli/cli.h"
#include "pprof/decode.h"

#include <stdbool.h>

struct input_file {
	const char *name; /* borrowed */
	int64_t time_ns, duration_ns;
	int64_t cpu_ns; /* if it is_cpu */
	bool is_cpu;
};

struct input {
	struct profile *p;
	VEC(struct input_file) files;
	int64_t cpu_ns; /* of all, each by its own period */
	bool is_cpu;    /* all are CPU profiles */
};

#define INPUT_NULL ((struct input){0})

/* OPTIONS_DONE, or what options_wrong gives where standard input, "-", is to be read twice. */
int input_check(const struct command *command, const char *const *paths, size_t n);
/* What a file is called. */
const char *input_name(const char *path);

/* Reads n > 0 files; "-" is standard input. False: why not is on standard error, as one line of
 * "andiron VERB", and there is nothing to free. Negative durations become 0. O(size of all). */
bool input_read(struct input *in, const char *verb, const char *const *paths, size_t n);
void input_fini(struct input *in);
