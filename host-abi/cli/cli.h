/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the command. */
#pragma once

#include "cli/options.h"

extern const struct command verb_convert, verb_debuginfo, verb_diff, verb_doctor, verb_fmt,
	verb_inspect, verb_new_plugin, verb_plugins, verb_push, verb_record, verb_reload,
	verb_report, verb_run, verb_tables, verb_targets, verb_top, verb_validate,
	verb_validate_plugin, verb_wait, verb_worker;

/* All of them, up to NULL. */
extern const struct command *const commands[];
