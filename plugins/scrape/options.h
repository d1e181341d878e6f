/* SPDX-License-Identifier: Apache-2.0 */
/* What pyroscope.scrape can be told. */
#pragma once

#include <andiron/option.h>

extern const struct andiron_options scrape_options;
