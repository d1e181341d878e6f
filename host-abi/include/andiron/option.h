/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: what a component can be told. The table is the one source of help, manual,
 * validation and JSON schema; an undocumented option cannot exist. Blocks nest through `block`, so
 * a sub-tree (the HTTP client set, say) is written once and shared by pointer. */
#ifndef ANDIRON_OPTION_H
#define ANDIRON_OPTION_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_TYPE_BOOL     1u
#define ANDIRON_TYPE_INT      2u
#define ANDIRON_TYPE_FLOAT    3u
#define ANDIRON_TYPE_STRING   4u
#define ANDIRON_TYPE_SECRET   5u /* a STRING value flagged SECRET */
#define ANDIRON_TYPE_DURATION 6u /* "15s" in the file, an INT in ns here */
#define ANDIRON_TYPE_STRINGS  7u /* list of strings */
#define ANDIRON_TYPE_MAP      8u /* map of strings */
/* list of targets; arrives through `targets` of component.h, not in the values */
#define ANDIRON_TYPE_TARGETS 9u
/* list of batch receivers; the host makes the edges, the values hold CAPSULEs */
#define ANDIRON_TYPE_RECEIVERS 10u
#define ANDIRON_TYPE_BLOCK     11u
#define ANDIRON_TYPE_SECRETS   12u /* map of strings or of lists of strings, flagged SECRET */
#define ANDIRON_TYPE_UINT      13u /* 0 to 2^64-1; an INT, `integer` has the bits of a uint64_t */

#define ANDIRON_OPTION_REQUIRED 1u
#define ANDIRON_OPTION_REPEATED 2u /* a block that may stand several times; order is kept */
/* a value of another type is handed to `validate` as written, instead of being refused */
#define ANDIRON_OPTION_LENIENT 4u
/* accepted so that a file for Alloy loads; `effect` says what that changes. Its default is what is
 * done: nobody is warned who asks for that */
#define ANDIRON_OPTION_IGNORED 8u
/* a block with a label, NAME "LABEL" { }, which is the first member of its MAP, under the key "" */
#define ANDIRON_OPTION_LABELLED 16u
/* a STRING that is a path: where the agent has a storage directory, one that is relative is in
 * there, and one that is absent or empty is STORAGE/ID of the component */
#define ANDIRON_OPTION_STORED 32u

/* One row. `default_text` is an expression of the configuration language
 * ("15s" needs its quotes inside: "\"15s\""), NULL where there is none.
 * `choices` ends with NULL and lists the words that a STRING may be; NULL
 * allows any. `min` and `max` bound INT and DURATION where they differ.
 * `effect` is for IGNORED rows: how the result differs because of it, NULL
 * where it does not. `until` names the version that dropped the option. */
struct andiron_option {
	const char *name;
	uint32_t type;
	uint32_t flags;
	const char *default_text;
	const char *doc;
	const char *since;
	const char *until;
	const char *effect;
	const char *const *choices;
	int64_t min;
	int64_t max;
	const struct andiron_options *block;
};

/* `stride` is sizeof(struct andiron_option) of the headers that the table was built with. */
struct andiron_options {
	uint32_t count;
	uint32_t stride;
	const struct andiron_option *items;
};

#define ANDIRON_OPTIONS(array)                                                                     \
	{                                                                                          \
		(uint32_t)(sizeof(array) / sizeof((array)[0])), (uint32_t)sizeof((array)[0]),      \
			(array)                                                                    \
	}

#ifdef __cplusplus
}
#endif

#endif
