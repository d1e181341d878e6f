/* SPDX-License-Identifier: Apache-2.0 */
/* Being another user for a while, in one thread. */
#include "java/attach/identity.h"

#include "testing/test.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define UID 1234u
#define GID 1235u

static void *ids_of_thread(void *ret)
{
	uid_t *ids = ret;

	ids[0] = geteuid();
	ids[1] = getegid();
	return NULL;
}

/* Its own user costs nothing and needs nothing. */
TEST(ones_own_user_is_no_change)
{
	struct error err = ERROR_NULL;
	struct identity i;

	expect_eq(identity_enter(&i, geteuid(), getegid(), &err), 0);
	expect(!i.switched);
	identity_leave(&i);
}

/* Afterwards all is as before, for threads that are made then, too. */
TEST(another_user_is_this_threads)
{
	struct error err = ERROR_NULL;
	struct identity i;
	pthread_t thread;
	uid_t before = geteuid(), ids[2];
	gid_t group = getegid();

	if (before != 0) {
		expect_eq(identity_enter(&i, UID, GID, &err), -EPERM);
		expect(strstr(err.text, "CAP_SETUID") != NULL);
		expect_eq(geteuid(), before);
		return;
	}
	expect_eq(identity_enter(&i, UID, GID, &err), 0);
	expect_eq(geteuid(), UID);
	expect_eq(getegid(), GID);
	expect_eq(getgroups(0, NULL), 0);
	identity_leave(&i);
	expect_eq(pthread_create(&thread, NULL, ids_of_thread, ids), 0);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(ids[0], before);
	expect_eq(ids[1], group);
	expect_eq(geteuid(), before);
	expect_eq(getegid(), group);
}

struct visit {
	pthread_barrier_t entered, seen;
};

static void *visit(void *context)
{
	struct visit *v = context;
	struct error err = ERROR_NULL;
	struct identity i;

	expect_eq(identity_enter(&i, UID, GID, &err), 0);
	pthread_barrier_wait(&v->entered);
	pthread_barrier_wait(&v->seen);
	identity_leave(&i);
	return NULL;
}

TEST(the_others_stay_themselves)
{
	struct visit v;
	pthread_t thread;

	if (geteuid() != 0)
		return; /* the test before says what happens then */
	pthread_barrier_init(&v.entered, NULL, 2);
	pthread_barrier_init(&v.seen, NULL, 2);
	expect_eq(pthread_create(&thread, NULL, visit, &v), 0);
	pthread_barrier_wait(&v.entered);
	expect_eq(geteuid(), 0);
	pthread_barrier_wait(&v.seen);
	expect_eq(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&v.entered);
	pthread_barrier_destroy(&v.seen);
}
