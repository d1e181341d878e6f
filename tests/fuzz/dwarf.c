/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, lines and inlined calls; the file is also what dwz has made, a package, and a split
 * unit. */
#include "fuzz.h"

#include "base/check.h"
#include "dwarf/dwarf.h"

#include <errno.h>

/* What profile.symbolize grants is a thousand times that; time is in proportion. */
#define STEPS 131072u

static void use(struct dwarf *d, int fd)
{
	struct dwarf_frames f = {0};
	bool added = false;

	for (uint64_t address = 0x401000; address < 0x401200; address += 0x13) {
		dwarf_grant(d, STEPS);
		dwarf_find(d, address, &f);
		check(f.list.n <= 1000 && f.text.n <= 2 * 1000 * 4096);
		while (dwarf_wants(d) && !added)
			added = dwarf_add_split(d, fd) == 0;
	}
	check(dwarf_bytes(d) <= (size_t)64 << 20);
	dwarf_frames_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	int fd = fuzz_file(bytes, n);

	for (int form = 0; form < 3; form++) {
		const struct dwarf_files files = {.fd = fd,
						  .alt = form == 1 ? fd : -1,
						  .split = form == 2 ? fd : -1,
						  .max_bytes = 1u << 20,
						  .steps = STEPS};
		struct dwarf *d;

		if (dwarf_new(&d, &files, NULL) < 0)
			continue;
		use(d, fd);
		dwarf_free(d);
	}
	return 0;
}
