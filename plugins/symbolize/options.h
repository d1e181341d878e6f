/* SPDX-License-Identifier: Apache-2.0 */
/* What profile.symbolize can be told, and what it counts. */
#pragma once

#include "symbolize/debuginfod/fetch.h"
#include "symbolize/symbolizer.h"

#include <andiron/component.h>
#include <andiron/option.h>
#include <andiron/value.h>

extern const struct andiron_options symbolize_options;

struct symbolizer_settings symbolize_settings(const struct andiron_value *args);

/* Tells the fetcher which servers there are. 0 or -ENOMEM. */
int symbolize_fetch(const struct andiron_value *args, struct fetch *f);

/* Adds the metrics. */
void symbolize_count(const struct symbolizer *s, uint64_t unnamed_batches,
		     const struct andiron_metric_sink *sink);
