/* SPDX-License-Identifier: Apache-2.0 */
/* The toy: a bytecode machine whose frames lie in a list of its own, as an interpreter's do. What
 * the machine keeps in memory, and its BPF program reads there. */
#pragma once

#ifndef KERNEL_TYPES_H
#include <linux/types.h>
#endif

#define TOY_NAME 24

struct toy_op {
	__u32 what, argument;
};

struct toy_function {
	char name[TOY_NAME];
	const struct toy_op *code;
};

/* The machine is entered by a native function, and calls others that enter it again: a run. `first`
 * is the outermost frame of one; all of its frames know where the native stack goes on behind it.
 */
struct toy_frame {
	__u64 back;     /* the frame that called, also beyond `first`; 0: none */
	__u64 function; /* struct toy_function */
	__u32 line;     /* of the operation that is being run, from 1 on */
	__u32 first;
	__u64 record; /* where the entered function saved frame pointer and return address */
	__u64 cfa;    /* its canonical frame address */
};

/* What the program needs of a process: where it keeps its innermost frame, and the machine's code.
 * Whatever else is claimed was made at run time, by frame pointers. */
struct toy_process {
	__u64 top;
	__u64 from, to;
};

#define TOY_COMPILED 1 /* instead of a function: code made at run time */

/* What a function is called, kept by the BPF program as long as there is room. */
struct toy_name_key {
	__u64 tgid;
	__u64 function;
};

struct toy_name {
	char text[TOY_NAME];
};
