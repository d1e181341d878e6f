/* SPDX-License-Identifier: Apache-2.0 */
/* A program that embeds andiron: it loads the library by dlopen, as RTLD_LOCAL, and has components
 * of its own: test.producer sends batches of TEST_SAMPLES samples at its start. */
#pragma once

#include "testing/test.h"

#include <andiron/embed.h>

#include <signal.h>
#include <stdatomic.h>

#define TEST_SAMPLES  10
#define TEST_FUNCTION "the_function_of_the_test"

/* The library's functions. */
struct library {
	const char *(*version)(void);
	int32_t (*open)(const struct andiron_embed *, struct andiron **, char **);
	int32_t (*close)(struct andiron *);
	int32_t (*provide)(struct andiron *, const struct andiron_plugin *, char **);
	int32_t (*on_profiles)(struct andiron *, const char *, uint32_t, andiron_profile_fn, void *,
			       char **);
	int32_t (*on_targets)(struct andiron *, const char *, andiron_targets_fn, void *, char **);
	int32_t (*load)(struct andiron *, const char *, const char *, uint64_t, char **);
	int32_t (*load_file)(struct andiron *, const char *, char **);
	int32_t (*start)(struct andiron *, char **);
	int32_t (*stop)(struct andiron *, int64_t, char **);
	int32_t (*read)(struct andiron *, uint32_t, char **);
	void (*text_free)(char *);
};
extern struct library lib;

/* Loads the library that TEST_LIBRARY names; skips the test where it is not set. */
void library_load(void);

/* The program's own plugin, and whether its producers never say that they have drained. */
extern const struct andiron_plugin agent_plugin;
extern atomic_bool agent_never_drains;

/* What a producer sends as a profile of somebody else's encoding, too; NULL: nothing. */
extern const char *agent_encoded;

/* How many batches a producer sends, usually 1; how often producers called the library for one. */
extern int agent_batches;
extern atomic_int agent_calls;

/* Whether instances get a function for their log, and how often it got the line of a producer. */
extern bool agent_logs;
extern atomic_int agent_lines;

/* Opens an instance with plugins of TEST_PLUGINS and the program's own. */
struct andiron *agent_open(void);
/* Loads a text, expects the result, and gives its findings, to be given back. */
char *agent_load(struct andiron *a, const char *text, int expected);
/* Expects 0, and shows the text where it is not. */
void agent_ok(int result, char *text);

/* What a library could change about the process that loads it. */
struct process {
	int fds, threads, mappings;
	sigset_t mask;
	struct sigaction actions[65];
	char directory[4096], locale[256];
	size_t environment;
};

void process_look(struct process *p);
/* All but the mappings, of which allocators keep some. */
void process_expect_same(const struct process *before, const struct process *after);
