/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the kernel keeps what kernel-tables.h needs, by the kernel's own look-up of names, which
 * takes microseconds: to print /proc/kallsyms takes a tenth of a second. Run once, by user space.
 * Since 5.16. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

#include "bpfwire/kernel-tables.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 found[KERNEL_SYMBOLS] = {};

#define FIND(symbol, name) bpf_kallsyms_lookup_name(name, sizeof(name), 0, &found[symbol])

SEC("syscall")
int find(void *context)
{
	FIND(KERNEL_SYMBOL_TEXT, "_stext");
	FIND(KERNEL_SYMBOL_TEXT_END, "_etext");
	FIND(KERNEL_SYMBOL_ADDRESSES, "__start_orc_unwind_ip");
	FIND(KERNEL_SYMBOL_ADDRESSES_END, "__stop_orc_unwind_ip");
	FIND(KERNEL_SYMBOL_ENTRIES, "__start_orc_unwind");
	FIND(KERNEL_SYMBOL_ENTRIES_END, "__stop_orc_unwind");
	FIND(KERNEL_SYMBOL_HOOKS, "return_to_handler");
	FIND(KERNEL_SYMBOL_HOOKS + 1, "arch_rethook_trampoline");
	FIND(KERNEL_SYMBOL_HOOKS + 2, "__kretprobe_trampoline");
	return 0;
}
