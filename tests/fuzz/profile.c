/* SPDX-License-Identifier: Apache-2.0 */
/* pprof files, as `report` and `push` read them: every reference of what is decoded is in range.
 * And as writers pass them on: a look over a file sees what is decoded, which can be written in
 * parts. */
#include "fuzz.h"

#include "base/check.h"
#include "pprof/decode.h"
#include "pprof/scan.h"
#include "pprof/split.h"

#include <errno.h>

#define SCAN_MAX ((size_t)64 << 20)

static int read_part(void *context, struct str pprof, size_t raw)
{
	struct pprof_scan scan;
	struct profile *part;

	check(pprof_scan(pprof, SCAN_MAX, &scan, NULL) == 0 && scan.raw_bytes == raw);
	check(profile_decode(pprof, &part, NULL) == 0 && part->n_samples == scan.n_samples);
	profile_free(part);
	return 0;
}

static void write_parts(const struct profile *p)
{
	const struct pprof_split split = {
		.max_samples = 7, .max_raw = 1 << 20, .level = 1, .part = read_part};
	int r = pprof_write_parts(p, &split);

	check(r == 0 || r == -E2BIG || r == -ENOMEM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str bytes = {(const char *)data, n};
	struct pprof_scan scan = {0};
	struct profile *p;
	int seen = pprof_scan(bytes, SCAN_MAX, &scan, NULL);

	if (profile_decode(bytes, &p, NULL) < 0)
		return 0;
	check(seen < 0 || (scan.n_samples == p->n_samples && scan.n_types == p->n_types));
	if (seen == 0 && p->n_samples < 1000)
		write_parts(p);
	for (size_t i = 0; i < p->n_frames; i++)
		check(p->frames[i] > 0 && p->frames[i] < p->n_locations);
	for (size_t i = 1; i < p->n_locations; i++) {
		const struct profile_location *l = &p->locations[i];

		check(l->mapping < p->n_mappings && l->line_start + l->n_lines <= p->n_lines);
	}
	for (size_t i = 0; i < p->n_lines; i++)
		check(p->lines[i].function < p->n_functions);
	check(p->n_values == p->n_samples * p->n_types && p->default_type < p->n_types);
	profile_free(p);
	return 0;
}
