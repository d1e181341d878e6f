/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of an engine's answers, looked into. What has another type than the API says counts as
 * absent: an engine that is not Docker's may leave out what no label is made of. */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <jansson.h>

/* A string, borrowed from the value; STR_NULL for any other value, and for NULL. */
struct str list_text(const json_t *value);
struct str list_member(const json_t *object, const char *name);
/* A member that is true or false, as Prometheus writes it; false where it is absent. */
struct str list_truth(const json_t *object, const char *name);
/* A member that is a port; 0: there is none. */
uint16_t list_port(const json_t *object, const char *name);

/* A whole answer, `what` of which it is the list ("containers"): 0, or -EINVAL and a text. */
int list_parse(struct str text, const char *what, json_t **ret, struct error *err);
