/* SPDX-License-Identifier: Apache-2.0 */
/* The targets that rules drop, as andiron.dropped-targets/1 reports them. */
#pragma once

#include "relabel/relabel.h"

#include <andiron/dropped-targets.h>

/* As `each` of the extension. */
int dropped_each(struct relabel *relabel, const struct andiron_targets *targets,
		 const struct andiron_dropped_targets_sink *sink);
