/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of pyroscope.receive_http; those of connections have Alloy's names. */
#pragma once

#include "receive-http/receiver.h"

struct andiron_metric_sink;

void receive_metrics(const struct receiver *r, const struct andiron_metric_sink *sink);
