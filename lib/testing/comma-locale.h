/* SPDX-License-Identifier: Apache-2.0 */
/* A locale whose numbers have a decimal comma, as an agent that we are a part of may have set. It
 * is the C library's C.utf8 with one character changed, so no locale needs to be installed. */
#pragma once

/* Sets it for this process. Skips the test where the C library has no such file. */
void test_comma_locale(void);
