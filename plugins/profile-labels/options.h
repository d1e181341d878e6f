/* SPDX-License-Identifier: Apache-2.0 */
/* What pyroscope.relabel and pyroscope.enrich can be told. */
#pragma once

#include <andiron/option.h>

extern const struct andiron_options profile_relabel_options;
extern const struct andiron_options enrich_arguments;
