/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of Alloy's `run` (its 1.x line), so that a unit file written for it starts andiron:
 * taken, and where they mean nothing here, noted. */
#pragma once

#include "cli/options.h"

#define NOTED(name_, at_)                                                                          \
	{                                                                                          \
		.name = name_, .kind = FLAG_NOTED, .at = (at_)                                     \
	}
#define NOTED_BOOL(name_, at_)                                                                     \
	{                                                                                          \
		.name = name_, .kind = FLAG_NOTED_BOOL, .at = (at_)                                \
	}

/* Rows of a table of options; `at` is the offset of a struct texts. */
#define ALLOY_FLAGS(at)                                                                            \
	NOTED("server.http.listen-addr", at), NOTED("server.http.memory-addr", at),                \
		NOTED("server.http.ui-path-prefix", at),                                           \
		NOTED_BOOL("server.http.enable-pprof", at),                                        \
		NOTED_BOOL("server.http.disable-support-bundle", at),                              \
		NOTED_BOOL("server.http.enable-graphql", at), NOTED("storage.path", at),           \
		NOTED("stability.level", at),                                                      \
		NOTED_BOOL("feature.community-components.enabled", at),                            \
		NOTED("feature.component-shutdown-deadline", at),                                  \
		NOTED("feature.prometheus.metric-validation-scheme", at),                          \
		NOTED_BOOL("disable-reporting", at), NOTED("config.format", at),                   \
		NOTED_BOOL("config.bypass-conversion-errors", at), NOTED("config.extra-args", at), \
		NOTED_BOOL("cluster.enabled", at), NOTED("cluster.node-name", at),                 \
		NOTED("cluster.advertise-address", at), NOTED("cluster.advertise-interfaces", at), \
		NOTED("cluster.join-addresses", at), NOTED("cluster.discover-peers", at),          \
		NOTED("cluster.rejoin-interval", at), NOTED("cluster.max-join-peers", at),         \
		NOTED("cluster.name", at), NOTED("cluster.wait-for-size", at),                     \
		NOTED("cluster.wait-timeout", at), NOTED_BOOL("cluster.enable-tls", at),           \
		NOTED("cluster.tls-ca-path", at), NOTED("cluster.tls-cert-path", at),              \
		NOTED("cluster.tls-key-path", at), NOTED("cluster.tls-server-name", at)
