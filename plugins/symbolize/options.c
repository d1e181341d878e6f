/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of profile.symbolize, and its metrics. */
#include "symbolize/options.h"

#include "abi/metrics.h"
#include "abi/option.h"
#include "abi/value.h"

#include <stdlib.h>

#define CACHE_BYTES_DEFAULT      INT64_C(33554432)
#define FILE_STEPS_DEFAULT       INT64_C(134217728)
#define DEBUGINFOD_MAX_DEFAULT   INT64_C(268435456)
#define DEBUGINFOD_CACHE_DEFAULT INT64_C(4294967296)
#define COUNTER(member)          ABI_COUNTER(struct symbolizer, member)

static const struct andiron_option options[] = {
	OPTION(RECEIVERS, "forward_to", NULL, "Where profiles go once their frames have names.",
	       .flags = ANDIRON_OPTION_REQUIRED, .since = "0.1"),
	OPTION(INT, "cache_bytes", "33554432",
	       "How much memory names may take between batches, in bytes, and how much symbol "
	       "tables and debug information. The file used least recently is forgotten first. "
	       "The kernel's list comes on top.",
	       .min = 1 << 20, .max = INT64_C(1) << 36, .since = "0.1"),
	OPTION(INT, "file_bytes", NULL,
	       "How much of that, in bytes, the symbol tables and the debug information of one "
	       "file may take; without it, or where it is more, cache_bytes. A file whose symbol "
	       "table is larger gives no names, one whose debug information is gives those parts "
	       "that fit.",
	       .min = 1 << 20, .max = INT64_C(1) << 36, .since = "0.1"),
	OPTION(INT, "file_steps", "134217728",
	       "How many entries and line instructions of one file's debug information may be "
	       "gone through for a batch: the default is three or four seconds of CPU time. A "
	       "file that takes more gives names by its symbols only from then on.",
	       .min = 1 << 10, .max = INT64_C(1) << 29, .since = "0.1"),
	OPTION(BOOL, "lines", "true",
	       "Whether frames get source files and lines, from debug information and from Go's "
	       "own tables.",
	       .since = "0.1"),
	OPTION(BOOL, "debuginfod", "false",
	       "Whether debug files that are not here are fetched from debuginfod servers, into "
	       "the folder that elfutils' client uses too.",
	       .since = "0.1"),
	OPTION(STRING, "debuginfod_urls", NULL,
	       "The servers, separated by spaces, instead of those in the environment's "
	       "DEBUGINFOD_URLS.",
	       .since = "0.1"),
	OPTION(STRING, "debuginfod_cache_path", NULL,
	       "Where fetched files are kept, instead of $HOME/.cache/debuginfod_client.",
	       .since = "0.1"),
	OPTION(INT, "debuginfod_max_bytes", "268435456",
	       "How large a debug file may be that is fetched whole. Of a larger one only symbols "
	       "and lines are fetched, without inlined calls, where the server gives sections; "
	       "each of those may be as large.",
	       .min = 1, .max = INT64_C(1) << 40, .since = "0.1"),
	OPTION(INT, "debuginfod_cache_bytes", "4294967296",
	       "How much is kept on disk; what was used least recently is removed first, and what "
	       "nobody used in a week. 0: only the latter.",
	       .max = INT64_C(1) << 50, .since = "0.1"),
	OPTION(BOOL, "inlines", "true",
	       "Whether calls that the compiler has inlined become frames.", .since = "0.1"),
};

const struct andiron_options symbolize_options = ANDIRON_OPTIONS(options);

int symbolize_fetch(const struct andiron_value *args, struct fetch *f)
{
	struct fetch_settings settings = {
		.urls = value_str(args, "debuginfod_urls", str_of(getenv("DEBUGINFOD_URLS"))),
		.cache = value_str(args, "debuginfod_cache_path", STR_NULL),
		.max_bytes =
			(uint64_t)value_int(args, "debuginfod_max_bytes", DEBUGINFOD_MAX_DEFAULT),
		.cache_bytes = (uint64_t)value_int(args, "debuginfod_cache_bytes",
						   DEBUGINFOD_CACHE_DEFAULT),
		.lines_only = !value_bool(args, "inlines", true),
	};

	if (!value_bool(args, "debuginfod", false))
		settings.urls = STR_NULL;
	return fetch_set(f, &settings);
}

struct symbolizer_settings symbolize_settings(const struct andiron_value *args)
{
	int64_t cache_bytes = value_int(args, "cache_bytes", CACHE_BYTES_DEFAULT);
	int64_t file_bytes = value_int(args, "file_bytes", cache_bytes);

	return (struct symbolizer_settings){
		.cache_bytes = (size_t)cache_bytes,
		.file_bytes = (size_t)(file_bytes < cache_bytes ? file_bytes : cache_bytes),
		.file_steps = (uint64_t)value_int(args, "file_steps", FILE_STEPS_DEFAULT),
		.lines = value_bool(args, "lines", true),
		.inlines = value_bool(args, "inlines", true),
	};
}

void symbolize_count(const struct symbolizer *s, uint64_t unnamed_batches,
		     const struct andiron_metric_sink *sink)
{
	static const char *const sources[FROM_COUNT] = {"symtab", "debug", "dynsym", "minidebug",
							"go",     "dwarf", "jit",    "kernel"};
	static const char *const reasons[WHY_COUNT] = {"no_object", "unavailable",   "broken",
						       "no_symbol", "kernel_hidden", "opted_out"};
	static const char *const asides[ASIDE_COUNT] = {"broken", "crash", "time", "memory"};
	static const struct abi_metric_row rows[] = {
		{"andiron_symbolize_lines_total", COUNTER(totals.lines),
		 "Frames that got a source line."},
		{"andiron_symbolize_inlined_total", COUNTER(totals.inlined),
		 "Inlined calls that became frames."},
		{"andiron_symbolize_fetched_total", COUNTER(totals.fetched),
		 "Debug files of debuginfod servers that came into use."},
		{"andiron_symbolize_crashes_total", COUNTER(totals.crashes),
		 "How often the process that reads files died."},
		{"andiron_symbolize_kallsyms_reads_total", COUNTER(kernel.reads),
		 "How often the list of kernel symbols was read."},
		{"andiron_symbolize_cache_bytes", ABI_GAUGE(struct symbolizer, cache.bytes),
		 "Remembered names, without the kernel's."},
	};

	abi_metric_family(sink,
			  (struct abi_metric){"andiron_symbolize_frames_resolved_total",
					      "Frames that got a name, by its source."},
			  "source", sources, s->totals.resolved, FROM_COUNT);
	abi_metric_family(sink,
			  (struct abi_metric){"andiron_symbolize_frames_unresolved_total",
					      "Frames that got no name, by the reason."},
			  "reason", reasons, s->totals.unresolved, WHY_COUNT);
	abi_metric_family(
		sink,
		(struct abi_metric){
			"andiron_symbolize_files_set_aside_total",
			"Files that give no names (broken, crash), or not all (time, memory: "
			"beyond file_steps, file_bytes), by the reason."},
		"reason", asides, s->totals.set_aside, ASIDE_COUNT);
	abi_metrics(sink, rows, sizeof(rows) / sizeof(rows[0]), s);
	abi_metric(sink, &(struct abi_metric){"andiron_symbolize_unnamed_batches_total",
					      "Batches that went on without names.",
					      (double)unnamed_batches});
	abi_metric(sink, &(struct abi_metric){"andiron_symbolize_kernel_bytes",
					      "Memory of the kernel's names.",
					      (double)kernel_bytes(&s->kernel), true});
}
