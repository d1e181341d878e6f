/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.status/1 (andiron/status.h) as a service of the host. */
#pragma once

#include <andiron/status.h>

/* Its `self` is the struct host. */
extern const struct andiron_status status_service;
