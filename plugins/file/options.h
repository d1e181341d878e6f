/* SPDX-License-Identifier: Apache-2.0 */
/* The options of profile.file. */
#pragma once

#include "file/recording.h"

#include <andiron/option.h>
#include <andiron/value.h>

extern const struct andiron_options file_options;

/* The recording that these arguments ask for. NULL when memory is short. */
struct recording *file_recording_new(const struct andiron_value *args);
