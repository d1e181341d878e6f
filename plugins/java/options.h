/* SPDX-License-Identifier: Apache-2.0 */
/* The options of pyroscope.java. */
#pragma once

#include <andiron/option.h>

extern const struct andiron_options java_options;
