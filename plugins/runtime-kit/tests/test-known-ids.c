/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ids: what is found again, and where ids go. */
#include "runtime-kit/known-ids.h"

#include "testing/test.h"

#define SETS 4096u

/* What has been put into a set is found until it needs more places than it has; then one id makes
 * room, and the newest is there. */
TEST(full_set_forgets_one)
{
	struct known_set set = {0};
	unsigned n = 0;

	for (__u64 id = 1; id <= KNOWN_WAYS; id++) {
		expect(!known_in(&set, id));
		known_put(&set, id, 3);
	}
	for (__u64 id = 1; id <= KNOWN_WAYS; id++)
		expect(known_in(&set, id));
	known_put(&set, 100, 0xffffffff);
	expect(known_in(&set, 100));
	for (__u64 id = 1; id <= KNOWN_WAYS; id++)
		n += known_in(&set, id) != 0;
	expect_eq(n, KNOWN_WAYS - 1);
}

/* Ids that differ in their middle bits only are spread over all sets, and none is outside. */
TEST(ids_are_spread)
{
	unsigned char met[SETS] = {0};
	unsigned n = 0;

	for (__u64 id = 0; id < 2 * SETS; id++) {
		__u32 set = known_set_of(0xab00000000000000ull | id << 1 | 1, SETS);

		expect(set < SETS);
		n += !met[set];
		met[set] = 1;
	}
	expect_eq(n, SETS);
}
