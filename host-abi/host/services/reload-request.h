/* SPDX-License-Identifier: Apache-2.0 */
/* A component asks for the configuration to be read again. That is done between the calls of the
 * loop, since a change may update, stop and destroy whoever asked; and one request at a time. */
#pragma once

#include "base/error.h"

#include <andiron/host.h>

struct host;
struct instance;

/* As `reload` of andiron/status.h. [loop] */
int reload_request(struct instance *from, andiron_offer_fn fn, void *arg);

/* Has it read again at once: the result of the host's option `reload`; -EBUSY: a change is being
 * made; -ECANCELED: the host has not begun, or ends; -EOPNOTSUPP: nobody reads one. Turns the loop
 * meanwhile. [loop], outside of any component. */
int reload_now(struct host *host, struct error *err);
