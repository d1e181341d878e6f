/* SPDX-License-Identifier: Apache-2.0 */
/* Records. Contract in record.h. */
#include "pyroscope-push/spool/record.h"

#include <stdlib.h>

void record_free(struct record *r)
{
	if (!r)
		return;
	buf_free(&r->message);
	free(r);
}
