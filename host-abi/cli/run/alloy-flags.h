/* SPDX-License-Identifier: Apache-2.0 */
/* What flags of Alloy's `run` (its 1.x line) mean here, so that a unit file or a DaemonSet that was
 * written for it starts andiron. Those with a counterpart are obeyed; the others are accepted, and
 * the log says once why they change nothing. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/options.h"
#include "host/diag.h"
#include "host/report/log.h"

#define ALLOY_FLAGS_TEXTS 2

struct alloy_flags {
	const char *listen;  /* --server.http.listen-addr; NULL: not given */
	const char *storage; /* --storage.path, likewise */
	const char *format;  /* --config.format, likewise */
	struct texts noted;  /* the names of those without a counterpart, as given */
	/* What alloy_flags_config makes; each is called by its flag, and may be empty. */
	struct buf texts[ALLOY_FLAGS_TEXTS];
	struct source sources[ALLOY_FLAGS_TEXTS];
};

void alloy_flags_fini(struct alloy_flags *flags);

/* Makes the configuration that the flags stand for: 0, or a negative errno and why the command line
 * is wrong. */
int alloy_flags_config(struct alloy_flags *flags, struct error *err);

/* Says which flags change nothing here, and why: a line for each reason. */
void alloy_flags_say(const struct alloy_flags *flags, struct log *log);
