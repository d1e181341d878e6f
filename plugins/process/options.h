/* SPDX-License-Identifier: Apache-2.0 */
/* What discovery.process can be told. */
#ifndef PROCESS_OPTIONS_H
#define PROCESS_OPTIONS_H

#include <andiron/option.h>

extern const struct andiron_options process_options;

#endif
