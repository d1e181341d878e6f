/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a multipart/form-data body that is all there (RFC 7578, RFC 2046). Nothing is copied; a
 * body that is cut off, or whose parts have no end, is damaged. O(bytes). */
#pragma once

#include "base/str.h"

#define MULTIPART_MAX_PARTS 64u

struct multipart {
	struct str boundary;
	struct str rest;
	unsigned int n_parts;
	bool begun, ended;
};

struct part {
	struct str name;         /* of the field; empty where it has none */
	struct str content_type; /* likewise */
	struct str data;
};

/* Whether a content type is a form's; a damaged one counts, and multipart_init refuses it. */
bool multipart_is(struct str content_type);

/* 0, or -EBADMSG: the content type names no boundary. */
int multipart_init(struct multipart *m, struct str content_type, struct str body);

/* 1 and a part, 0 at the end, -EBADMSG where the body is damaged, -E2BIG beyond
 * MULTIPART_MAX_PARTS. */
int multipart_next(struct multipart *m, struct part *ret);

/* The data of the first part of that name: 1; 0: there is none; or a negative errno as above,
 * wherever in the body it is damaged. */
int multipart_find(struct str content_type, struct str body, struct str name, struct str *ret);
