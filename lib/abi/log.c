/* SPDX-License-Identifier: Apache-2.0 */
/* Fronts of the host's services. Contracts in log.h. */
#include "abi/log.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE 1024

/* Formats into `out` and gives the slice; cut off at LINE. */
__attribute__((format(printf, 2, 0))) static struct andiron_str
format_line(char out[LINE], const char *format, va_list args)
{
	vsnprintf(out, LINE, format, args);
	return (struct andiron_str){out, strlen(out)};
}

void abi_log(const struct abi_context *c, uint32_t level, const char *format, ...)
{
	struct andiron_str message;
	char line[LINE];
	va_list args;

	if (!c->host->log_enabled(c->instance, level))
		return;
	va_start(args, format);
	message = format_line(line, format, args);
	va_end(args);
	c->host->log(c->instance, level, &message, NULL, 0);
}

void abi_health(const struct abi_context *c, uint32_t state, const char *format, ...)
{
	struct andiron_str message;
	char line[LINE];
	va_list args;

	va_start(args, format);
	message = format_line(line, format, args);
	va_end(args);
	c->host->health(c->instance, state, &message);
}

void abi_report(const struct andiron_host *host, struct andiron_report *report, uint32_t severity,
		const struct andiron_value *at, const char *format, ...)
{
	struct andiron_str message;
	char line[LINE];
	va_list args;

	va_start(args, format);
	message = format_line(line, format, args);
	va_end(args);
	host->report_add(report, severity, at, message.ptr, message.len);
}

int32_t abi_error(const struct andiron_host *host, struct andiron_error *ret_err,
		  const struct error *err, int code)
{
	check(err->code <= 0 && code <= 0);
	return err->code ? host->error_add(ret_err, err->code, err->text, strlen(err->text)) : code;
}

void abi_ledger(const struct abi_context *c, uint32_t entry, const char *reason, uint64_t samples)
{
	struct andiron_str word = {reason, reason ? strlen(reason) : 0};

	c->host->ledger_add(c->instance, entry, reason ? &word : NULL, samples);
}
