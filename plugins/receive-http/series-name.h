/* SPDX-License-Identifier: Apache-2.0 */
/* The `name` of a request to /ingest: "shop.cpu{region=eu,zone=a}". Source: pyroscope,
 * api/model/labelset. Values are not quoted, and end at a comma or at the brace. */
#pragma once

#include "abi/target-list.h"
#include "base/error.h"
#include "base/vec.h"

#define SERIES_NAME_MAX_LABELS 128u

typedef VEC(struct target_label) series_labels;

/* Reads it: the application's name and the labels, all within `name`, appended to *labels. 0,
 * -ENOMEM, or -EINVAL and a text. O(bytes). */
int series_name_parse(struct str name, struct str *ret_app, series_labels *labels,
		      struct error *err);
