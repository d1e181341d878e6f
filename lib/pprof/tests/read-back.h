/* SPDX-License-Identifier: Apache-2.0 */
/* What an encoder has been given, as the decoder has it. */
#pragma once

#include "pprof/decode.h"
#include "pprof/encode.h"

/* Ends the encoder. 0 and a profile to be freed, or a negative errno. */
static inline int read_back(struct pprof_encoder *e, const struct pprof_head *head,
			    struct profile **ret)
{
	struct buf out = BUF_NULL;
	int r = pprof_finish(e, head, 0, &out, NULL);

	if (r == 0)
		r = profile_decode(buf_str(&out), ret, NULL);
	buf_free(&out);
	pprof_encoder_free(e);
	return r;
}
