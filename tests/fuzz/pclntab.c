/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions, and frames out of it. */
#include "fuzz.h"

#include "base/check.h"
#include "symbolize/parser/go-frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct elf_file f = ELF_FILE_NULL;
	struct dwarf_frames frames = {0};
	struct pclntab t = PCLNTAB_NULL;
	struct pclntab_function function;

	if (elf_file_open(&f, fuzz_file(bytes, n), NULL) < 0)
		return 0;
	if (pclntab_open(&t, &f, NULL) == 0) {
		for (size_t i = 0; i < t.n_functions && i < 40; i++) {
			if (pclntab_function(&t, i, &function) < 0)
				continue;
			go_frames(&t, function.entry, true, &frames);
			go_frames(&t, function.end - 1, true, &frames);
			check(frames.list.n <= 1000);
		}
		pclntab_close(&t);
	}
	dwarf_frames_free(&frames);
	elf_file_close(&f);
	return 0;
}
