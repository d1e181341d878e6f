/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of a source must not be quoted: the values of secrets. A value belongs to a secret if
 * a name before it in its statement is one: an option of type SECRET or SECRETS of any component in
 * the registry, or a name that says so itself (password, token, Authorization …, but not
 * password_file). Works on tokens, so also where the file does not parse; in doubt it hides.
 *
 * Hidden: strings, numbers and bare words of the value. Shown: keys, references, and the argument
 * of sys.env, which names a secret and is none. */
#pragma once

#include "host/diag.h"
#include "host/registry.h"

/* Bytes [from, to) of the source's text. */
struct redact_span {
	size_t from, to;
};

/* In ascending order, disjoint. One that is zero is empty. */
struct redact_spans {
	VEC(struct redact_span) list;
};

/* Makes d->secrets the names of all secret options of the components that are loaded. 0 or
 * -ENOMEM. */
int redact_declare(struct diags *d, const struct registry *registry);

/* Replaces what *spans held by the spans of a source; the caller frees the list. 0 or -ENOMEM.
 * O(source). */
int redact_find(const struct diags *d, const struct source *source, struct redact_spans *spans);
