/* SPDX-License-Identifier: Apache-2.0 */
/* A request of OTLP's profiles signal in JSON, as its bytes in protobuf. Source: the section "JSON
 * Protobuf Encoding" of OTLP's specification, and the names that a Collector writes.
 *
 * The names are those of what otlp-request.h reads; others are ignored, as the specification has
 * it. So ids (hexadecimal here) and payloads (base64) are left out: nobody reads them. The bytes
 * are untrusted. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

/* Appends to an empty buffer, which is the caller's in any case. 0, -ENOMEM, or -EBADMSG or -E2BIG
 * and a text. O(bytes). */
int otlp_json_read(struct str body, struct buf *ret, struct error *err);
