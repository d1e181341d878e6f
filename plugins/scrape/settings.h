/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of pyroscope.scrape, checked and copied. */
#pragma once

#include "client/options.h"

#define SETTINGS_MAX_KINDS 64 /* profiles of one target */

/* What a server gives as totals since its start, by the names of sample types. */
#define TOTALS_NONE  0
#define TOTALS_ALLOC 1 /* alloc_objects, alloc_space */
#define TOTALS_DELAY 2 /* contentions, delay */

/* One profile that every target is asked for. */
struct kind {
	struct str name; /* __name__ */
	struct str path;
	bool timed; /* the request says for how long the target profiles */
	int totals;
};

struct param {
	struct str name, value;
};

struct settings {
	struct arena arena;
	struct client_config client;
	int64_t interval_ns, timeout_ns;
	int64_t seconds; /* that a timed profile takes */
	struct str job_name, scheme, path_prefix;
	const struct param *params; /* sorted by name */
	size_t n_params;
	struct kind kinds[SETTINGS_MAX_KINDS];
	uint32_t n_kinds;
	uint64_t max_bytes; /* of an answer */
};

/* Reports what types cannot say. For `validate`. */
void settings_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report);

/* 0 and the settings, which are freed by settings_free; -ENOMEM, or -EINVAL and a text for what
 * settings_check reports as an error. `args` is not needed afterwards. */
int settings_new(const struct andiron_value *args, struct settings **ret, struct error *err);
void settings_free(struct settings *s);
