/* SPDX-License-Identifier: Apache-2.0 */
/* The options of this plugin's components, which are Alloy's, and what types do not say of them. */
#pragma once

#include <andiron/component.h>

extern const struct andiron_options file_options, http_options, dns_options, file_match_options,
	remote_options, import_options;

int32_t file_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report);
int32_t http_check(const struct andiron_host *host, const struct andiron_value *args,
		   struct andiron_report *report);
int32_t remote_check(const struct andiron_host *host, const struct andiron_value *args,
		     struct andiron_report *report);
int32_t dns_check(const struct andiron_host *host, const struct andiron_value *args,
		  struct andiron_report *report);
