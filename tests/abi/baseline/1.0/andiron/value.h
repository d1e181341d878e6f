/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration as a component sees it: a read-only tree of values, already checked against the
 * component's option table (option.h) and converted to the option's type. The root is a MAP:
 * attributes by name, a single block as a MAP, a repeatable block as a LIST of MAPs.
 *
 * An option that is absent has its default, a block that is absent was not given. A host may fill
 * defaults in (flag DEFAULTED), and need not. TARGETS never stand here and RECEIVERS may be left
 * out, since neither reaches a component this way. So an empty MAP is enough for a component that
 * requires nothing.
 *
 * Source: the value kinds of Alloy's configuration language. */
#ifndef ANDIRON_VALUE_H
#define ANDIRON_VALUE_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_VALUE_NULL   0u
#define ANDIRON_VALUE_BOOL   1u /* integer: 0 or 1 */
#define ANDIRON_VALUE_INT    2u /* integer; a DURATION option arrives so, in ns */
#define ANDIRON_VALUE_FLOAT  3u /* number */
#define ANDIRON_VALUE_STRING 4u /* string */
#define ANDIRON_VALUE_LIST   5u /* items[n_items] */
#define ANDIRON_VALUE_MAP    6u /* keys[n_items], items[n_items], in source order */
/* string: the id of the component behind it ("pyroscope.write.endpoint") */
#define ANDIRON_VALUE_CAPSULE 7u

#define ANDIRON_VALUE_SECRET    1u /* never to be printed or logged */
#define ANDIRON_VALUE_DEFAULTED 2u /* from the option's default, not from the file */

/* Borrowed: lives until the call that handed it over returns. Frozen. file, line and column (from
 * 1; 0: no position) say where the value was written, for messages. */
struct andiron_value {
	uint32_t kind;
	uint32_t flags;
	int64_t integer;
	double number;
	struct andiron_str string;
	const struct andiron_str *keys;
	const struct andiron_value *items;
	uint64_t n_items;
	const char *file;
	uint32_t line;
	uint32_t column;
};

#ifdef __cplusplus
}
#endif

#endif
