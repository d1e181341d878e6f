/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's names. Contract in kernel-names.h. */
#include "symbolize/names/kernel-names.h"

#include "base/cleanup.h"

#include <errno.h>

void kernel_init(struct kernel *k, const struct andiron_extension *objects)
{
	*k = (struct kernel){.objects = objects->table,
			     .objects_self = objects->self,
			     .next_ns = INT64_MIN,
			     .pause_ns = KERNEL_REREAD_NS};
}

void kernel_fini(struct kernel *k)
{
	kallsyms_free(&k->symbols);
	k->loaded = false;
}

size_t kernel_bytes(const struct kernel *k)
{
	return k->loaded ? kallsyms_bytes(&k->symbols) : 0;
}

/* Reads the list; the one that is there stays if that fails. */
static int read_list(struct kernel *k, struct kallsyms *ret)
{
	_cleanup_(closep) int fd = -1;
	int32_t opened;
	int r = k->objects->open(k->objects_self, ANDIRON_OBJECT_KERNEL, ANDIRON_OPEN_KALLSYMS,
				 &opened);

	if (r < 0)
		return error_errno(&k->why, r, "cannot open the list of kernel symbols");
	fd = opened;
	r = kallsyms_load(ret, fd, &k->why);
	if (r == -ENOMEM)
		error_errno(&k->why, r, "cannot keep the list of kernel symbols");
	return r;
}

static void refresh(struct kernel *k)
{
	struct kallsyms symbols = KALLSYMS_NULL;

	k->reads++;
	if (read_list(k, &symbols) < 0)
		return;
	k->why = ERROR_NULL;
	kallsyms_free(&k->symbols);
	k->symbols = symbols;
	k->loaded = true;
}

static bool known(const struct kernel *k, uint64_t address, struct str *ret)
{
	struct str module;

	return k->loaded && kallsyms_find(&k->symbols, address, ret, &module);
}

static int64_t longer(int64_t pause_ns)
{
	return pause_ns < KERNEL_PAUSE_MAX_NS / 2 ? pause_ns * 2 : KERNEL_PAUSE_MAX_NS;
}

int kernel_find(struct kernel *k, uint64_t address, int64_t now_ns, struct str *ret)
{
	if (known(k, address, ret))
		return 0;
	if (now_ns >= k->next_ns) {
		bool helped;

		refresh(k);
		helped = known(k, address, ret);
		k->pause_ns = helped ? KERNEL_REREAD_NS : longer(k->pause_ns);
		k->next_ns = now_ns + k->pause_ns;
		if (helped)
			return 0;
	}
	return k->loaded ? -ENOENT : k->why.code;
}
