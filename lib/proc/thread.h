/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a plugin: all signals are blocked in it, since they are the program's. */
#pragma once

#include <pthread.h>
#include <signal.h>

/* As pthread_create. */
static inline int thread_start(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *arg),
			       void *arg)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread inherits it from its maker */
	code = pthread_create(ret, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}
