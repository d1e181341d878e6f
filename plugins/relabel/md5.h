/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 (RFC 1321), for `hashmod` only, whose meaning it is. Not for secrets. */
#pragma once

#include "base/str.h"

void md5(struct str data, uint8_t ret[16]);
