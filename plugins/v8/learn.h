/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the functions that walks have seen, their scripts and their code, into the cache. Reading
 * may take long, so the lock of the cache is held only to look into it and to put what was read. */
#pragma once

#include <pthread.h>

#include "v8/names.h"

struct learning {
	struct names *names;
	pthread_mutex_t *lock;
	struct heap heap; /* of the process */
	uint64_t process_id, seed;
	uint64_t now_ns; /* of any clock */
};

/* Reads what is not known of a sighting. *ret has the code that was seen, or 0. False: something
 * could not be read, and may be there later. */
bool learn(const struct learning *l, const struct v8_sighting *sighting,
	   struct v8_place_state *ret);
