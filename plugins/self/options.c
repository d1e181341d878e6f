/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. What pyroscope.ebpf has, too, is called as there. */
#include "self/options.h"

#include "abi/log.h"
#include "abi/option.h"
#include "abi/value.h"
#include "base/clock.h"
#include "base/str.h"

#include <errno.h>

static const char *const demangle_words[] = {"none", "simplified", "templates", "full", NULL};

static const struct andiron_option items[] = {
	OPTION(RECEIVERS, "forward_to", NULL, "Where the profiles go.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(MAP, "labels", NULL,
	       "Labels of the profile. Without service_name it is listed by the program's name."),
	OPTION(INT, "sample_rate", "97", "Samples per second of CPU time.", .min = 1, .max = 999),
	OPTION(DURATION, "collect_interval", "\"15s\"", "Time covered by one profile.",
	       .min = NS_PER_SEC, .max = 3600 * NS_PER_SEC),
	OPTION(STRING, "demangle", "\"none\"", "How C++ and Rust names are shown.",
	       .choices = demangle_words),
	OPTION(BOOL, "thread_label", "false",
	       "Thread id as a label of samples (OTLP's thread.id). Each thread has its own rows."),
};

const struct andiron_options self_options = ANDIRON_OPTIONS(items);

/* The program's name, where the labels name no service. */
static int add_service(struct ebpf_options *o)
{
	struct target_label *labels;

	for (size_t i = 0; i < o->n_default_target; i++)
		if (str_is(o->default_target[i].name, "service_name"))
			return 0;
	labels = arena_array(&o->arena, struct target_label, o->n_default_target + 1);
	if (!labels)
		return -ENOMEM;
	for (size_t i = 0; i < o->n_default_target; i++)
		labels[i] = o->default_target[i];
	labels[o->n_default_target++] = (struct target_label){
		STR("service_name"), str_of(program_invocation_short_name)};
	o->default_target = labels;
	return 0;
}

int self_options_read(struct ebpf_options *o, const struct andiron_value *args)
{
	int r = ebpf_options_read(o, args);

	if (r != 0)
		return r;
	o->targets_only = o->kernel_frames = false;
	o->runtimes_installed = false; /* none can be called */
	r = ebpf_options_read_labels(o, value_get(args, "labels"));
	if (r == 0)
		r = add_service(o);
	if (r != 0)
		ebpf_options_fini(o);
	return r;
}

int32_t self_options_validate(const struct andiron_host *host, const struct andiron_value *args,
			      struct andiron_report *report)
{
	const struct andiron_value *labels = value_get(args, "labels"),
				   *rate = value_get(args, "sample_rate");

	if (rate && value_int(args, "sample_rate", 97) > 250)
		abi_report(host, report, ANDIRON_REPORT_WARNING, rate,
			   "each of %lld samples a second copies 15 KB; 97 rarely show less",
			   (long long)rate->integer);
	if (!labels || labels->kind != ANDIRON_VALUE_MAP)
		return 0;
	for (uint64_t i = 0; i < labels->n_items; i++)
		if (labels->items[i].kind != ANDIRON_VALUE_STRING)
			abi_report(host, report, ANDIRON_REPORT_ERROR, &labels->items[i],
				   "the value of \"%.*s\" in labels must be a string",
				   (int)labels->keys[i].len, labels->keys[i].ptr);
	return 0;
}
