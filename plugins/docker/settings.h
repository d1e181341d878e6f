/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of discovery.docker as the engine wants them. */
#pragma once

#include "abi/value.h"
#include "base/arena.h"
#include "client/options.h"
#include "docker/containers.h"

struct settings {
	struct client_config client;
	struct http_config http; /* of the client, or of a socket: strings are the client's, ours */
	struct arena arena;
	struct str host;         /* as it was written, for messages */
	struct str base;         /* what paths follow */
	struct target_options targets;
	int64_t refresh_ns;
	/* The filters for each list, as members of a JSON object, "" where there are none. */
	struct str filters;
	bool by_id;   /* by ids, too: these and those of an event would be one filter */
	bool running; /* only containers that run are listed, so one that has ended is none */
};

/* 0, -ENOMEM, or -EINVAL and a text for what settings_check reports. `args` is not needed
 * afterwards. */
int settings_init(struct settings *ret, const struct andiron_value *args, struct error *err);
void settings_fini(struct settings *s);

/* Appends the URL of a list of containers: of all, or of those whose ids are given. */
void settings_list_url(const struct settings *s, struct buf *url, const struct str *ids, size_t n);
/* The URL of the stream of those events that can change what is listed. */
void settings_events_url(const struct settings *s, struct buf *url);

/* For `validate`: what types alone do not say. */
int32_t settings_check(const struct andiron_host *host, const struct andiron_value *args,
		       struct andiron_report *report);
