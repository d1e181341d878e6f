/* SPDX-License-Identifier: Apache-2.0 */
/* What a sender may read, and whether that is old. */
#include "client/sender.h"

#include "base/check.h"
#include "base/clock.h"
#include "testing/test.h"

#include <andiron/subprocess.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int32_t start_sender(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd)
{
	*ret_socket = *ret_pidfd = -1;
	return 0;
}

static const struct andiron_subprocess service = {.size = sizeof(service),
						  .start_sender = start_sender};

static int32_t extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	*ret = (struct andiron_extension){.table = &service};
	return 0;
}

static const struct andiron_host host = {.size = sizeof(host), .extension = extension};

static void put_file(const char *path)
{
	FILE *f = fopen(path, "we");

	check(f && fclose(f) == 0);
}

/* Files that were replaced are seen, and they are looked at once a second at most: one that was
 * replaced since the last look is not asked for, and what was found stands until the next look or
 * process. */
TEST(files_are_looked_at_once_a_second)
{
	char folder[] = "/tmp/andiron-client-sender-XXXXXX", path[64], other[64];
	const struct abi_context context = {&host, 1};
	struct client_sender s;
	int64_t before, later;
	int socket, pidfd;

	check(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/bundle", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	put_file(path);
	put_file(other);
	check(setenv("SSL_CERT_FILE", path, 1) == 0);
	expect(client_sender_init(&s, &context));
	before = clock_mono();
	expect_eq(client_sender_start(&s, &socket, &pidfd), 0);
	check(rename(other, path) == 0);
	expect(!client_sender_is_stale(&s, before));
	later = clock_mono() + NS_PER_SEC;
	expect(client_sender_is_stale(&s, later));
	check(unlink(path) == 0 && unsetenv("SSL_CERT_FILE") == 0);
	expect(client_sender_is_stale(&s, later + NS_PER_SEC - 1));
	before = clock_mono();
	expect_eq(client_sender_start(&s, &socket, &pidfd), 0);
	expect(!client_sender_is_stale(&s, before));
	expect(!client_sender_is_stale(&s, clock_mono() + NS_PER_SEC));
	check(rmdir(folder) == 0);
}
