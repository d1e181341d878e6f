/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that configure the agent itself and make no node: Alloy's `logging`, `http`, `tracing`,
 * `remotecfg` and `livedebugging`, and ours, `storage`. Each stands once, at the top of a file and
 * without a label, as Alloy has it. What has no effect here is accepted, with a warning that says
 * what is there instead, so that a file of Alloy's loads. */
#pragma once

#include "host/lang/draft.h"

/* Whether the block is one of them; then it was taken, or refused. */
bool settings_block(struct draft *d, const struct scope *scope, const struct stmt *s);

/* Puts the blocks of `http` into status.http, when all blocks are known. */
void settings_serve(struct draft *d);

/* Evaluates them, when all names are known; what they say goes into the plan. */
void settings_bind(struct draft *d, struct plan *plan);
