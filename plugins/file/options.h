/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of profile.file. */
#ifndef FILE_OPTIONS_H
#define FILE_OPTIONS_H

#include <andiron/option.h>

extern const struct andiron_options file_options;

#endif
