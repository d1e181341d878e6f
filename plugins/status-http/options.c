/* SPDX-License-Identifier: Apache-2.0 */
/* What status.http can be told. */
#include "status-http/options.h"

static const struct andiron_option options[] = {
	{
		.name = "listen_address",
		.type = ANDIRON_TYPE_STRING,
		.default_text = "\"127.0.0.1\"",
		.doc = "The IP address to listen at. Who can reach it can read the metrics, which name "
		       "endpoints and components; nothing can be changed there. Empty is as absent.",
		.since = "0.1",
	},
	{
		.name = "listen_port",
		.type = ANDIRON_TYPE_INT,
		.default_text = "12345",
		.doc = "The port; 0 takes one that is free, which the log names. Alloy's own is 12345.",
		.since = "0.1",
		.min = 0,
		.max = 65535,
	},
};

const struct andiron_options http_options = ANDIRON_OPTIONS(options);
