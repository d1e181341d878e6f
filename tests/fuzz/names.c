/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people read them, in all degrees; what is shown is clean whatever it was. */
#include "fuzz.h"

#include "symbolize/names/sanitize.h"
#include "symbolize/names/demangle.h"

#include "base/check.h"

#include <andiron/batch.h>
#include <pthread.h>

struct input {
	struct str name;
};

/* No control character, none that turns text around, and UTF-8. */
static void check_clean(struct str s)
{
	check(s.p && s.n <= SANITIZE_MAX_BYTES + 4 && str_utf8(s));
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		check(c >= 0x20 && c != 0x7f);
		/* U+0080–U+009F, U+2028–U+202E, U+2066–U+2069 */
		check(!(c == 0xc2 && (unsigned char)s.p[i + 1] < 0xa0));
		if (c == 0xe2 && (unsigned char)s.p[i + 1] == 0x80)
			check((unsigned char)s.p[i + 2] < 0xa8 || (unsigned char)s.p[i + 2] > 0xae);
		if (c == 0xe2 && (unsigned char)s.p[i + 1] == 0x81)
			check((unsigned char)s.p[i + 2] < 0xa6 || (unsigned char)s.p[i + 2] > 0xa9);
	}
}

static void *use(void *context)
{
	const struct input *in = context;
	struct buf readable = BUF_NULL, scratch = BUF_NULL;

	check_clean(in->name.n ? sanitize_name(in->name, &scratch) : STR(""));
	for (uint32_t wish = ANDIRON_DEMANGLE_NONE; wish <= ANDIRON_DEMANGLE_FULL; wish++)
		if (demangle(in->name, wish, &readable) > 0)
			check_clean(sanitize_name(buf_str(&readable), &scratch));
	buf_free(&readable);
	buf_free(&scratch);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = {{(const char *)bytes, n}};
	pthread_attr_t attr;
	pthread_t thread;

	check(pthread_attr_init(&attr) == 0 &&
	      pthread_attr_setstacksize(&attr, DEMANGLE_STACK_BYTES) == 0 &&
	      pthread_create(&thread, &attr, use, &in) == 0 && pthread_join(thread, NULL) == 0);
	pthread_attr_destroy(&attr);
	return 0;
}
