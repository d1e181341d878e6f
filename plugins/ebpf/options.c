/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. Every argument that Alloy's component has, or once had, so that its files load;
 * names, types and defaults are Alloy's. */
#include "ebpf/options.h"

#include "abi/log.h"
#include "abi/option.h"
#include "abi/value.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const demangle_words[] = {"none", "simplified", "templates", "full", NULL};
static const char *const comm_words[] = {"none", "label", "stackframe", "both", NULL};

#define MAX_RATE 999 /* samples per second and CPU */

#define IGNORED(type_, name_, default_, ...)                                                       \
	OPTION(type_, name_, default_, __VA_ARGS__, .flags = ANDIRON_OPTION_IGNORED)
#define FRAMES(name_, language)                                                                    \
	IGNORED(BOOL, name_, "false", "Unwind " language " frames.",                               \
		.effect = language " frames are not unwound by this version")
#define RUNTIME(name_, language)                                                                   \
	OPTION(BOOL, name_, "true",                                                                \
	       "Show " language                                                                    \
	       " frames by their own names, where a plugin for them is installed.")
#define DEAD(type_, name_, default_)                                                               \
	IGNORED(type_, name_, default_, "Has no effect since Alloy 1.11.", .until = "Alloy 1.11")

static const struct andiron_option debug_info_items[] = {
	IGNORED(BOOL, "on_target_symbolization", "true", "Name frames on this machine."),
	IGNORED(BOOL, "upload", "false", "Upload debug information.",
		.effect = "debug information is not uploaded by this version"),
	IGNORED(BOOL, "strip_text_section", "false", "Leave code out of uploads."),
	IGNORED(INT, "cache_size", "262144", "Uploads remembered."),
	IGNORED(INT, "queue_size", "256", "Uploads waiting."),
	IGNORED(INT, "worker_num", "16", "Uploads at once."),
};

static const struct andiron_options debug_info = ANDIRON_OPTIONS(debug_info_items);

static const struct andiron_option items[] = {
	OPTION(RECEIVERS, "forward_to", NULL, "Where the profiles go.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(TARGETS, "targets", NULL,
	       "What to profile: targets with __process_pid__ or a container id."),
	OPTION(BOOL, "targets_only", "true",
	       "Profile the targets only; false profiles everything else as default_target."),
	OPTION(MAP, "default_target", NULL,
	       "Labels of what belongs to no target, with targets_only = false.",
	       .flags = ANDIRON_OPTION_LENIENT),
	OPTION(INT, "sample_rate", "19", "Samples per second and CPU; at most 999.", .min = 1,
	       .max = INT64_MAX),
	OPTION(DURATION, "collect_interval", "\"15s\"",
	       "Time covered by one profile; less where some 40,000 samples come in that time.",
	       .min = NS_PER_SEC, .max = 3600 * NS_PER_SEC),
	OPTION(STRING, "demangle", "\"none\"", "How C++ and Rust names are shown.",
	       .choices = demangle_words),
	OPTION(STRING, "comm", "\"none\"",
	       "The thread's name, as a label of samples, as their outermost frame, or both.",
	       .choices = comm_words),
	OPTION(BOOL, "pid_label", "false", "Process id and name as labels of samples."),
	OPTION(BOOL, "thread_label", "false",
	       "Thread id as a label of samples (OTLP's thread.id). Each thread has its own rows."),
	OPTION(BOOL, "kernel_frames", "true", "Include the kernel's part of a stack."),
	OPTION(BOOL, "lazy_mode", "false",
	       "Load the BPF programs only when there is a first target."),
	OPTION(FLOAT, "off_cpu_threshold", "0",
	       "Waits (off-CPU time) that are sampled, as a share of all, 0 to 1. Their profile is "
	       "off_cpu, in nanoseconds. 0: none, at no cost."),
	OPTION(BOOL, "follow", "false",
	       "Descendants of a target's process belong to it, from their fork on.",
	       .since = "0.1"),
	OPTION(STRINGS, "runtimes", NULL,
	       "Language runtimes whose frames are shown, by name, each by a plugin of its own; "
	       "all that are installed, if it is not given.",
	       .since = "0.1"),
	RUNTIME("python_enabled", "Python"),
	FRAMES("perl_enabled", "Perl"),
	FRAMES("php_enabled", "PHP"),
	RUNTIME("hotspot_enabled", "Java"),
	FRAMES("ruby_enabled", "Ruby"),
	RUNTIME("v8_enabled", "JavaScript"),
	FRAMES("dotnet_enabled", ".NET"),
	IGNORED(BOOL, "go_enabled", "true", "Unwind Go frames."),
	IGNORED(BOOL, "load_probe", "false", "Load the generic probe.",
		.effect = "probes are not offered by this version"),
	IGNORED(STRINGS, "u_probe_links", NULL, "User probes to attach.",
		.effect = "probes are not offered by this version"),
	IGNORED(STRINGS, "probe_links", NULL, "Probes to attach.",
		.effect = "probes are not offered by this version"),
	IGNORED(BOOL, "verbose_mode", "false", "Verbose BPF programs."),
	IGNORED(BOOL, "no_kernel_version_check", "false", "Try on any kernel.",
		.effect = "kernels before 5.10 are refused"),
	IGNORED(STRING, "bpf_fs_root", "\"/sys/fs/bpf/\"", "Where maps are pinned."),
	IGNORED(BOOL, "obi_process_context_enabled", "true", "Read trace ids of OBI."),
	IGNORED(STRING, "symb_cache_path", "\"/tmp/symb-cache\"", "Symbol tables on disk."),
	IGNORED(INT, "symb_cache_size", "2048", "Symbol tables kept."),
	IGNORED(BOOL, "reporter_unsymbolized_stubs", "false",
		"Name unknown frames by file and address.",
		.effect = "frames without a symbol keep their address and get no made-up name"),
	IGNORED(BLOCK, "debug_info", NULL, "Upload of debug information.", .block = &debug_info),
	DEAD(INT, "pid_cache_size", "32"),
	DEAD(INT, "build_id_cache_size", "64"),
	DEAD(INT, "same_file_cache_size", "8"),
	DEAD(INT, "container_id_cache_size", "1024"),
	DEAD(INT, "cache_rounds", "3"),
	DEAD(INT, "symbols_map_size", "2048"),
	DEAD(INT, "pid_map_size", "16384"),
	DEAD(BOOL, "go_table_fallback", "false"),
	IGNORED(BOOL, "collect_user_profile", "true", "Include user frames.",
		.effect = "user frames are always included"),
	IGNORED(BOOL, "collect_kernel_profile", "true", "Include kernel frames.",
		.effect = "kernel frames are included as kernel_frames says"),
};

const struct andiron_options ebpf_options = ANDIRON_OPTIONS(items);

static uint32_t word_index(const char *const *words, struct str word)
{
	for (uint32_t i = 0; words[i]; i++)
		if (str_is(word, words[i]))
			return i;
	return 0;
}

int ebpf_options_read_labels(struct ebpf_options *o, const struct andiron_value *map)
{
	struct target_label *labels;

	if (!map || map->kind != ANDIRON_VALUE_MAP)
		return 0;
	labels = arena_array(&o->arena, struct target_label, map->n_items + 1);
	if (!labels)
		return -ENOMEM;
	for (uint64_t i = 0; i < map->n_items; i++) {
		if (map->items[i].kind != ANDIRON_VALUE_STRING)
			continue;
		labels[o->n_default_target].name = arena_str(&o->arena, abi_str(map->keys[i]));
		labels[o->n_default_target].value =
			arena_str(&o->arena, abi_str(map->items[i].string));
		if (!labels[o->n_default_target].name.p || !labels[o->n_default_target].value.p)
			return -ENOMEM;
		o->n_default_target++;
	}
	o->default_target = labels;
	return 0;
}

static bool is_runtime_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
		    s.p[i] != '-')
			return false;
	return s.n > 0 && s.n <= RUNTIME_NAME_MAX;
}

static bool is_repeated(const struct andiron_value *list, uint64_t i)
{
	for (uint64_t j = 0; j < i; j++)
		if (str_eq(abi_str(list->items[j].string), abi_str(list->items[i].string)))
			return true;
	return false;
}

bool ebpf_options_same_runtimes(const struct ebpf_options *a, const struct ebpf_options *b)
{
	for (size_t i = 0; i < a->n_runtimes && i < b->n_runtimes; i++)
		if (strcmp(a->runtimes[i].name, b->runtimes[i].name) != 0)
			return false;
	return a->n_runtimes == b->n_runtimes;
}

static void check_runtimes(const struct andiron_host *host, struct andiron_report *report,
			   const struct andiron_value *list)
{
	if (list->n_items > RUNTIMES_MAX)
		abi_report(host, report, ANDIRON_REPORT_ERROR, list,
			   "there is room for %u runtimes, not for %llu", RUNTIMES_MAX,
			   (unsigned long long)list->n_items);
	for (uint64_t i = 0; i < list->n_items; i++) {
		const struct andiron_value *v = &list->items[i];

		if (!is_runtime_name(abi_str(v->string)))
			abi_report(host, report, ANDIRON_REPORT_ERROR, v,
				   "a runtime's name is at most %d lower-case letters, "
				   "digits and '-'",
				   RUNTIME_NAME_MAX);
		else if (is_repeated(list, i))
			abi_report(host, report, ANDIRON_REPORT_ERROR, v,
				   "the runtime \"%.*s\" is named twice", (int)v->string.len,
				   v->string.ptr);
	}
}

/* Alloy's names for runtimes. */
static const struct runtime_switch {
	const char *option, *runtime;
} switches[] = {{"python_enabled", "python"}, {"hotspot_enabled", "jvm"}, {"v8_enabled", "v8"}};

static void read_switches(struct ebpf_options *o, const struct andiron_value *args)
{
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		const struct andiron_value *v = value_get(args, switches[i].option);

		if (!value_bool(args, switches[i].option, true))
			o->runtimes_off |= 1u << i;
		else if (v && !(v->flags & ANDIRON_VALUE_DEFAULTED))
			o->runtimes_on |= 1u << i;
	}
}

static bool is_off(const struct ebpf_options *o, struct str name)
{
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		if (str_is(name, switches[i].runtime))
			return o->runtimes_off >> i & 1;
	return false;
}

static void read_runtimes(struct ebpf_options *o, const struct andiron_value *list)
{
	o->runtimes_installed = !list || list->kind != ANDIRON_VALUE_LIST;
	if (o->runtimes_installed)
		return;
	for (uint64_t i = 0; i < list->n_items && o->n_runtimes < RUNTIMES_MAX; i++) {
		struct str name = abi_str(list->items[i].string);

		if (!is_runtime_name(name) || is_repeated(list, i) || is_off(o, name))
			continue; /* as validate, or a switch, says */
		memcpy(o->runtimes[o->n_runtimes++].name, name.p, name.n);
	}
}

/* The name in the id of an extension; empty: it is none of a runtime. */
static struct str runtime_of(const char *id)
{
	struct str name = str_of(id);

	if (!str_starts(name, STR(ANDIRON_RUNTIME_PREFIX)) ||
	    !str_ends(name, STR(ANDIRON_RUNTIME_SUFFIX)))
		return STR_NULL;
	name = str_skip(name, sizeof(ANDIRON_RUNTIME_PREFIX) - 1);
	return str_first(name, name.n - (sizeof(ANDIRON_RUNTIME_SUFFIX) - 1));
}

static void add_installed(void *context, const char *id)
{
	struct ebpf_options *o = context;
	struct str name = runtime_of(id);

	if (is_runtime_name(name) && !is_off(o, name) && o->n_runtimes < RUNTIMES_MAX)
		memcpy(o->runtimes[o->n_runtimes++].name, name.p, name.n);
}

static void note(struct ebpf_options *o, const char *name, const char *effect)
{
	size_t n = strlen(o->notes);
	int r = snprintf(o->notes + n, sizeof(o->notes) - n, "; %s: %s", name, effect);

	if (r < 0 || n + (size_t)r >= sizeof(o->notes))
		o->notes[n] = '\0';
}

/* Switches that were set to true in vain. */
static void note_lacking(struct ebpf_options *o)
{
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		bool found = false;

		for (size_t k = 0; k < o->n_runtimes; k++)
			found |= strcmp(o->runtimes[k].name, switches[i].runtime) == 0;
		if (o->runtimes_on >> i & 1 && !found)
			note(o, switches[i].option, "no installed plugin shows such frames");
	}
}

void ebpf_options_find_runtimes(struct ebpf_options *o, const struct andiron_host *host,
				uint64_t instance)
{
	char id[sizeof(ANDIRON_RUNTIME_PREFIX) + RUNTIME_NAME_MAX + sizeof(ANDIRON_RUNTIME_SUFFIX)];

	if (o->runtimes_installed && ANDIRON_HAS(host, andiron_host, each_extension))
		host->each_extension(instance, ANDIRON_RUNTIME_PREFIX, add_installed, o);
	for (size_t i = 0; i < o->n_runtimes; i++) {
		snprintf(id, sizeof(id), ANDIRON_RUNTIME_PREFIX "%s" ANDIRON_RUNTIME_SUFFIX,
			 o->runtimes[i].name);
		if (host->extension(instance, id, &o->runtimes[i].extension) != 0)
			o->runtimes[i].extension = (struct andiron_extension){0};
	}
	note_lacking(o);
}

/* Of a bool: the default is what is done. */
static bool is_done_anyway(const struct andiron_option *option, const struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_BOOL && option->default_text &&
	       (strcmp(option->default_text, "true") == 0) == (v->integer != 0);
}

/* What was asked for and is not done. */
static void note_ignored(struct ebpf_options *o, const struct andiron_value *args)
{
	for (uint32_t i = 0; i < ebpf_options.count; i++) {
		const struct andiron_option *option = &ebpf_options.items[i];
		const struct andiron_value *v = value_get(args, option->name);

		if (option->effect && v && !(v->flags & ANDIRON_VALUE_DEFAULTED) &&
		    !is_done_anyway(option, v))
			note(o, option->name, option->effect);
	}
}

/* In units of 1 / (2^32 - 1); what is not 0 stays so. Above 1 it is in thousandths. */
static uint32_t share_of(double share)
{
	if (!(share > 0))
		return 0;
	if (share > 1)
		share /= 1000;
	return share >= 1 ? UINT32_MAX : (uint32_t)(share * UINT32_MAX) + 1;
}

/* More is taken, as Alloy does, and warned of. */
static uint32_t rate_of(int64_t rate)
{
	return rate > MAX_RATE ? MAX_RATE : (uint32_t)rate;
}

int ebpf_options_read(struct ebpf_options *o, const struct andiron_value *args)
{
	uint32_t comm = word_index(comm_words, value_str(args, "comm", STR("none")));
	struct ebpf_options read = {
		.interval_ns = value_int(args, "collect_interval", 15 * NS_PER_SEC),
		.rate_hz = rate_of(value_int(args, "sample_rate", 19)),
		.demangle = word_index(demangle_words, value_str(args, "demangle", STR("none"))),
		.targets_only = value_bool(args, "targets_only", true),
		.lazy = value_bool(args, "lazy_mode", false),
		.kernel_frames = value_bool(args, "kernel_frames", true),
		.pid_label = value_bool(args, "pid_label", false),
		.thread_label = value_bool(args, "thread_label", false),
		.comm_label = comm == 1 || comm == 3,
		.comm_frame = comm == 2 || comm == 3,
		.follow = value_bool(args, "follow", false),
		.off_cpu = share_of(value_number(args, "off_cpu_threshold", 0)),
	};
	const struct andiron_value *labels = value_get(args, "default_target");
	int r = ebpf_options_read_labels(&read, labels);

	if (labels && labels->kind != ANDIRON_VALUE_MAP)
		read.targets_only = true; /* as validate says */
	if (r != 0) {
		ebpf_options_fini(&read);
		return r;
	}
	read_switches(&read, args);
	read_runtimes(&read, value_get(args, "runtimes"));
	note_ignored(&read, args);
	*o = read;
	return 0;
}

void ebpf_options_fini(struct ebpf_options *o)
{
	arena_free(&o->arena);
	*o = (struct ebpf_options){0};
}

static void check_default_target(const struct andiron_host *host, struct andiron_report *report,
				 const struct andiron_value *v, bool targets_only)
{
	bool word = v->kind == ANDIRON_VALUE_STRING &&
		    (str_is(abi_str(v->string), "false") || v->string.len == 0);

	if (v->kind == ANDIRON_VALUE_BOOL && v->integer == 0)
		word = true;
	if (v->kind == ANDIRON_VALUE_MAP) {
		for (uint64_t i = 0; i < v->n_items; i++)
			if (v->items[i].kind != ANDIRON_VALUE_STRING)
				abi_report(
					host, report, ANDIRON_REPORT_ERROR, &v->items[i],
					"the value of \"%.*s\" in default_target must be a string",
					(int)v->keys[i].len, v->keys[i].ptr);
		if (targets_only && v->n_items > 0)
			abi_report(host, report, ANDIRON_REPORT_WARNING, v,
				   "default_target is not used while targets_only is true; set "
				   "targets_only = false to profile what belongs to no target");
	} else if (word) {
		abi_report(host, report, ANDIRON_REPORT_WARNING, v,
			   "default_target is a map of labels; this value is "
			   "taken to mean that there is no default target, so "
			   "only targets are profiled; %s",
			   targets_only ? "leave the argument out, nothing changes by that"
					: "say so with targets_only = true and leave it out");
	} else {
		abi_report(host, report, ANDIRON_REPORT_ERROR, v,
			   "default_target must be a map of labels, for example "
			   "{\"service_name\" = \"node\"}");
	}
}

static void check_rate(const struct andiron_host *host, struct andiron_report *report,
		       const struct andiron_value *v, int64_t rate)
{
	if (rate > MAX_RATE)
		abi_report(host, report, ANDIRON_REPORT_WARNING, v,
			   "%d samples per second and CPU are taken, not %lld: that is the most; "
			   "97 rarely show less",
			   MAX_RATE, (long long)rate);
	else if (rate > 250)
		abi_report(host, report, ANDIRON_REPORT_WARNING, v,
			   "%lld samples per second and CPU cost several times "
			   "what 97 do and rarely show more",
			   (long long)rate);
}

int32_t ebpf_options_validate(const struct andiron_host *host, const struct andiron_value *args,
			      struct andiron_report *report)
{
	bool targets_only = value_bool(args, "targets_only", true);
	double off_cpu = value_number(args, "off_cpu_threshold", 0);
	const struct andiron_value *v = value_get(args, "default_target");

	if (v)
		check_default_target(host, report, v, targets_only);
	v = value_get(args, "runtimes");
	if (v)
		check_runtimes(host, report, v);
	v = value_get(args, "off_cpu_threshold");
	if (v && !(off_cpu >= 0))
		abi_report(host, report, ANDIRON_REPORT_ERROR, v,
			   "off_cpu_threshold is the share of waits that are sampled: a number "
			   "from 0 to 1, for example 0.05");
	if (v && off_cpu > 1)
		abi_report(host, report, ANDIRON_REPORT_WARNING, v,
			   "off_cpu_threshold is over 1, so it is taken for thousandths, as "
			   "other profilers once counted; write 0.05 for 50");
	v = value_get(args, "sample_rate");
	if (v)
		check_rate(host, report, v, value_int(args, "sample_rate", 19));
	return 0;
}
