/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts. Contracts in error.h. */
#include "base/error.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list args;

	check(code < 0);
	if (!err)
		return code;
	err->code = code;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return code;
}

int error_errno(struct error *err, int code, const char *format, ...)
{
	va_list args;
	size_t used;

	check(code < 0);
	if (!err)
		return code;
	err->code = code;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", strerror(-code));
	return code;
}

int error_wrap(struct error *err, int code, const char *format, ...)
{
	char inner[sizeof(err->text)];
	va_list args;
	size_t used;

	check(code < 0);
	if (!err)
		return code;
	if (!err->code) {
		err->code = code;
		snprintf(inner, sizeof(inner), "%s", strerror(-code));
	} else {
		memcpy(inner, err->text, sizeof(inner));
	}
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner);
	return err->code;
}
