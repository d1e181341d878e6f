/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask: basic authentication, for all paths or for some. Source: Alloy,
 * internal/service/http/auth.go, and its reference on the block http. Where no password is asked
 * for, a page of a stranger may not, whose name was led to a loopback address. */
#pragma once

#include "http-server/server.h"

#include <andiron/option.h>
#include <andiron/value.h>

struct auth {
	char *expected; /* what follows "Basic "; NULL: everybody may */
	char **paths;   /* beginnings; none: all paths */
	size_t n_paths;
	bool except; /* those paths are the free ones */
};

extern const struct andiron_options auth_options;

/* From the block auth; NULL: everybody may. 0, or -ENOMEM and it is empty. */
int auth_init(struct auth *a, const struct andiron_value *block);
void auth_fini(struct auth *a);

/* Whether the request may be answered; else it was, with 401 or 403. */
bool auth_admits(const struct auth *a, struct server_request *r);
