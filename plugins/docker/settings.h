/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of discovery.docker and discovery.dockerswarm as the engine wants them. */
#pragma once

#include "abi/value.h"
#include "base/arena.h"
#include "client/options.h"
#include "docker/containers.h"
#include "docker/swarm-targets.h"

struct settings {
	struct client_config client;
	struct http_config http; /* of the client, or of a socket: strings are the client's, ours */
	struct arena arena;
	struct str host;               /* as it was written, for messages */
	struct str base;               /* what paths follow */
	struct target_options targets; /* of discovery.docker */
	struct swarm_options swarm;    /* of discovery.dockerswarm */
	int64_t refresh_ns;
	/* The filters for each list, as members of a JSON object, "" where there are none. */
	struct str filters;
	bool by_id;   /* by ids, too: these and those of an event would be one filter */
	bool running; /* only containers that run are listed, so one that has ended is none */
};

/* Each 0, -ENOMEM, or -EINVAL and a text for what settings_check reports. `args` is not needed
 * afterwards. */
int settings_init(struct settings *ret, const struct andiron_value *args, struct error *err);
int settings_init_swarm(struct settings *ret, const struct andiron_value *args, struct error *err);
void settings_fini(struct settings *s);

/* Appends the URL of a path of the engine's API, with filters that are JSON; "": none. */
void settings_url(const struct settings *s, struct buf *url, const char *path, struct str filters);
/* Appends the URL of what the filters choose, ids over those given; n = 0: of any. */
void settings_list_url(const struct settings *s, struct buf *url, const char *path,
		       const struct str *ids, size_t n);

/* Which events can change a list of containers, as the filters of a stream. Static. */
const char *settings_events(const struct settings *s);

/* For `validate`: what types alone do not say. */
int32_t settings_check(const struct andiron_host *host, const struct andiron_value *args,
		       struct andiron_report *report);
