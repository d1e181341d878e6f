/* SPDX-License-Identifier: Apache-2.0 */
/* Ids kept. Contract in ids.h. */
#include "docker/ids.h"

#include <stdlib.h>

bool ids_have(const struct ids *ids, struct str id)
{
	vec_each (&ids->all, one)
		if (str_eq(*one, id))
			return true;
	return false;
}

bool ids_add(struct ids *ids, struct str id)
{
	char *copy = str_dup(id);

	if (copy && vec_push(&ids->all, ((struct str){copy, id.n})))
		return true;
	free(copy);
	return false;
}

void ids_clear(struct ids *ids)
{
	vec_each (&ids->all, one)
		free((char *)(uintptr_t)one->p);
	ids->all.n = 0;
}

void ids_fini(struct ids *ids)
{
	ids_clear(ids);
	vec_free(&ids->all);
}
