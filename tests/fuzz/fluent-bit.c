/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of Fluent Bit's profiles signal, as a flush hands them over. What is refused is refused in
 * words; what is taken is a sound batch; and what is left out of it is counted, with the reason. */
#include "fuzz.h"

#include "abi/batch-view.h"
#include "agents/fluent-bit/chunk.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const struct chunk_head head = {7, 5000000000};
	const struct andiron_batch *batch = NULL;
	struct error err = ERROR_NULL;
	uint64_t left_out = 0;
	struct batch_view view;
	int r = chunk_read((struct str){(const char *)bytes, n}, &head, &batch, &left_out, &err);

	if (r < 0) {
		check(!batch && err.text[0]);
		return 0;
	}
	check(!left_out == !err.text[0]);
	if (!batch)
		return 0;
	check(batch_view_init(&view, batch) == 0);
	check(batch->samples > 0 && batch->producer == 7);
	batch->release(batch->owner);
	return 0;
}
