/* SPDX-License-Identifier: Apache-2.0 */
/* list-targets ROLE LIST-FILE: the targets that a recorded list becomes, one per line, for
 * comparing the wires that a server may answer in. Objects that a role looks up elsewhere are not
 * there. */
#include "base/file.h"
#include "k8s-discovery/roles/role.h"
#include "k8s-discovery/api/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

struct world {
	struct store store;
	const struct role *role;
};

static int keep(void *context, const struct stream_event *e)
{
	struct world *w = context;

	return store_set(&w->store, 0, w->role->primary, e->object);
}

static int read_list(struct world *w, struct str list)
{
	struct stream *s = stream_new(w->role->primary, false, keep, w);
	struct error err = ERROR_NULL;
	int r = stream_feed(s, list, &err);

	if (r == 0)
		r = stream_end(s, &err);
	if (r < 0)
		fprintf(stderr, "list-targets: %s\n", err.text);
	stream_free(s);
	return r;
}

static void print_targets(struct world *w)
{
	struct label_rows rows = {0};
	struct builder b = {&w->store, {.ephemeral = true, .without_ip = true}, &rows};

	vec_each (&w->store.slots, slot) {
		label_rows_begin(&rows);
		w->role->build(&b, slot->object);
		vec_each (&rows.rows, row) {
			for (uint32_t i = 0; i < row->n; i++) {
				const struct target_label *l = &rows.labels.p[row->first + i];

				printf("%.*s=%.*s\t", STR_FMT(l->name), STR_FMT(l->value));
			}
			printf("\n");
		}
	}
	label_rows_fini(&rows);
}

int main(int argc, char **argv)
{
	struct buf list = BUF_NULL;
	struct world w = {0};
	int r;

	w.role = argc == 3 ? role_find(str_of(argv[1])) : NULL;
	if (!w.role || file_read(AT_FDCWD, argv[2], &list, (size_t)1 << 30) < 0)
		return 2;
	r = read_list(&w, buf_str(&list));
	print_targets(&w);
	store_free(&w.store);
	buf_free(&list);
	return r < 0;
}
