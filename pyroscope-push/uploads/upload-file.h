/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is to be uploaded: opened through the host's objects, so also when its process and
 * its name are gone, and laid out. Whoever parses it opens nothing itself (andiron/object.h). */
#pragma once

#include "debuginfo-upload/stripped-file.h"

#include <andiron/host.h>

struct upload_source {
	struct andiron_extension objects; /* andiron.objects/1 */
	uint64_t object;
	struct str build_id; /* what profiles call it */
	bool whole;          /* not its debug information alone */
};

struct upload_opened {
	int fd; /* to close; -1: none */
	struct elf_image image;
	char hash[33];
	const char *refused; /* a word: why it is not sent; NULL: it can be */
	struct error why;
};

/* Opens the object's separate debug file if that is of the build id and holds more than
 * the object itself, else the object. Refused: "gone" (neither can be opened), "broken",
 * "no_debuginfo" (neither holds more than exported names, which were looked up already),
 * "no_memory". [worker]. Some preads, and those of elf_image_make. */
void upload_file_open(const struct upload_source *source, struct upload_opened *ret);
void upload_file_close(struct upload_opened *opened);
