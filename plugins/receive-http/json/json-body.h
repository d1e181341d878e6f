/* SPDX-License-Identifier: Apache-2.0 */
/* A request's body that is JSON: one object. The bytes are untrusted; jansson takes some 50 bytes
 * for the smallest value, so there is a limit on how many there may be. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <jansson.h>

#define JSON_BODY_MAX_VALUES 200000u
/* jansson takes stack for each level, of which a worker has 256 KiB. */
#define JSON_BODY_MAX_DEPTH  64u

/* Whether a Content-Type is JSON's, whatever its letters' case and its parameters are. */
bool json_body_is(struct str content_type);

/* Reads it: 0 and *ret, whose reference is the caller's, or -ENOMEM, or -EBADMSG (too deep, too) or
 * -E2BIG (too many values), and a text. An integer of more than 18 digits, which may be larger than
 * jansson's, comes as a text. O(bytes). */
int json_body_load(struct str body, json_t **ret, struct error *err);
