/* SPDX-License-Identifier: Apache-2.0 */
/* Which of andiron's metrics an agent gets. */
#pragma once

#include "base/str.h"

/* What says how andiron does, and is little: the ledger, health, the cost of a sample, memory. */
bool metric_is_usual(struct str name);

/* Whether it is the pattern, or begins with what stands before a "*" at the pattern's end. */
bool metric_fits(struct str name, struct str pattern);
