/* SPDX-License-Identifier: Apache-2.0 */
/* A DNS server's answer as targets. Source: RFC 1035 and RFC 2782; the labels are those of
 * Prometheus's dns_sd_configs. */
#pragma once

#include "discovery/target-rows.h"

enum dns_type {
	DNS_A,
	DNS_AAAA,
	DNS_SRV,
	DNS_MX,
};

/* Reads the records of one type; others (a CNAME on the way) are passed over. `name` lives as long
 * as *ret. `port` is that of all types but SRV. 0, -ENOMEM, -E2BIG, or -EBADMSG for what is no
 * answer. */
int dns_answer_read(const uint8_t *message, size_t n, enum dns_type type, struct str name,
		    uint16_t port, struct target_rows *ret);
