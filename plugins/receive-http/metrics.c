/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in metrics.h. */
#include "receive-http/metrics.h"

#include "abi/metrics.h"

#define COUNTER(member) ABI_COUNTER(struct receiver_counts, member)
#define GAUGE(member)   ABI_GAUGE(struct receiver_counts, member)

#define ROWS(of)										   \
	{of "_tcp_connections", GAUGE(connections),						   \
	 "Connections that are open."},								   \
	{of "_tcp_connections_limit", GAUGE(connection_limit),					   \
	 "Connections that may be open."},							   \
	{of "_tcp_connections_waiting", GAUGE(waiting_connections),				   \
	 "Connections of HTTP beyond those, which wait until there are fewer."},		   \
	{of "_held_bytes", GAUGE(held_bytes),							   \
	 "Bytes of requests that are being read or wait for their answer."},			   \
	{of "_accepted_requests_total", COUNTER(accepted),					   \
	 "Requests whose profiles were handed on (200)."},					   \
	{of "_accepted_bytes_total", COUNTER(bytes),						   \
	 "Bytes of the bodies of requests that were handed on."},				   \
	{of "_refused_requests_total", COUNTER(refused),					   \
	 "Requests that were at fault (4xx but 429)."},						   \
	{of "_delayed_requests_total", COUNTER(rejected),					   \
	 "Requests that were asked to come again, since somebody behind had no room (429)."},	   \
	{of "_failed_requests_total", COUNTER(failed),						   \
	 "Requests that this agent could not take (5xx)."},					   \
	{of "_broken_off_requests_total", COUNTER(broken_off),					   \
	 "Requests without an answer: their sender broke off, or a call's head was too large."}

static const struct abi_metric_row rows[] = {ROWS("pyroscope_receive_http")};
static const struct abi_metric_row otlp_rows[] = {
	ROWS("andiron_otlp_receive"),
	{"andiron_otlp_receive_refused_connections_total", COUNTER(refused_connections),
	 "Connections of gRPC that were closed at once, since as many as may be were open."},
};

void receive_metrics(const struct receiver *r, const struct andiron_metric_sink *sink)
{
	struct receiver_counts counts = receiver_counts(r);

	if (receiver_takes_otlp(r))
		abi_metrics(sink, otlp_rows, sizeof(otlp_rows) / sizeof(otlp_rows[0]), &counts);
	else
		abi_metrics(sink, rows, sizeof(rows) / sizeof(rows[0]), &counts);
}
