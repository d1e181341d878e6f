/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts. Contracts in error.h. */
#include "base/error.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The text of the caller, and behind it ": cause", unless that is NULL. */
__attribute__((format(printf, 4, 0))) static int put(struct error *err, int code, const char *cause,
						     const char *format, va_list args)
{
	size_t used;

	check(code < 0);
	if (!err)
		return code;
	err->code = code;
	vsnprintf(err->text, sizeof(err->text), format, args);
	used = strlen(err->text);
	if (cause)
		snprintf(err->text + used, sizeof(err->text) - used, ": %s", cause);
	return code;
}

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(err, code, NULL, format, args);
	va_end(args);
	return code;
}

int error_errno(struct error *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(err, code, strerror(-code), format, args);
	va_end(args);
	return code;
}

int error_wrap(struct error *err, int code, const char *format, ...)
{
	char inner[sizeof(err->text)];
	va_list args;

	if (err && err->code) {
		code = err->code;
		memcpy(inner, err->text, sizeof(inner));
	} else {
		snprintf(inner, sizeof(inner), "%s", strerror(-code));
	}
	va_start(args, format);
	put(err, code, inner, format, args);
	va_end(args);
	return code;
}
