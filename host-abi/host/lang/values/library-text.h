/* SPDX-License-Identifier: Apache-2.0 */
/* Within the library: what its functions share, and the functions by the names of its table. Each
 * has as many arguments as the table says, of any kind; false after an error, which is reported. */
#pragma once

#include "host/lang/values/library.h"

#include "base/buf.h"
#include "base/check.h"

/* An empty text that is bounded. */
struct buf library_text(void);
/* The text becomes the result, and is freed; a secret one if `flags` say so. */
bool library_give(struct lang *l, const struct expr *e, struct buf *text, uint32_t flags,
		  struct andiron_value *ret);
bool library_give_str(struct lang *l, const struct expr *e, struct str s, uint32_t flags,
		      struct andiron_value *ret);

/* The expression of an argument, for its place. */
const struct expr *library_argument(const struct expr *e, size_t i);
/* Reports that argument i is no "list of strings"; false. */
bool library_refuse(struct lang *l, const struct expr *e, size_t i, const char *wanted,
		    const struct andiron_value *value);
/* `v`, of argument i, as a text: a number is written out, and null is "", as in Alloy. False after
 * an error, which says that a "string" was wanted. */
bool library_string(struct lang *l, const struct expr *e, size_t i, const char *wanted,
		    const struct andiron_value *v, struct str *ret);
/* The first n arguments as texts. */
bool library_strings(struct lang *l, const struct expr *e, const struct andiron_value *args,
		     size_t n, struct str *ret);

/* The first n arguments, which are no secrets, as texts: what is read out of a secret would be
 * none. */
bool library_open_strings(struct lang *l, const struct expr *e, const struct andiron_value *args,
			  size_t n, struct str *ret);

/* JSON as a value. False after an error at the call's first argument, which the text is from. */
bool library_json(struct lang *l, const struct expr *e, struct str text, struct andiron_value *ret);

/* Appends a code point. */
void library_utf8(struct buf *out, uint32_t c);

/* What is neither list nor object as text; false if it is one, and nothing is reported. */
bool library_scalar(struct lang *l, const struct andiron_value *v, struct str *ret);

#define LIBRARY_FUNCTION(name)                                                                     \
	bool library_##name(struct lang *l, const struct expr *e,                                  \
			    const struct andiron_value *args, struct andiron_value *ret)

LIBRARY_FUNCTION(format);
LIBRARY_FUNCTION(join);
LIBRARY_FUNCTION(replace);
LIBRARY_FUNCTION(split);
LIBRARY_FUNCTION(lower);
LIBRARY_FUNCTION(upper);
LIBRARY_FUNCTION(trim);
LIBRARY_FUNCTION(trim_prefix);
LIBRARY_FUNCTION(trim_suffix);
LIBRARY_FUNCTION(trim_space);
LIBRARY_FUNCTION(to_base64);
LIBRARY_FUNCTION(from_base64);
LIBRARY_FUNCTION(to_url64);
LIBRARY_FUNCTION(from_url64);
LIBRARY_FUNCTION(from_json);
LIBRARY_FUNCTION(from_yaml);
LIBRARY_FUNCTION(to_json);
LIBRARY_FUNCTION(url_encode);
LIBRARY_FUNCTION(url_decode);
LIBRARY_FUNCTION(path_join);
LIBRARY_FUNCTION(nonsensitive);
LIBRARY_FUNCTION(combine_maps);
LIBRARY_FUNCTION(group_by);
LIBRARY_FUNCTION(json_path);
