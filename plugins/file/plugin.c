/* SPDX-License-Identifier: Apache-2.0 */
/* profile.file: keeps the profile of the whole run and writes it to files at its end. Until then
 * samples are in flight; with the files they are delivered, or dropped with the reason
 * "write_failed". */
#include "abi/log.h"
#include "abi/value.h"
#include "file/options.h"
#include "file/recording.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

struct file_writer {
	struct abi_context context;
	struct recording *recording;
	uint64_t settled; /* samples that are delivered or dropped already */
	bool written;
};

static int32_t file_validate(const struct andiron_host *host, const struct andiron_value *args,
			     struct andiron_report *report)
{
	const struct andiron_value *paths = value_get(args, "paths");

	if (!paths)
		return 0;
	if (paths->n_items == 0)
		abi_report(host, report, ANDIRON_REPORT_ERROR, paths,
			   "paths is empty: name at least one file to write (" RECORDING_SUFFIXES
			   ")");
	for (uint64_t i = 0; i < paths->n_items; i++) {
		struct str path = abi_str(paths->items[i].string);

		if (!recording_knows(path))
			abi_report(host, report, ANDIRON_REPORT_ERROR, &paths->items[i],
				   "\"%.*s\" has a suffix that is not known: "
				   "use one of " RECORDING_SUFFIXES,
				   STR_FMT(path));
	}
	return 0;
}

static int32_t file_create(const struct andiron_host *host, uint64_t instance,
			   const struct andiron_value *args, void **ret_self,
			   struct andiron_error *err)
{
	struct file_writer *w = calloc(1, sizeof(*w));

	if (w)
		w->recording = file_recording_new(args);
	if (!w || !w->recording) {
		free(w);
		return -ENOMEM;
	}
	w->context = (struct abi_context){host, instance};
	*ret_self = w;
	return 0;
}

static int32_t file_start(void *self, struct andiron_error *err)
{
	struct file_writer *w = self;

	abi_health(&w->context, ANDIRON_HEALTH_HEALTHY, "recording");
	return 0;
}

static void show_in_flight(struct file_writer *w)
{
	w->context.host->ledger_set(w->context.instance, ANDIRON_LEDGER_IN_FLIGHT,
				    recording_samples(w->recording) - w->settled);
}

static void file_batch(void *self, const struct andiron_batch *batch)
{
	struct file_writer *w = self;
	uint64_t full, lost, encoded = recording_n_encoded(w->recording);

	recording_add(w->recording, batch, &full, &lost);
	w->written = false;
	show_in_flight(w);
	if (full) {
		abi_ledger(&w->context, ANDIRON_LEDGER_DROPPED, "file_full", full);
		abi_health(&w->context, ANDIRON_HEALTH_UNHEALTHY,
			   "the profile has reached %zu MB: new stacks are dropped; record for a "
			   "shorter time",
			   RECORDING_MAX_BYTES >> 20);
	}
	if (lost)
		abi_ledger(&w->context, ANDIRON_LEDGER_DROPPED, "file_not_mergeable", lost);
	if (!encoded && recording_n_encoded(w->recording))
		abi_log(&w->context, ANDIRON_LOG_WARN,
			"a profile that was scraped or received was dropped, since the file holds "
			"one profile, of what the sampler takes: forward it to pyroscope.write");
}

/* Writes the files, and settles in the ledger what is new since the last time. */
static void write_files(struct file_writer *w)
{
	uint64_t samples = recording_samples(w->recording) - w->settled;
	struct error error = ERROR_NULL;
	int r;

	if (w->written)
		return;
	w->written = true;
	r = recording_write(w->recording, &error);
	w->settled += samples;
	show_in_flight(w);
	if (r == 0) {
		abi_ledger(&w->context, ANDIRON_LEDGER_DELIVERED, NULL, samples);
		return;
	}
	abi_ledger(&w->context, ANDIRON_LEDGER_DROPPED, "write_failed", samples);
	if (error.code == 0)
		error_set(&error, r, "cannot write the profile: out of memory");
	abi_health(&w->context, ANDIRON_HEALTH_UNHEALTHY, "%s", error.text);
	abi_log(&w->context, ANDIRON_LOG_ERROR, "%s", error.text);
}

static int32_t file_drain(void *self, int64_t deadline_ns)
{
	struct file_writer *w = self;

	write_files(w);
	w->context.host->drained(w->context.instance);
	return 0;
}

static void file_stop(void *self)
{
	struct file_writer *w = self;

	/* Batches may still have come between drain and stop. */
	if (recording_samples(w->recording) > w->settled)
		write_files(w);
}

static void file_destroy(void *self)
{
	struct file_writer *w = self;

	recording_free(w->recording);
	free(w);
}

static const struct andiron_export exports[] = {
	{"receiver", ANDIRON_EXPORT_RECEIVER, 0, "Takes profiles to write."},
};

static const struct andiron_component file_component = {
	.size = sizeof(file_component),
	.flags = ANDIRON_COMPONENT_WRITER | ANDIRON_COMPONENT_WANTS_NAMES,
	.name = "profile.file",
	.summary =
		"Writes the profile of the whole run to files: pprof, folded stacks, flame graph.",
	.options = &file_options,
	.exports = exports,
	.n_exports = 1,
	.validate = file_validate,
	.create = file_create,
	.start = file_start,
	.drain = file_drain,
	.stop = file_stop,
	.destroy = file_destroy,
	.batch = file_batch,
};

ANDIRON_PLUGIN("file", ANDIRON_VERSION, "Apache-2.0", &file_component);
