/* SPDX-License-Identifier: Apache-2.0 */
/* printf-style fronts of the host's varargs-free services, for plugin.c and for engines that are
 * handed a `struct abi_context`. [any]. */
#pragma once

#include "base/error.h"

#include <andiron/host.h>

/* Who speaks: the host's table and the instance's id. */
struct abi_context {
	const struct andiron_host *host;
	uint64_t instance;
};

/* level: ANDIRON_LOG_*. Lines over 1 KiB are cut off. */
void abi_log(const struct abi_context *c, uint32_t level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* state: ANDIRON_HEALTH_*. */
void abi_health(const struct abi_context *c, uint32_t state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A finding of `validate`. */
void abi_report(const struct andiron_host *host, struct andiron_report *report, uint32_t severity,
		const struct andiron_value *at, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Moves an engine's error across the border: returns its code, or `code` where it has none. */
int32_t abi_error(const struct andiron_host *host, struct andiron_error *ret_err,
		  const struct error *err, int code);

/* Counts in the ledger; `reason` may be NULL. */
void abi_ledger(const struct abi_context *c, uint32_t entry, const char *reason, uint64_t samples);
