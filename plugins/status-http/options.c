/* SPDX-License-Identifier: Apache-2.0 */
/* What status.http can be told. */
#include "status-http/options.h"

#include "abi/option.h"

static const struct andiron_option options[] = {
	OPTION(STRING, "listen_address", "\"127.0.0.1\"",
	       "The IP address to listen at. Who can reach it can read the metrics, which name "
	       "endpoints and components; nothing can be changed there. Empty is as absent.",
	       .since = "0.1"),
	OPTION(INT, "listen_port", "12345",
	       "The port; 0 takes one that is free, which the log names. Alloy's own is 12345.",
	       .max = 65535, .since = "0.1"),
};

const struct andiron_options http_options = ANDIRON_OPTIONS(options);
