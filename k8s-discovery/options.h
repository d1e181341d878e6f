/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of discovery.kubernetes. */
#ifndef K8S_OPTIONS_H
#define K8S_OPTIONS_H

#include <andiron/option.h>

extern const struct andiron_options kubernetes_options;

#endif
