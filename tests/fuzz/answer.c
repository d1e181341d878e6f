/* SPDX-License-Identifier: Apache-2.0 */
/* What a parser says that somebody may have taken over. */
#include "fuzz.h"

#include "symbolize/parser/answer.h"

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const struct str all = {(const char *)bytes, n};
	struct str rest = all;
	struct answer_tail tail;
	struct answer_address address;
	struct answer_frame frame;
	struct answer_head head;

	if (answer_tail(&rest, &tail))
		check(rest.n + tail.wanted.n + 8 == n);
	if (!answer_head(&rest, &head))
		return 0;
	while (answer_address(&rest, &address))
		for (unsigned int i = 0; i < address.n_frames && answer_frame(&rest, &frame); i++)
			check(frame.name.n + frame.linked.n + frame.file.n <= n);
	return 0;
}
