/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax of label and field selectors, so that a typing error is found when the configuration
 * is read and not by a server that answers 400.
 *
 * Source: k8s.io/apimachinery, pkg/labels and pkg/fields (selector.go); the names in a label
 * selector are those of its pkg/util/validation. */
#pragma once

#include "base/error.h"
#include "base/str.h"

/* 0, or -EINVAL with what is wrong and where. An empty text selects all. */
int selector_check_labels(struct str text, struct error *err);
int selector_check_fields(struct str text, struct error *err);
