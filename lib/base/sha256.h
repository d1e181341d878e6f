/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for file ids: a few KiB per new file. Own, since a crypto library of
 * megabytes for eight KiB a file would be the largest dependency of the agent. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

struct sha256 {
	uint32_t state[8];
	uint64_t n; /* bytes so far */
	unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t n);
/* The digest; *s is used up. */
void sha256_finish(struct sha256 *s, unsigned char ret[SHA256_BYTES]);
