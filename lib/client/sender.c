/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in sender.h. */
#include "client/sender.h"

#include "base/clock.h"

#include <andiron/subprocess.h>

bool client_sender_init(struct client_sender *s, const struct abi_context *context)
{
	const struct andiron_subprocess *service;

	*s = (struct client_sender){.context = *context};
	if (context->host->extension(context->instance, ANDIRON_SUBPROCESS_ID, &s->service) != 0)
		return false;
	service = s->service.table;
	return ANDIRON_HAS(service, andiron_subprocess, start_sender);
}

int client_sender_start(struct client_sender *s, int *ret_socket, int *ret_pidfd)
{
	const struct andiron_subprocess *service = s->service.table;
	int32_t socket, pidfd, r;

	client_files_note(&s->files);
	s->looked_ns = clock_mono();
	s->stale = false;
	r = service->start_sender(s->service.self, s->context.instance, &socket, &pidfd);
	if (r < 0)
		return r;
	*ret_socket = socket;
	*ret_pidfd = pidfd;
	return 0;
}

bool client_sender_is_stale(struct client_sender *s, int64_t now_ns)
{
	if (now_ns - s->looked_ns < NS_PER_SEC)
		return s->stale;
	s->looked_ns = now_ns;
	s->stale = client_files_changed(&s->files);
	return s->stale;
}
