/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of targets that are written out in a plan, as producers without a component. On the loop
 * thread. */
#pragma once

#include "host/graph/wiring.h"

/* Makes the lists of a plan, in w; 0 or -ENOMEM. */
int inline_targets_build(struct wiring *w, const struct plan *plan, struct instance *const *nodes);
/* Puts them in place and sends what differs from those before. */
void inline_targets_apply(struct wiring *w);
void inline_targets_free(struct inline_targets *l);
