/* SPDX-License-Identifier: Apache-2.0 */
/* What discovery.process can be told. */
#pragma once

#include "process/discovery.h"

#include <andiron/option.h>
#include <andiron/value.h>

extern const struct andiron_options process_options;

/* The arguments as the engine takes them. */
struct discovery_config options_config(const struct andiron_value *args);
