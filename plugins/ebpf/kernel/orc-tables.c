/* SPDX-License-Identifier: Apache-2.0 */
/* See orc-tables.h. */
#include "ebpf/kernel/orc-tables.h"

#include "ebpf/kernel/kernel-support.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stddef.h>
#include <string.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "symbols.skel.h"
#pragma GCC diagnostic pop

/* The cache tells granules of code by their distance from its start. */
bool orc_make(const __u64 *symbols, struct kernel_tables *ret)
{
	uint64_t text = symbols[KERNEL_SYMBOL_TEXT], text_end = symbols[KERNEL_SYMBOL_TEXT_END];
	uint64_t addresses = symbols[KERNEL_SYMBOL_ADDRESSES],
		 entries = symbols[KERNEL_SYMBOL_ENTRIES];
	uint64_t n = (symbols[KERNEL_SYMBOL_ADDRESSES_END] - addresses) / sizeof(__s32);

	if (text == 0 || text % KERNEL_GRANULE != 0 || text_end <= text ||
	    text_end - text > KERNEL_TEXT_MAX)
		return false;
	if (addresses == 0 || entries == 0 || n == 0 || n >= KERNEL_ENTRIES_MAX ||
	    addresses + n * sizeof(__s32) != symbols[KERNEL_SYMBOL_ADDRESSES_END] ||
	    entries + n * sizeof(struct kernel_entry) != symbols[KERNEL_SYMBOL_ENTRIES_END])
		return false;
	*ret = (struct kernel_tables){.text = text,
				      .text_end = text_end,
				      .addresses = addresses,
				      .entries = entries,
				      .n = (uint32_t)n};
	memcpy(ret->return_hooks, &symbols[KERNEL_SYMBOL_HOOKS], sizeof(ret->return_hooks));
	return true;
}

static bool has_bits(const struct btf *btf, const struct btf_type *type, const char *name,
		     uint32_t offset, uint32_t n)
{
	const struct btf_member *m = btf_members(type);

	for (uint32_t i = 0; i < btf_vlen(type); i++)
		if (strcmp(btf__name_by_offset(btf, m[i].name_off), name) == 0)
			return btf_member_bit_offset(type, i) == offset &&
			       btf_member_bitfield_size(type, i) == n;
	return false;
}

/* Whether entries are of the format of struct kernel_entry: up to 6.3 `type` had fewer bits. */
static bool is_known_format(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int32_t id = btf ? btf__find_by_name_kind(btf, "orc_entry", BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	bool known = type && type->size == sizeof(struct kernel_entry) &&
		     has_bits(btf, type, "sp_offset", 0, 0) &&
		     has_bits(btf, type, "bp_offset", 16, 0) &&
		     has_bits(btf, type, "sp_reg", 32, 4) && has_bits(btf, type, "bp_reg", 36, 4) &&
		     has_bits(btf, type, "type", 40, 3) && has_bits(btf, type, "signal", 43, 1);

	btf__free(btf);
	return known;
}

bool orc_may_be_known(void)
{
#if defined(__x86_64__)
	return kernel_support_since(6, 4);
#else
	return false;
#endif
}

struct kernel_tables orc_tables(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct kernel_tables tables = {0};
	struct symbols_bpf *skel;

	if (!orc_may_be_known() || !is_known_format())
		return tables;
	skel = symbols_bpf__open_and_load();
	if (!skel)
		return tables;
	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.find), &options) == 0)
		orc_make(skel->bss->found, &tables);
	symbols_bpf__destroy(skel);
	return tables;
}

void orc_show(volatile struct kernel_tables *to)
{
	struct kernel_tables tables = orc_tables();
	uint32_t n = tables.n;

	tables.n = 0;
	*to = tables;
	__atomic_store_n(&to->n, n, __ATOMIC_RELEASE);
}
