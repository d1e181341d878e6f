/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts. Contracts in error.h. */
#include "base/error.h"

#include "base/check.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Root that has given up its power over files: nobody expects that it is refused. */
static bool is_root_by_name_only(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return geteuid() == 0 && syscall(SYS_capget, &head, d) == 0 &&
	       !(d[0].effective & 1U << CAP_DAC_OVERRIDE);
}

static const char *cause_of(int code)
{
	static const char refused[] =
		"Permission denied: it runs as root without CAP_DAC_OVERRIDE, so owner and mode "
		"count; give root the folder (chown root) or open it (chmod)";

	return code == -EACCES && is_root_by_name_only() ? refused : strerror(-code);
}

int error_errno(struct error *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(err, code, cause_of(code), format, args);
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
