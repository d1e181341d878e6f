/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files: what turns a file offset into the file's own address. A file is read once, however
 * many processes map it. It lives while it is referenced, and holds its object (andiron.objects/1).
 */
#pragma once

#include "base/str.h"

#include <andiron/host.h>
#include <andiron/object.h>

struct mapped_file;
struct mapped_files;

/* `objects` is borrowed. NULL when memory is short. */
struct mapped_files *mapped_files_new(const struct andiron_extension *objects);
void mapped_files_free(struct mapped_files *t);

/* The mapped file of an open one, with one reference. A file that is new is interned, read, and the
 * objects service gets its ids. A file that is not ELF is a mapped file too. NULL when memory is
 * short or the file cannot be interned. */
struct mapped_file *mapped_file_get(struct mapped_files *t, int fd, struct str path,
				    struct str reopen);
/* The mapped file by its key, with one reference; NULL where nobody has it. Opens nothing. */
struct mapped_file *mapped_files_find(struct mapped_files *t, const struct andiron_object_key *key);
void mapped_file_retain(struct mapped_file *file);
void mapped_file_release(struct mapped_file *file);

/* What language runtimes have said of the file: bit n is that of slot n. None at first. */
struct mapped_file_runtimes {
	uint32_t asked, recognized;
};
struct mapped_file_runtimes *mapped_file_runtimes(struct mapped_file *file);
/* Of all files: other runtimes will be asked. */
void mapped_files_forget_runtimes(struct mapped_files *t);

/* Whether somebody beside so many references has the file. */
bool mapped_file_is_shared(const struct mapped_file *file, uint64_t n_refs);

uint64_t mapped_file_object(const struct mapped_file *file);
/* Whether it is known to be the file of that number on that device. */
bool mapped_file_is(const struct mapped_file *file, uint64_t device, uint64_t inode);
bool mapped_file_is_elf(const struct mapped_file *file);

/* The file's address of the byte at `offset`; the offset itself where no segment holds it, or the
 * file is not ELF. O(segments). */
uint64_t mapped_file_address(const struct mapped_file *file, uint64_t offset);

/* What the store of unwind tables has made of the file; NULL at first. Not owned: who sets it
 * clears it. */
void mapped_file_set_unwind(struct mapped_file *file, void *made);
void *mapped_file_unwind(const struct mapped_file *file);
