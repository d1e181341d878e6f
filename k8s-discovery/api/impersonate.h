/* SPDX-License-Identifier: Apache-2.0 */
/* Acting as somebody else: `as`, `as-uid`, `as-groups` and `as-user-extra` of a kubeconfig's user,
 * as the headers of each request. The user that authenticates needs the verb impersonate on them.
 *
 * Source: client-go, transport/round_trippers.go (impersonatingRoundTripper and headerKeyEscape)
 * and clientcmd/validation.go. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "http/http.h"
#include "yaml/view.h"

/* Sets http->headers from a user's map; all is kept in the arena. 0, -ENOMEM, or
 * -EINVAL with a text that begins with `path`. */
int impersonate_read(struct arena *arena, struct yaml_view *yaml, yaml_node_t *user,
		     const char *path, struct http_config *http, struct error *err);
