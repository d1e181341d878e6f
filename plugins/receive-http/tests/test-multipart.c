/* SPDX-License-Identifier: Apache-2.0 */
/* Forms as SDKs send them, and damaged ones. */
#include "receive-http/multipart.h"

#include "testing/test.h"

#include <errno.h>

static const struct str type = {"multipart/form-data; boundary=\"xX\"", 34};

static int find(const char *body, const char *name, struct str *ret)
{
	return multipart_find(type, str_of(body), str_of(name), ret);
}

/* Every part is found under its name, and its bytes are its own, line ends within them too. */
TEST(parts_are_found)
{
	const char *body = "preamble\r\n--xX\r\n"
			   "Content-Disposition: form-data; name=\"profile\"; filename=\"p\"\r\n"
			   "Content-Type: application/octet-stream\r\n\r\n"
			   "one\r\n\r\ntwo --xX three\r\n"
			   "\r\n--xX\r\ncontent-disposition: form-data; name=labels\r\n\r\n"
			   "\r\n--xX--\r\n";
	struct multipart m;
	struct part part;
	struct str data;

	expect_eq(find(body, "profile", &data), 1);
	expect_str(data, "one\r\n\r\ntwo --xX three\r\n");
	expect_eq(find(body, "labels", &data), 1);
	expect_eq(data.n, 0);
	expect_eq(find(body, "prev_profile", &data), 0);
	expect_eq(multipart_init(&m, type, str_of(body)), 0);
	expect_eq(multipart_next(&m, &part), 1);
	expect_str(part.content_type, "application/octet-stream");
	expect_eq(multipart_next(&m, &part), 1);
	expect_eq(multipart_next(&m, &part), 0);
	expect_eq(multipart_next(&m, &part), 0);
}

/* A form that was cut off anywhere is damaged as a whole. */
TEST(what_is_cut_off_is_damaged)
{
	static const char body[] = "--xX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
				   "data\r\n--xX\r\n\r\nmore\r\n--xX--";
	struct str data;

	expect_eq(find(body, "a", &data), 1);
	for (size_t n = 0; n < sizeof(body) - 1; n++)
		expect_eq(multipart_find(type, (struct str){body, n}, STR("a"), &data), -EBADMSG);
}

/* A content type without a boundary, or with an endless one, is none of a form. */
TEST(a_boundary_is_needed)
{
	char endless[128] = "multipart/form-data; boundary=";
	struct multipart m;

	memset(endless + 30, 'b', 71);
	expect_eq(multipart_init(&m, str_of(endless), STR("")), -EBADMSG);
	expect_eq(multipart_init(&m, STR("multipart/form-data"), STR("")), -EBADMSG);
	expect(multipart_is(STR(" Multipart/Form-Data;boundary=x")));
	expect(!multipart_is(STR("text/plain")));
}

/* What a stranger can make of one body is bounded. */
TEST(parts_are_bounded)
{
	char body[1024];
	size_t n = 0;
	struct str data;

	for (unsigned int i = 0; i <= MULTIPART_MAX_PARTS; i++)
		n += (size_t)snprintf(body + n, sizeof(body) - n, "--xX\r\n\r\n\r\n");
	snprintf(body + n, sizeof(body) - n, "--xX--");
	expect_eq(find(body, "a", &data), -E2BIG);
}
