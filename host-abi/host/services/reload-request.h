/* SPDX-License-Identifier: Apache-2.0 */
/* A component asks for the configuration to be read again. That is done between the calls of the
 * loop, since a change may update, stop and destroy whoever asked; and one request at a time. */
#pragma once

#include <andiron/host.h>

struct instance;

/* As `reload` of andiron/status.h. [loop] */
int reload_request(struct instance *from, andiron_offer_fn fn, void *arg);
