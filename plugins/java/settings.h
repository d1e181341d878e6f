/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of pyroscope.java, checked and copied. Counted: a JVM that is being spoken to on a
 * worker keeps the settings that it began with. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <andiron/host.h>

#include <stdint.h>

struct settings {
	struct arena arena;
	uint64_t references; /* of the loop alone */
	int64_t interval_ns;
	int64_t sample_rate;
	struct str tmp_dir; /* absolute */
	struct str dist;    /* empty: the usual places */
	struct str agent;   /* for async-profiler's `start`, each word with a comma before it */
};

/* Reports what types cannot say. For `validate`. */
void settings_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report);

/* 0 and the settings with one reference; -ENOMEM, or -EINVAL and a text for what settings_check
 * reports. `args` is not needed afterwards. */
int settings_new(const struct andiron_value *args, struct settings **ret, struct error *err);
struct settings *settings_retain(struct settings *s);
/* NULL is accepted. */
void settings_release(struct settings *s);
