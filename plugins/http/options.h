/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of status.http. */
#ifndef HTTP_PLUGIN_OPTIONS_H
#define HTTP_PLUGIN_OPTIONS_H

#include <andiron/option.h>

extern const struct andiron_options http_options;

#endif
