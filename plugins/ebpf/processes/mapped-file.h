/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that processes map, as far as turning a file offset into the file's
 * own address needs. Each file is read once, however many processes map it;
 * an image lives as long as somebody holds it and holds its object
 * (andiron.objects/1) meanwhile.
 */
#ifndef EBPF_PROCESSES_MAPPED_FILE_H
#define EBPF_PROCESSES_MAPPED_FILE_H

#include "base/str.h"

#include <andiron/host.h>
#include <andiron/object.h>

struct image;
struct images;

/* `objects` is borrowed. NULL when memory is short. */
struct images *images_new(const struct andiron_extension *objects);
void images_free(struct images *t);

/*
 * The image of an open file, with one reference. A file that is new is interned,
 * read, and its ids are told to the objects service. A file that is not ELF
 * is an image too. NULL when memory is short or the file cannot be interned.
 */
struct image *image_get(struct images *t, int fd, struct str path, struct str reopen);
/* The image of a file by what the kernel says of it, with one reference; NULL where nobody has it.
 * Opens nothing. */
struct image *images_find(struct images *t, const struct andiron_object_key *key);
void image_retain(struct image *image);
void image_release(struct image *image);

uint64_t image_object(const struct image *image);
bool image_is_elf(const struct image *image);

/* The file's address of the byte at `offset`; the offset itself where no
 * segment holds it, or the file is not ELF. O(segments). */
uint64_t image_address(const struct image *image, uint64_t offset);

/* What the store of unwind tables has made of the file; NULL at first. Not owned: who sets it
 * clears it. */
void image_set_unwind(struct image *image, void *made);
void *image_unwind(const struct image *image);

#endif
