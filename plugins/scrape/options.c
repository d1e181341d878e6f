/* SPDX-License-Identifier: Apache-2.0 */
/* Options of pyroscope.scrape: Alloy's names, types and defaults, and a limit of ours. */
#include "scrape/options.h"

#include "client/options.h"

/* A block of profiling_config: whether and where its profile is scraped. */
#define PROFILE(word, enabled_, path_, delta_)                                                     \
	static const struct andiron_option word##_items[] = {                                      \
		OPTION(BOOL, "enabled", enabled_, "Whether this profile is scraped."),             \
		OPTION(STRING, "path", "\"" path_ "\"", "Path of the profile on the target."),     \
		OPTION(BOOL, "delta", delta_,                                                      \
		       "Whether the target profiles for as long as the request says, which is "    \
		       "delta_profiling_duration."),                                               \
	};                                                                                         \
	static const struct andiron_options word##_table = ANDIRON_OPTIONS(word##_items)

PROFILE(memory, "true", "/debug/pprof/allocs", "false");
PROFILE(block, "true", "/debug/pprof/block", "false");
PROFILE(goroutine, "true", "/debug/pprof/goroutine", "false");
PROFILE(mutex, "true", "/debug/pprof/mutex", "false");
PROFILE(process_cpu, "true", "/debug/pprof/profile", "true");
PROFILE(fgprof, "false", "/debug/fgprof", "true");
PROFILE(godeltaprof_memory, "false", "/debug/pprof/delta_heap", "false");
PROFILE(godeltaprof_mutex, "false", "/debug/pprof/delta_mutex", "false");
PROFILE(godeltaprof_block, "false", "/debug/pprof/delta_block", "false");

static const struct andiron_option custom_items[] = {
	OPTION(BOOL, "enabled", NULL, "Whether this profile is scraped.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "path", NULL, "Path of the profile on the target.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(BOOL, "delta", "false",
	       "Whether the target profiles for as long as the request says."),
};
static const struct andiron_options custom_table = ANDIRON_OPTIONS(custom_items);

#define BLOCK_OF(word, doc_) OPTION(BLOCK, "profile." #word, NULL, doc_, .block = &word##_table)

static const struct andiron_option profiling_items[] = {
	OPTION(STRING, "path_prefix", NULL, "What stands before the path of every profile."),
	BLOCK_OF(memory, "Allocations: what was allocated since the last scrape, and what lives."),
	BLOCK_OF(block, "Time that goroutines were blocked since the last scrape."),
	BLOCK_OF(goroutine, "Stacks of all goroutines."),
	BLOCK_OF(mutex, "Time that goroutines waited for locks since the last scrape."),
	BLOCK_OF(process_cpu, "CPU time."),
	BLOCK_OF(fgprof, "CPU time and waiting together, by the Go package fgprof."),
	BLOCK_OF(godeltaprof_memory,
		 "Like profile.memory, for programs that use the Go package godeltaprof."),
	BLOCK_OF(godeltaprof_mutex,
		 "Like profile.mutex, for programs that use the Go package godeltaprof."),
	BLOCK_OF(godeltaprof_block,
		 "Like profile.block, for programs that use the Go package godeltaprof."),
	OPTION(BLOCK, "profile.custom", NULL,
	       "A profile of any kind; the block's label is the profile's name.",
	       .flags = ANDIRON_OPTION_REPEATED | ANDIRON_OPTION_LABELLED, .block = &custom_table),
};
static const struct andiron_options profiling_table = ANDIRON_OPTIONS(profiling_items);

static const struct andiron_option clustering_items[] = {
	OPTION(BOOL, "enabled", NULL, "Whether agents share the targets out among themselves.",
	       .flags = ANDIRON_OPTION_REQUIRED),
};
static const struct andiron_options clustering_table = ANDIRON_OPTIONS(clustering_items);

static const char *const schemes[] = {"http", "https", NULL};

#define DURATION_MAX (INT64_C(86400) * 1000000000)

static const struct andiron_option items[] = {
	OPTION(TARGETS, "targets", NULL, "The targets to scrape; each needs an __address__.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(RECEIVERS, "forward_to", NULL, "Who gets the profiles.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "job_name", NULL, "The label `job` of targets that have none."),
	OPTION(MAP, "params", NULL,
	       "Parameters of every request's URL, each with one value or a list of values.",
	       .flags = ANDIRON_OPTION_LENIENT),
	OPTION(DURATION, "scrape_interval", "\"15s\"", "How often each profile is scraped.",
	       .min = 1000000000, .max = DURATION_MAX),
	OPTION(DURATION, "scrape_timeout", "\"10s\"",
	       "How long an answer may take; where `delta` is set, scrape_interval less one second "
	       "more.",
	       .min = 1, .max = DURATION_MAX),
	OPTION(STRING, "scheme", "\"http\"", "How targets are reached.", .choices = schemes),
	OPTION(DURATION, "delta_profiling_duration", "\"14s\"",
	       "How long a target is to profile where `delta` is set; at most scrape_interval less "
	       "one second, and as long as that if it is not written.",
	       .min = 1, .max = DURATION_MAX),
	OPTION(INT, "body_size_limit", "16777216",
	       "Bytes of an answer that are taken; a larger one is an error of its target.",
	       .min = 1024, .max = 48 << 20),
	OPTION(BLOCK, "profiling_config", NULL, "Which profiles are scraped.",
	       .block = &profiling_table),
	OPTION(BLOCK, "clustering", NULL, "Whether agents share targets out.",
	       .block = &clustering_table),
	CLIENT_OPTIONS,
};

const struct andiron_options scrape_options = ANDIRON_OPTIONS(items);
