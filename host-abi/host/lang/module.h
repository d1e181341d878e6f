/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: declare, import and foreach. They are gone in the plan: an instance of a custom
 * component is the components that it declares, each with arguments of its own.
 *
 *     declare "pods" {                     pods "all" {           discovery.kubernetes.p, as
 *       argument "fwd" { }                   fwd = […]       →    pods.all/discovery.kubernetes.p
 *       discovery.kubernetes "p" { … }     }
 *       export "found" { value = … }
 *     }
 *
 * Source: grafana/alloy, docs/sources/get-started/modules and internal/runtime. */
#pragma once

#include "host/lang/draft.h"

/* What a file or a body of declare declares and imports, before its blocks are looked at, since
 * these may stand before. `module`: nothing else may stand in it. */
void module_declare(struct draft *d, const struct scope *scope, const struct stmt *first,
		    bool module);

/* The same for a scope in another: *shared is its space. It is done once, unless an argument or the
 * variable decides what is imported, or may stand in what is declared. A component that supplies a
 * module is in each round of a foreach, since the first one may go. */
void module_declare_inside(struct draft *d, struct scope *inside, struct space **shared,
			   const struct stmt *first);

/* The block's effect, if it belongs to modules or names a custom component; else false. */
bool module_block(struct draft *d, const struct scope *scope, const struct stmt *s);

/* The foreach blocks: they go over values, so all that can be named is known before. */
void module_loops(struct draft *d);

/* An instance that can be named, with room for so many exports; NULL after an error. */
struct custom *module_add_custom(struct draft *d, const struct scope *scope, const struct stmt *s,
				 size_t n_exports);

/* Names of custom components that can stand here, for a hint: at most n; how many. */
size_t module_names(struct draft *d, const struct space *space, const char **names, size_t n);

/* Whether the name begins with a module's label, and no such module declares it. It is no other
 * component then, as in Alloy. */
bool module_lacks(const struct space *space, struct str name);
/* Says so of a block, if it is true. */
bool module_refuse(struct draft *d, const struct space *space, const struct stmt *s);

/* At most so deep do scopes stand within each other. */
#define MODULE_MAX_DEPTH 32

/* The scope of an instance or a round within another, with the other's space. */
struct scope *module_scope(struct draft *d, const struct scope *outside, const char *prefix);
/* The blocks of a body, without those that declare, import, or are a declare's own. */
void module_blocks(struct draft *d, const struct scope *scope, const struct stmt *first);
/* Whether the block has a label; false after an error. */
bool module_has_label(struct draft *d, const struct stmt *s);
/* Whether a block of a template may be a custom component. */
bool module_may_bring(const struct space *space, const struct stmt *template, struct str name);
/* The argument of that name, or NULL. */
const struct stmt *module_attribute(const struct stmt *body, const char *name);
/* The same of one that the block needs; NULL after an error, also where it is broken. */
const struct stmt *module_needed(struct draft *d, const struct stmt *block, const char *name);
/* Whether all that a block holds are arguments of these names (NULL ends them), each once; the
 * others are reported. */
bool module_only(struct draft *d, const struct stmt *block, const char *const *known);
/* That a block with its name and label stands at `first` already. */
void module_refuse_second(struct draft *d, const struct stmt *s, const struct place *first);
