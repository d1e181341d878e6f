/* SPDX-License-Identifier: Apache-2.0 */
/* The table of services that components are given. */
#pragma once

#include <andiron/host.h>

/* Lives as long as the process. An unknown instance is refused or ignored. */
extern const struct andiron_host host_services;
