/* SPDX-License-Identifier: Apache-2.0 */
/* What discovery.relabel can be told. */
#ifndef RELABEL_OPTIONS_H
#define RELABEL_OPTIONS_H

#include <andiron/option.h>

extern const struct andiron_options relabel_options;

#endif
