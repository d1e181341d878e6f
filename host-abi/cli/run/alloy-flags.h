/* SPDX-License-Identifier: Apache-2.0 */
/* What flags of Alloy's `run` (its 1.x line) mean here, so that a unit file or a DaemonSet that was
 * written for it starts andiron, and `validate` takes the same command line. Those with a
 * counterpart are obeyed; the others are accepted, and the log says once why they change nothing.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/options.h"
#include "host/diag.h"
#include "host/report/log.h"

#define ALLOY_FLAGS_TEXTS 2

struct alloy_flags {
	const char *listen;  /* --server.http.listen-addr; NULL: not given */
	const char *storage; /* --storage.path, likewise */
	const char *format;  /* --config.format, likewise */
	struct texts noted;  /* the names of those without a counterpart, as given */
	/* What alloy_flags_config makes; each is called by its flag, and may be empty. */
	struct buf texts[ALLOY_FLAGS_TEXTS];
	struct source sources[ALLOY_FLAGS_TEXTS];
};

/* The levels of --stability.level. */
extern const char *const alloy_stability[];

/* Rows of a table of flags (cli/options.h), for a `type` whose struct alloy_flags is `member`. */
#define ALLOY_NOTED(type, member)      0, FLAG_NOTED, offsetof(type, member.noted)
#define ALLOY_NOTED_BOOL(type, member) 0, FLAG_NOTED_BOOL, offsetof(type, member.noted)
#define ALLOY_FLAGS(type, member)								   \
	{"server.http.listen-addr", 0, FLAG_INTO(type, member.listen), "ADDRESS:PORT",		   \
	 "answer metrics and probes over HTTP there, as the block status.http does"},		   \
	{"storage.path", 0, FLAG_INTO(type, member.storage), "DIRECTORY",			   \
	 "where a block spool without an absolute directory keeps profiles"},			   \
	{"config.format", 0, FLAG_INTO(type, member.format)},					   \
	{"server.http.memory-addr", ALLOY_NOTED(type, member)},					   \
	{"server.http.ui-path-prefix", ALLOY_NOTED(type, member)},				   \
	{"server.http.enable-pprof", ALLOY_NOTED_BOOL(type, member)},				   \
	{"server.http.disable-support-bundle", ALLOY_NOTED_BOOL(type, member)},			   \
	{"server.http.enable-graphql", ALLOY_NOTED_BOOL(type, member)},				   \
	{"server.http.enable-graphql-playground", ALLOY_NOTED_BOOL(type, member)},		   \
	{"stability.level", ALLOY_NOTED(type, member), .choices = alloy_stability},		   \
	{"feature.community-components.enabled", ALLOY_NOTED_BOOL(type, member)},		   \
	{"feature.component-shutdown-deadline", ALLOY_NOTED(type, member)},			   \
	{"feature.prometheus.metric-validation-scheme", ALLOY_NOTED(type, member)},		   \
	{"feature.prometheus.direct-fanout.enabled", ALLOY_NOTED_BOOL(type, member)},		   \
	{"disable-reporting", ALLOY_NOTED_BOOL(type, member)},					   \
	{"config.bypass-conversion-errors", ALLOY_NOTED_BOOL(type, member)},			   \
	{"config.extra-args", ALLOY_NOTED(type, member)},					   \
	{"cluster.enabled", ALLOY_NOTED_BOOL(type, member)},					   \
	{"cluster.use-discovery-v1", ALLOY_NOTED_BOOL(type, member)},				   \
	{"cluster.node-name", ALLOY_NOTED(type, member)},					   \
	{"cluster.advertise-address", ALLOY_NOTED(type, member)},				   \
	{"cluster.advertise-interfaces", ALLOY_NOTED(type, member)},				   \
	{"cluster.join-addresses", ALLOY_NOTED(type, member)},					   \
	{"cluster.discover-peers", ALLOY_NOTED(type, member)},					   \
	{"cluster.rejoin-interval", ALLOY_NOTED(type, member)},					   \
	{"cluster.max-join-peers", ALLOY_NOTED(type, member)},					   \
	{"cluster.name", ALLOY_NOTED(type, member)},						   \
	{"cluster.wait-for-size", ALLOY_NOTED(type, member)},					   \
	{"cluster.wait-timeout", ALLOY_NOTED(type, member)},					   \
	{"cluster.enable-tls", ALLOY_NOTED_BOOL(type, member)},					   \
	{"cluster.tls-ca-path", ALLOY_NOTED(type, member)},					   \
	{"cluster.tls-cert-path", ALLOY_NOTED(type, member)},					   \
	{"cluster.tls-key-path", ALLOY_NOTED(type, member)},					   \
	{"cluster.tls-server-name", ALLOY_NOTED(type, member)}

void alloy_flags_fini(struct alloy_flags *flags);

/* Makes the configuration that the flags stand for: 0, or a negative errno and why the command line
 * is wrong. */
int alloy_flags_config(struct alloy_flags *flags, struct error *err);

/* Says which flags change nothing here, and why: a line for each reason. */
void alloy_flags_say(const struct alloy_flags *flags, struct log *log);
