/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of status.http. */
#pragma once

#include <andiron/option.h>

extern const struct andiron_options http_options;
