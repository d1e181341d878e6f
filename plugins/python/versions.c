/* SPDX-License-Identifier: Apache-2.0 */
/* See versions.h. */
#include "python/versions.h"

#include <stdio.h>
#include <string.h>

/* "3.8.18" up to a NUL. */
static uint32_t version_of(const char *text, size_t n)
{
	char copy[VERSION_TEXT_MAX];
	unsigned minor, micro;
	int used = 0;

	if (n < 5 || n >= sizeof(copy))
		return 0;
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (sscanf(copy, "3.%2u.%2u%n", &minor, &micro, &used) != 2 || minor < 6 || minor > 10)
		return 0;
	if (copy[used] != '\0' && !strchr("abr+", copy[used]))
		return 0;
	return 3u << 24 | minor << 16 | micro << 8 | 0xf0;
}

/* The minor version of a "python3.8" whose "3." is at `at`; 0: it is no such name. */
static unsigned minor_named(const char *bytes, const char *at, const char *limit)
{
	char digits[4] = "";
	unsigned minor;

	if (at - bytes < 6 || memcmp(at - 6, "python", 6) != 0 || limit - at < 5)
		return 0;
	memcpy(digits, at + 2, 3);
	if (sscanf(digits, "%2u", &minor) != 1 || minor < 6 || minor > 10)
		return 0;
	return minor;
}

/* Linkers let one constant be the end of another, so that "/usr/local/3.8.18" may be all there
 * is. */
void version_texts_add(struct version_texts *v, const char *bytes, size_t n)
{
	const char *at = bytes + 1, *limit = bytes + n;

	for (; at < limit && (at = memmem(at, (size_t)(limit - at), "3.", 2)) != NULL; at++) {
		const char *end = memchr(at, '\0', (size_t)(limit - at));
		unsigned minor = minor_named(bytes, at, limit);
		uint32_t version = 0;

		if (minor)
			v->named |= 1u << minor;
		if (end && !strchr("0123456789.", at[-1] ? at[-1] : ' '))
			version = version_of(at, (size_t)(end - at));
		if (version && v->first[version >> 16 & 15] == 0)
			v->first[version >> 16 & 15] = version;
	}
}

uint32_t version_texts_agreed(const struct version_texts *v)
{
	uint32_t all = 0, agreed = 0, n_all = 0, n_agreed = 0;

	for (unsigned minor = 6; minor <= 10; minor++) {
		if (v->first[minor] == 0)
			continue;
		all = v->first[minor];
		n_all++;
		if (v->named >> minor & 1) {
			agreed = all;
			n_agreed++;
		}
	}
	if (n_agreed == 1)
		return agreed;
	return n_all == 1 ? all : 0;
}
