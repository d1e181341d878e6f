/* SPDX-License-Identifier: Apache-2.0 */
/* Options of pyroscope.java: Alloy's names, types and defaults. */
#include "java/options.h"

#include "abi/option.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

static const struct andiron_option profiling_items[] = {
	OPTION(DURATION, "interval", "\"60s\"",
	       "How often a recording is taken from each JVM and a new one begun.",
	       .min = 1000000000, .max = HOUR_NS),
	OPTION(BOOL, "cpu", "true", "Whether CPU time is profiled."),
	OPTION(STRING, "event", "\"itimer\"",
	       "What is sampled where `cpu` is set: itimer, cpu, ctimer, wall, or another event of "
	       "async-profiler."),
	OPTION(INT, "sample_rate", "100", "Samples of CPU time a second.", .min = 1, .max = 10000),
	OPTION(STRING, "alloc", "\"512k\"",
	       "Allocations: one sample in so many bytes; empty: none is profiled."),
	OPTION(BOOL, "tlab", "false",
	       "Whether allocations are sampled by the JVM's own events (TLAB)."),
	OPTION(STRING, "lock", "\"10ms\"",
	       "Contended locks: one sample in so much time of waiting; empty: none is profiled."),
	OPTION(BOOL, "per_thread", "false",
	       "Given to async-profiler; in a JFR recording threads are told apart anyway."),
	OPTION(STRING, "log_level", "\"INFO\"",
	       "What async-profiler writes into its log, which is shown where it refuses: TRACE, "
	       "DEBUG, INFO, WARN, ERROR or NONE."),
	OPTION(BOOL, "quiet", "false",
	       "Whether async-profiler leaves out that it has started and stopped."),
	OPTION(STRINGS, "custom_arguments", "[]",
	       "Flags of asprof's `start`, in place of all others of this block but `interval`."),
};
static const struct andiron_options profiling_table = ANDIRON_OPTIONS(profiling_items);

static const struct andiron_option items[] = {
	OPTION(TARGETS, "targets", NULL, "The JVMs; each target needs a __process_pid__.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(RECEIVERS, "forward_to", NULL, "Who gets the recordings.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "tmp_dir", "\"/tmp\"",
	       "A folder, as the JVM sees it, for its recording and, where it does not see `dist`, "
	       "a copy of async-profiler's library."),
	OPTION(STRING, "dist", NULL,
	       "An unpacked release of async-profiler, or its libasyncProfiler.so; without it, "
	       "/opt/async-profiler, /usr/local/lib and /usr/lib are looked into."),
	OPTION(BLOCK, "profiling_config", NULL, "What is profiled, and how often.",
	       .block = &profiling_table),
};

const struct andiron_options java_options = ANDIRON_OPTIONS(items);
