/* SPDX-License-Identifier: Apache-2.0 */
/* Files to upload. Contract in upload-file.h. */
#include "pyroscope-push/uploads/upload-file.h"

#include "elf/ids.h"

#include <andiron/object.h>

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Whether it is the file of that build id; its hash is noted. */
static int identify(struct elf_file *f, struct str build_id, char hash[33], struct error *err)
{
	struct elf_ids ids;
	int r = elf_ids_read(f, &ids);

	if (r < 0)
		return error_errno(err, r, "its ids cannot be read");
	if (!str_is(build_id, ids.gnu_build_id) && !str_is(build_id, ids.go_build_id))
		return error_set(err, -ESTALE, "it has another build id by now");
	snprintf(hash, 33, "%s", ids.file_id);
	return 0;
}

static int lay_out(struct upload_opened *o, const struct upload_source *s)
{
	struct elf_file f = ELF_FILE_NULL;
	int r = elf_file_open(&f, o->fd, &o->why);

	if (r == 0)
		r = identify(&f, s->build_id, o->hash, &o->why);
	if (r == 0)
		r = elf_image_make(&o->image, &f, s->whole, &o->why);
	elf_file_close(&f);
	return r;
}

/* One of the object's files: 0, or why it is none to send. */
static int try_file(struct upload_opened *o, const struct upload_source *s, uint32_t what)
{
	const struct andiron_objects *objects = s->objects.table;
	int r = objects->open(s->objects.self, s->object, what, &o->fd);

	if (r < 0) {
		o->fd = -1;
		return error_errno(&o->why, r, "it cannot be opened any more");
	}
	r = lay_out(o, s);
	if (r == 0 && (o->image.holds & ~IMAGE_DYNSYM))
		return 0;
	if (r == 0)
		r = error_set(&o->why, -ENODATA, "it holds no names but those that are exported");
	upload_file_close(o);
	return r;
}

static const char *word(int r)
{
	switch (r) {
	case -ENOMEM:
		return "no_memory";
	case -ENODATA:
		return "no_debuginfo";
	case -ENOEXEC:
	case -ENOTSUP:
	case -E2BIG:
		return "broken";
	default:
		return "gone";
	}
}

void upload_file_open(const struct upload_source *source, struct upload_opened *ret)
{
	struct upload_opened o = {.fd = -1, .image = ELF_IMAGE_NULL};
	int r = try_file(&o, source, ANDIRON_OPEN_DEBUG);

	if (r < 0) {
		o.why = ERROR_NULL;
		r = try_file(&o, source, ANDIRON_OPEN_FILE);
	}
	o.refused = r < 0 ? word(r) : NULL;
	*ret = o;
}

void upload_file_close(struct upload_opened *opened)
{
	elf_image_free(&opened->image);
	if (opened->fd >= 0)
		close(opened->fd);
	opened->fd = -1;
}
