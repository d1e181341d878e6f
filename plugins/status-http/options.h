/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of status.http. */
#ifndef STATUS_HTTP_OPTIONS_H
#define STATUS_HTTP_OPTIONS_H

#include <andiron/option.h>

extern const struct andiron_options http_options;

#endif
