/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.values/1: values that a component supplies while it runs (a file's content from a server,
 * the entries of a Secret), under its exports of type ANDIRON_EXPORT_VALUE. Arguments that name
 * such an export wait for its first value; each later one changes them as a reload does. Offered by
 * hosts that keep a configuration; `self` is the extension's. */
#ifndef ANDIRON_VALUES_H
#define ANDIRON_VALUES_H

#include <andiron/host.h>
#include <andiron/value.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_VALUES_ID "andiron.values/1"

struct andiron_values {
	uint32_t size;
	uint32_t reserved;

	/* The export's value from now on: a STRING, or a MAP of STRINGs, of at most 1 MiB of UTF-8;
	 * or a LIST of such MAPs, of at most 16 MiB.
	 * What has the flag SECRET is never shown. Copied. The same value again changes nothing. 0;
	 * -EPERM if it is the last one, and was refused where it is named (the one before goes on);
	 * -ENOMEM; -EINVAL for another value or export. [loop] [serial], O(bytes). */
	int32_t (*send)(void *self, uint64_t instance, const char *export_name,
			const struct andiron_value *value);
};

#ifdef __cplusplus
}
#endif

#endif
