/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the language: a registry of its own (linked in place of the real one) whose
 * components look like andiron's, and a plan as text. */
#pragma once

#include "host/plan.h"

#include "testing/test.h"

/* What the tests find; `no_symbolizer` hides profile.symbolize, `no_import` import.http, and
 * `no_plugin` all. What components have supplied comes with it. */
struct registry {
	bool no_symbolizer, no_import, no_plugin;
	const struct supplied *supplied;
	unsigned int n_all; /* how often all plugins were to be opened */
};

/* What plan_build says about one source named "f": findings, then the plan:
 *
 *     node ID [implicit]: ARGUMENTS     * behind a default, ? behind a secret
 *     edge FROM.EXPORT → TO.PORT #ORDER
 *     literal → TO.PORT #ORDER: VALUE
 *     ID waits for ID[, whatever it is]     of a module that is not there
 *
 * To be freed. */
char *plan_text(struct str source);
char *plan_text_of(const struct source *sources, size_t n, struct registry *registry);

/* The findings alone. */
char *diags_text(const struct diags *d, bool colour);

/* A value as text. */
void value_print(const struct andiron_value *v, FILE *out);

#define expect_plan(source, text)                                                                  \
	do {                                                                                       \
		char *plan_ = plan_text(str_of(source));                                           \
		if (strcmp(plan_, (text)) != 0)                                                    \
			test_fail(__FILE__, __LINE__, "got:\n%s\nexpected:\n%s", plan_, (text));   \
		free(plan_);                                                                       \
	} while (0)

/* The same for the argument `value` of a component that takes anything. */
#define expect_value(expression, text)                                                             \
	expect_plan("test.any \"a\" {\n  value = " expression "\n}\n",                             \
		    "node test.any.a: {value=" text "}\n")
#define expect_no_value(expression, text)                                                          \
	expect_plan("test.any \"a\" {\n  value = " expression "\n}\n", text)
