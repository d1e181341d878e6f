/* SPDX-License-Identifier: Apache-2.0 */
/* libbpf's log, which is one for all of a process. A header, because only those who link with
 * libbpf use it. */
#pragma once

#include <bpf/libbpf.h>
#include <dlfcn.h>

/* Keeps libbpf from writing to standard error, as it does if nobody has said where its log goes:
 * our own messages say more. A log that somebody has set is left as it is, and gets what libbpf
 * says of us. libbpf does not tell which is set, so for an instant there is none. [any], O(1). */
static inline void libbpf_log_quiet(void)
{
	libbpf_print_fn_t before = libbpf_set_print(NULL);
	Dl_info libbpf, its;

	if (before && dladdr((const void *)libbpf_set_print, &libbpf) &&
	    dladdr((const void *)before, &its) && its.dli_fbase != libbpf.dli_fbase)
		libbpf_set_print(before);
}
