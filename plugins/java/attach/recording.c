/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in recording.h. A chunk's head: "FLR\0", two 16-bit versions, the chunk's length with
 * its head as 64 bits, big-endian; 68 bytes in all. Source: the JDK, jfrChunkWriter.cpp. */
#include "java/attach/recording.h"

#include <endian.h>

#define HEAD      68
#define LENGTH_AT 8

bool recording_whole(struct str bytes)
{
	uint64_t length;

	if (!bytes.n)
		return false;
	while (bytes.n) {
		if (bytes.n < HEAD || !str_starts(bytes, STR("FLR\0")))
			return false;
		memcpy(&length, bytes.p + LENGTH_AT, sizeof(length));
		length = be64toh(length);
		if (length < HEAD || length > bytes.n)
			return false;
		bytes = str_skip(bytes, (size_t)length);
	}
	return true;
}
