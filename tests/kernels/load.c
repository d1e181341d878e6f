/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the sampler and says what that took on this kernel, as a line of JSON:
 *
 *     seconds        from opening the object to sampling on all CPUs
 *     verified       instructions that the verifier walked; 0 where the kernel
 *                    does not tell (before 5.16)
 *     map_bytes, cpus
 *
 * Follows descendants, so that all programs are loaded. */
#include "ebpf/engine.h"
#include "host/objects/objects.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>

static void ignore_batch(void *context, const struct andiron_batch *batch)
{
}

static void ignore_counts(void *context, const struct engine_counts *counts)
{
}

static void say(void *context, uint32_t level, const char *text)
{
	fprintf(stderr, "load: %s\n", text);
}

static int load(const struct andiron_extension *objects)
{
	struct ebpf_options options = {.rate_hz = 97,
				       .interval_ns = 15 * NS_PER_SEC,
				       .kernel_frames = true,
				       .follow = true};
	struct engine_out out = {NULL, ignore_batch, ignore_counts, say};
	int64_t began = clock_mono();
	struct engine_stats stats;
	struct error err = ERROR_NULL;
	struct engine *engine;
	int r = engine_new(1, &options, objects, &out, &engine);

	if (r != 0)
		return r;
	r = engine_start(engine, &err);
	engine_get_stats(engine, &stats);
	if (r != 0)
		fprintf(stderr, "load: %s\n", err.text);
	else
		printf("{\"seconds\": %.3f, \"verified\": %" PRIu64 ", \"map_bytes\": %" PRIu64
		       ", \"cpus\": %" PRIu32 "}\n",
		       (double)(clock_mono() - began) / NS_PER_SEC,
		       (uint64_t)stats.session.verified_insns, (uint64_t)stats.session.map_bytes,
		       stats.session.n_cpus);
	engine_free(engine);
	return r;
}

int main(void)
{
	struct objects *objects;
	struct andiron_extension extension;
	struct error err = ERROR_NULL;
	int r = objects_new(&objects, &err);

	if (r != 0) {
		fprintf(stderr, "load: %s\n", err.text);
		return 1;
	}
	extension = (struct andiron_extension){&objects_service, objects};
	r = load(&extension);
	objects_free(objects);
	return r != 0;
}
