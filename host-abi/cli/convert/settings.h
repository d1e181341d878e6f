/* SPDX-License-Identifier: Apache-2.0 */
/* What another profiler was told, by flags and by YAML, as one list of settings. A table says what
 * each of its settings is here; the same table says which flags take no value and which members
 * are maps. Names are compared without case, `-` and `_`: `SamplesPerSecond`, `samples_per_second`
 * and `--samples-per-second` are one. A YAML file's maps are flattened: `remote-store: {address:
 * …}` is `remote-store-address`. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "yaml/view.h"

#define SETTINGS_MAX 10000 /* of a file; an alias of YAML counts as its whole anchor each time */

struct conversion;
struct setting;

enum counterpart_kind {
	PUT_TEXT,
	PUT_NUMBER,
	PUT_DURATION,
	PUT_BOOL,
	PUT_NOT, /* the bool turned round */
	PUT_MAP, /* YAML's map; on a command line a=b;c=d */
	PUT_OWN, /* by `put` */
	PUT_OWN_BOOL,
	HAS_NONE, /* said in the result, with the reason */
	HAS_NONE_BOOL,
	IS_MOOT, /* nothing to say */
	IS_MOOT_BOOL,
};

/* What a part of the result is made of. */
enum section {
	SECTION_SAMPLER,
	SECTION_ENDPOINT,
	SECTION_TLS,
	SECTION_DEBUGINFO,
	SECTION_LABELS, /* external_labels of the writer */
	SECTION_LOGGING,
	N_SECTIONS,
};

/* A row of a table, up to a NULL name. */
struct counterpart {
	const char *name; /* ends with `*`: all that begin so */
	enum counterpart_kind kind;
	enum section section;
	const char *ours; /* the attribute; HAS_NONE: the reason */
	int (*put)(struct conversion *c, const struct setting *s, struct error *err);
};

struct setting {
	const struct counterpart *row; /* NULL: not in the table */
	struct str name, key, text;    /* key: of a map's entry */
	size_t line;                   /* in the file; 0: on the command line */
};

/* Texts are in the arena. */
struct settings {
	struct arena arena;
	VEC(struct setting) list;
	size_t visited; /* nodes of YAML */
};

void settings_fini(struct settings *s);

bool settings_same_name(struct str a, struct str b);

/* Flags in Go's two forms, `--name=value` and `--name value`, with one dash or two. 0, -ENOMEM, or
 * -EINVAL with a text. */
int settings_add_flags(struct settings *s, const struct counterpart *table, int argc, char **argv,
		       struct error *err);

/* One of this name, from a place of its own. Copied. */
int settings_add(struct settings *s, const struct counterpart *table, const struct setting *from);

/* The i-th member of a map, with all that is in it. 0, -ENOMEM, or -E2BIG with a text for more than
 * SETTINGS_MAX. */
int settings_add_member(struct settings *s, const struct counterpart *table, struct yaml_view *view,
			yaml_node_t *map, size_t i, struct error *err);
/* All of them. */
int settings_add_map(struct settings *s, const struct counterpart *table, struct yaml_view *view,
		     yaml_node_t *map, struct error *err);

/* The last one of this name, or NULL. */
const struct setting *settings_find(const struct settings *s, const char *name);
