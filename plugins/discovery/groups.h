/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus's target groups: a list of {"targets": ["host:port", …], "labels": {"name": "value",
 * …}}, in JSON or YAML. Each target has the labels of its group, one of the caller's, and
 * __address__. What else stands in a group is refused, as Prometheus does.
 *
 * Source: Prometheus, discovery/targetgroup, and its pages on file_sd and http_sd. */
#pragma once

#include "base/error.h"
#include "discovery/target-rows.h"

#define GROUPS_MAX_BYTES ((size_t)16 << 20)

/* Each 0, -ENOMEM, or -EINVAL and -E2BIG with a text. `label` is had by every target, over a
 * group's; its texts must live as long as *ret. */
int groups_from_json(struct str text, struct target_label label, struct target_rows *ret,
		     struct error *err);
int groups_from_yaml(struct str text, struct target_label label, struct target_rows *ret,
		     struct error *err);
