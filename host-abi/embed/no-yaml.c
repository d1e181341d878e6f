/* SPDX-License-Identifier: Apache-2.0 */
/* libandiron's encoding.from_yaml, which says what to do instead. The linker takes this one before
 * the archive's, and so leaves libyaml out: a program that has a libyaml of its own would otherwise
 * have its functions called by ours, and the library needs the C library and zlib alone. */
#include "host/lang/values/library-text.h"

LIBRARY_FUNCTION(from_yaml)
{
	lang_error(l, e->place, "encoding.from_json reads JSON",
		   "encoding.from_yaml is a function of the command andiron; libandiron has no "
		   "YAML");
	return false;
}
