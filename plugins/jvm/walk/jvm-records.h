/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the plugin and its BPF program say to each other: what a process's JVM looks like (written
 * by the plugin when the process is claimed), and what names are made of (reported by the program
 * when it meets a method or a place in compiled code that is not known yet).
 *
 * Words of HotSpot: a blob is a piece of compiled code (CodeBlob), an nmethod is the blob of a Java
 * method, a codelet is a piece of the interpreter. Words of ours: a place is an address in an
 * nmethod; its site is the list of the methods that were inlined there, innermost first.
 *
 * Offsets are those of the JVM's own tables (vm-structs.h). JVM_NONE stands for a member that this
 * version does not have. */
#pragma once

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define JVM_NONE 0xffffu

#define JVM_HEAPS   4 /* code heaps; JDK 8 has one, 9 and later have three, some vendors four */
#define JVM_ENTRIES 40
#define JVM_EXITS   40
#define JVM_INLINED 32 /* methods that one place in compiled code may be in */

/* Longest texts that are reported; what is longer is cut. Of a line table the first bytes. */
#define JVM_CLASS_BYTES  512
#define JVM_METHOD_BYTES 256
#define JVM_FILE_BYTES   128
#define JVM_LINE_BYTES   1024
#define JVM_TEXT_BYTES   (JVM_CLASS_BYTES + JVM_METHOD_BYTES + JVM_FILE_BYTES + JVM_LINE_BYTES)

#define JVM_REPORTED 8192u /* sets of names and sites known to be reported */

/* The kind of a frame: the upper eight of `what`'s 56 bits. */
#define JVM_FRAME_METHOD 1u /* what: bytecode's index; where: id of the method */
#define JVM_FRAME_SITE   2u /* where: id of the site */
#define JVM_FRAME_STUB   3u /* where: id of the stub's name */
#define JVM_FRAME_MARK   4u /* what: JVM_MARK_* */

#define JVM_MARK_UNKNOWN 1u /* a JVM that the plugin does not know */
#define JVM_MARK_FROZEN  2u /* here stand frames of a virtual thread that are in the Java heap */

#define JVM_KIND(what)    ((__u32)((what) >> 48 & 0xff))
#define JVM_WHAT(kind, x) ((__u64)(kind) << 48 | (x))

#define JVM_BCI_NONE 0xffffu /* no bytecode, or none is known */

/* How a version lays things out. */
#define JVM_CODE_POINTER   1u  /* CodeBlob::_code_begin is an address, else an offset */
#define JVM_ENTRY_OFFSET   2u  /* entry points are offsets in the code, else addresses */
#define JVM_DEOPT_POINTER  4u  /* deoptimization handlers are addresses, else offsets in the blob */
#define JVM_IMMUTABLE      8u  /* debug information is outside of the code cache (23) */
#define JVM_MUTABLE        16u /* metadata is outside of the code cache (25) */
#define JVM_SCOPES_POINTER 32u /* CompiledMethod::_scopes_data_begin is an address */
#define JVM_NO_ZERO_BYTES  64u /* compressed numbers never have a zero byte (19) */
#define JVM_SHORT_COMPLETE 128u /* CodeBlob::_frame_complete_offset has 16 bits */

struct jvm_offsets {
	__u16 flags;
	__u16 heap_header; /* bytes before a blob */
	__u16 heap_used;

	/* CodeBlob */
	__u16 blob_bytes, blob_name, blob_size, blob_kind, blob_code, blob_data;
	__u16 blob_frame_complete, blob_frame_size, blob_mutable, blob_relocation_size;
	__u16 kind_nmethod, kind_upcall;

	/* nmethod */
	__u16 nmethod_bytes, nmethod_method, nmethod_entry_bci, nmethod_compile_id;
	__u16 nmethod_entry, nmethod_osr_entry, nmethod_deopt, nmethod_deopt_mh, nmethod_orig_pc;
	__u16 nmethod_immutable, nmethod_metadata, nmethod_scopes_data, nmethod_scopes_pcs;
	__u16 nmethod_pcs_limit;

	/* Method, ConstMethod, ConstantPool, Klass, Symbol */
	__u16 method_const, const_bytes, const_pool, const_size, const_flags, const_code_size;
	__u16 const_name, pool_bytes, pool_holder, pool_source, klass_name, klass_source;
	__u16 symbol_length, symbol_body, flag_lines;

	__s16 frame_method, frame_bcp; /* words from the interpreter's frame pointer */
	__u16 entry_words;             /* of a ContinuationEntry, 0: this JVM has none */
};

struct jvm_heap {
	__u64 low;
	__u64 high;
	__u64 segments; /* of the map that leads from a segment to the start of its block */
	__u32 shift;    /* of a segment */
	__u32 reserved;
};

/* A method's entry in the interpreter, by offset in it: up to `popped` the return address is on the
 * stack, up to `pushed` in rax; then it is pushed, and the frame pointer behind it. */
struct jvm_entry {
	__u32 start;
	__u32 limit;
	__u32 popped;
	__u32 pushed;
};

/* The end of a method in the interpreter: from `left` on the frame is gone, from `popped` on the
 * return address is in a register, from `moved` on the stack pointer is the caller's. */
struct jvm_exit {
	__u32 left;
	__u32 popped;
	__u32 moved;
	__u32 limit;
	__u32 ret; /* DWARF number of the return address's register */
	__u32 sp;  /* of the one that has the caller's stack pointer before `moved` */
};

struct jvm_process {
	__u64 seed;  /* of the ids of its methods and sites: secret, and no other process's */
	__u32 id;    /* of its entry in the plugin's table */
	__u32 known; /* 0: its code is claimed, and a stack through it has a mark */
	__u64 interpreter;
	__u64 interpreter_limit;
	__u64 call_stub; /* where Java code returns to native code */
	__u32 n_heaps;
	__u32 n_entries;
	__u32 n_exits;
	__u32 entries_start; /* offsets in the interpreter: all entries are between them */
	__u32 entries_limit;
	__u16 call_stub_before; /* bytes of the stub that end at `call_stub`, 0: not known */
	__u16 call_stub_behind; /* and that begin there */
	struct jvm_offsets at;
	struct jvm_heap heaps[JVM_HEAPS];
	struct jvm_entry entries[JVM_ENTRIES];
	struct jvm_exit exits[JVM_EXITS];
};

/* A place in compiled code. */
struct jvm_place {
	__u64 seed; /* the process's */
	__u64 nmethod;
	__u32 compile_id;
	__u32 offset;
	__u32 call; /* 1: of a return address */
	__u32 reserved;
};

#define JVM_REPORT_NAME 1u
#define JVM_REPORT_SITE 2u

struct jvm_report {
	__u16 kind;
	__u16 cut; /* texts that are longer: bit 0 the class's name, 1 the method's, 2 the file's */
	__u32 process; /* struct jvm_process's id */
	__u64 id;
};

/* A method's name, or a stub's, which has no class. An id covers the addresses that the name was
 * read from, so a method that took another's place is another one. */
struct jvm_name {
	struct jvm_report head;
	__u16 class_bytes, method_bytes, file_bytes, line_bytes;
	__u32 no_zero_bytes; /* how the line table's numbers are written (line-table.h) */
	__u32 reserved;
	/* The class, the method, the file and the line table, one behind the other. */
	char text[JVM_TEXT_BYTES];
};

struct jvm_site {
	struct jvm_report head;
	__u32 n;
	__u32 cut; /* 1: before the last one there are more */
	__u64 methods[JVM_INLINED];
	__u16 bcis[JVM_INLINED];
};
