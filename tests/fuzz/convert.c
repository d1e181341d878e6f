/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other profilers that `andiron convert` reads. The first byte chooses the profiler. What
 * comes of any of them is a configuration by its grammar. */
#include "fuzz.h"

#include "cli/convert/conversion.h"
#include "host/config.h"

#include "base/check.h"

static void look(const struct buf *text)
{
	struct config *config = config_new();
	struct buf out = BUF_NULL;

	check(!text->failed && config);
	check(config_add_text(config, "converted", buf_str(text)) == 0);
	check(config_format(config, NULL, stderr, &out) == 0);
	buf_free(&out);
	config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct conversion c = {0};
	struct error err = ERROR_NULL;
	struct buf out = BUF_NULL;
	struct str text;
	int r;

	if (n < 2)
		return 0;
	text = (struct str){(const char *)bytes + 1, n - 1};
	r = bytes[0] == 'p' ? convert_parca_agent(&c, "file", text, 0, NULL, &err)
			    : convert_otel_profiler(&c, "file", text, 0, NULL, &err);
	check(r == 0 || err.code == r);
	if (r == 0) {
		conversion_finish(&c, &out);
		look(&out);
	}
	buf_free(&out);
	conversion_fini(&c);
	return 0;
}
