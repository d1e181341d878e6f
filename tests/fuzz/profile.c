/* SPDX-License-Identifier: Apache-2.0 */
/* pprof files, as `report` and `push` read them: every reference of what is decoded is in range. */
#include "fuzz.h"

#include "base/check.h"
#include "pprof/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct profile *p;

	if (profile_decode((struct str){(const char *)data, n}, &p, NULL) < 0)
		return 0;
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
