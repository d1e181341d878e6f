/* SPDX-License-Identifier: Apache-2.0 */
/* What andiron.dropped/2 says of a relabeling. */
#ifndef RELABEL_DROPPED_H
#define RELABEL_DROPPED_H

#include "relabel/relabel.h"

#include <andiron/dropped.h>

/* As `each` of the extension. */
int dropped_each(struct relabel *relabel, const struct andiron_targets *targets,
		 const struct andiron_dropped_sink *sink);

#endif
