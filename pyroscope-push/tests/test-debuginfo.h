/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a server that takes debug information, as much of gRPC over HTTP/2 as libcurl needs of
 * one. It takes any file and keeps none. It asks for no memory, so that allocations that fail are
 * the other side's. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum test_call { CALL_SHOULD, CALL_INITIATE, CALL_UPLOAD, CALL_FINISH, CALL_N };

struct test_debuginfo {
	_Atomic uint32_t calls[CALL_N]; /* that came whole */
	_Atomic uint32_t mute;          /* calls, as bits, that are not answered */
	_Atomic uint64_t bytes;         /* of all that was sent to it */
	char signed_url[48];            /* where files go instead; empty: to itself */
};

/* For test_server_new; the context is a struct test_debuginfo. */
void test_debuginfo_serve(int fd, void *context);

/* What a signed URL leads to: an answer for each file that came, the last for all later ones. */
struct test_storage {
	const char *const *answers;
	_Atomic uint32_t files;
	_Atomic uint64_t bytes; /* of the last */
	char head[4096];        /* of its request */
};

/* The same, with a struct test_storage. */
void test_storage_serve(int fd, void *context);
