/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags of Alloy's `run` (its 1.x line), so that a unit file written for it
 * starts andiron: taken, and where they mean nothing here, noted.
 */
#ifndef CLI_RUN_ALLOY_FLAGS_H
#define CLI_RUN_ALLOY_FLAGS_H

#include "cli/options.h"

#define NOTED(name_, texts)                                                                        \
	{                                                                                          \
		.name = name_, .kind = FLAG_NOTED, .value = (texts)                                \
	}
#define NOTED_BOOL(name_, texts)                                                                   \
	{                                                                                          \
		.name = name_, .kind = FLAG_NOTED_BOOL, .value = (texts)                           \
	}

#define ALLOY_FLAGS(texts)                                                                         \
	NOTED("server.http.listen-addr", texts), NOTED("server.http.memory-addr", texts),          \
		NOTED("server.http.ui-path-prefix", texts),                                        \
		NOTED_BOOL("server.http.enable-pprof", texts),                                     \
		NOTED_BOOL("server.http.disable-support-bundle", texts),                           \
		NOTED_BOOL("server.http.enable-graphql", texts), NOTED("storage.path", texts),     \
		NOTED("stability.level", texts),                                                   \
		NOTED_BOOL("feature.community-components.enabled", texts),                         \
		NOTED("feature.component-shutdown-deadline", texts),                               \
		NOTED("feature.prometheus.metric-validation-scheme", texts),                       \
		NOTED_BOOL("disable-reporting", texts), NOTED("config.format", texts),             \
		NOTED_BOOL("config.bypass-conversion-errors", texts),                              \
		NOTED("config.extra-args", texts), NOTED_BOOL("cluster.enabled", texts),           \
		NOTED("cluster.node-name", texts), NOTED("cluster.advertise-address", texts),      \
		NOTED("cluster.advertise-interfaces", texts),                                      \
		NOTED("cluster.join-addresses", texts), NOTED("cluster.discover-peers", texts),    \
		NOTED("cluster.rejoin-interval", texts), NOTED("cluster.max-join-peers", texts),   \
		NOTED("cluster.name", texts), NOTED("cluster.wait-for-size", texts),               \
		NOTED("cluster.wait-timeout", texts), NOTED_BOOL("cluster.enable-tls", texts),     \
		NOTED("cluster.tls-ca-path", texts), NOTED("cluster.tls-cert-path", texts),        \
		NOTED("cluster.tls-key-path", texts), NOTED("cluster.tls-server-name", texts)

#endif
