/* SPDX-License-Identifier: Apache-2.0 */
/* What profile.symbolize can be told. */
#ifndef SYMBOLIZE_OPTIONS_H
#define SYMBOLIZE_OPTIONS_H

#include <andiron/option.h>
#include <andiron/value.h>
#include <stddef.h>

extern const struct andiron_options symbolize_options;

size_t symbolize_cache_bytes(const struct andiron_value *args);

#endif
