/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the scraper as metrics. Alloy's component has none of its own. */
#include "scrape/metrics.h"

#include "abi/metrics.h"

#define COUNT(member) ABI_COUNTER(struct scraper_counts, member)
#define GAUGE(member) ABI_GAUGE(struct scraper_counts, member)

void metrics_add(const struct scraper_counts *counts, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_scrape_targets", GAUGE(targets), "Targets that are given."},
		{"andiron_scrape_profiles", GAUGE(jobs), "Profiles that are scraped of them."},
		{"andiron_scrape_profiles_down", GAUGE(down),
		 "Profiles whose last scrape failed; the status of the targets says why."},
		{"andiron_scrape_targets_unusable", GAUGE(faults),
		 "Targets that cannot be asked, for lack of an address for example."},
		{"andiron_scrape_requests_in_flight", GAUGE(in_flight), "Requests under way."},
		{"andiron_scrape_held_bytes", GAUGE(held_bytes),
		 "Bytes of answers that are not sent on yet."},
		{"andiron_scrape_totals_bytes", GAUGE(totals_bytes),
		 "Bytes kept of profiles whose server gives totals."},
		{"andiron_scrape_requests_total", COUNT(scrapes), "Scrapes that were begun."},
		{"andiron_scrape_failures_total", COUNT(failures),
		 "Scrapes that brought no profile."},
		{"andiron_scrape_sent_profiles_total", COUNT(profiles),
		 "Profiles that were sent on."},
		{"andiron_scrape_received_bytes_total", COUNT(bytes), "Bytes of answers."},
		{"andiron_scrape_postponed_total", COUNT(postponed),
		 "Turns in which something was due and too many requests were under way."},
	};

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), counts);
}
