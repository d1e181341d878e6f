/* SPDX-License-Identifier: Apache-2.0 */
/* What discovery.relabel can be told. */
#pragma once

#include <andiron/option.h>

extern const struct andiron_options relabel_options;
extern const struct andiron_options rule_block; /* for pyroscope.relabel, too */
