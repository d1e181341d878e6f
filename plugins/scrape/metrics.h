/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of pyroscope.scrape. */
#pragma once

#include "scrape/scraper.h"

struct andiron_metric_sink;

void metrics_add(const struct scraper_counts *counts, const struct andiron_metric_sink *sink);
