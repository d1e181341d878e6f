/* SPDX-License-Identifier: Apache-2.0 */
/* Batches become requests of OTLP, and whoever gives one is told what did not. */
#include "abi/batch-build.h"
#include "agents/fluent-bit/profiles.h"
#include "base/clock.h"
#include "pprof/encode.h"
#include "testing/test.h"

#include <errno.h>

static const struct target_label labels[] = {{{"service_name", 12}, {"shop", 4}}};

static void write_pprof(struct buf *out)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = clock_real(), .duration_ns = 1, .period = 1};
	struct pprof_function function = {.name = pprof_add_string(e, STR("main"))};
	struct pprof_line line = {.function = pprof_add_function(e, &function)};
	struct pprof_location location = {.lines = &line, .n_lines = 1};
	uint32_t at = pprof_add_location(e, &location);
	int64_t value = 1;
	struct pprof_sample sample = {.locations = &at, .n_locations = 1, .values = &value};

	head.period_type = pprof_add_string(e, STR("cpu"));
	head.period_unit = pprof_add_string(e, STR("nanoseconds"));
	pprof_add_type(e, head.period_type, head.period_unit);
	pprof_add_sample(e, &sample);
	expect_eq(pprof_finish(e, &head, 1, out, NULL), 0);
	pprof_encoder_free(e);
}

static int add(struct profiles *p, const struct encoded_profile *profiles, size_t n)
{
	const struct batch_head head = {.start_ns = clock_real(), .end_ns = clock_real()};
	const struct andiron_batch *batch;
	struct times times = times_init(1);
	int r;

	expect_eq(encoded_batch(profiles, n, &head, &batch), 0);
	r = profiles_add(p, &times, batch);
	batch->release(batch->owner);
	return r;
}

/* A batch of which nothing can be said in OTLP is refused; where something can, the rest is
 * counted. */
TEST(what_is_no_pprof_is_not_delivered)
{
	struct buf pprof = BUF_NULL;
	struct encoded_profile all[] = {
		{.format = ANDIRON_ENCODED_JFR, .bytes = STR("FLR")},
		{.format = ANDIRON_ENCODED_PPROF, .bytes = STR("no")},
	};
	struct profiles p = {0};

	for (size_t i = 0; i < 2; i++) {
		all[i].labels = labels;
		all[i].n_labels = 1;
	}
	expect_eq(add(&p, all, 2), -ENOTSUP);
	expect_eq(p.requests.n, 0);
	expect_eq(p.lost[SERIES_FORMAT], 1);
	expect_eq(p.lost[SERIES_MALFORMED], 1);
	profiles_free(&p);
	write_pprof(&pprof);
	all[1].bytes = buf_str(&pprof);
	p = (struct profiles){0};
	expect_eq(add(&p, all, 2), 0);
	expect_eq(p.requests.n, 1);
	expect_eq(p.lost[SERIES_FORMAT], 1);
	profiles_free(&p);
	buf_free(&pprof);
}

/* What is lost on one thread is said once on another. */
TEST(losses_are_handed_over_once)
{
	uint64_t lost[SERIES_N_LOSSES] = {[SERIES_FORMAT] = 2}, taken[SERIES_N_LOSSES];
	struct handover h;

	handover_init(&h);
	handover_lose(&h, lost);
	handover_lose(&h, lost);
	handover_take_lost(&h, taken);
	expect_eq(taken[SERIES_FORMAT], 4);
	handover_take_lost(&h, taken);
	expect_eq(taken[SERIES_FORMAT], 0);
	handover_fini(&h);
}
