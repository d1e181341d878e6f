/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the BPF program and the plugin agree on: how each version of CPython lays its structures
 * out, where a process has its runtime, and the record by which a code object is reported once.
 *
 * The program knows no version. All that differs stands in `struct python_layout`, one for each
 * binary, so that a new version is a new table and not a new program. */
#pragma once

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define PYTHON_LAYOUTS 256u  /* binaries with an interpreter in use at once */
#define PYTHON_PROCS   8192u /* processes */
#define PYTHON_THREADS 8192u /* threads whose state is remembered */
#define PYTHON_CODES   4096u /* sets of code objects known to be reported */
#define PYTHON_RING    (1u << 19)

/* How language frames are found, and how they belong to an activation of the loop. */
#define PYTHON_UNKNOWN 0u /* not at all: one marked frame */
#define PYTHON_OBJECTS 1u /* to 3.9: one PyFrameObject for each activation, in order */
#define PYTHON_COUNTED 2u /* 3.10: as before, and a CFrame in each activation's machine frame */
#define PYTHON_CFRAMES 3u /* 3.11, 3.12: a CFrame names the innermost frame of its activation */
#define PYTHON_ENTRIES 4u /* from 3.13: an entry frame, in the machine frame, ends an activation */

/* How `where` says which instruction is executed, and how a line table is written. */
#define PYTHON_LINES_LNOTAB    0u /* to 3.9; `where` is a byte */
#define PYTHON_LINES_RANGES    1u /* 3.10; a unit of two bytes */
#define PYTHON_LINES_LOCATIONS 2u /* from 3.11; a byte */
#define PYTHON_LINES_TASK      3u /* there is none: the name is a task's */

/* Machine code of the loop whose frame is whole: [from, to) as the file counts. Elsewhere, in the
 * function's first and last instructions, an activation has no frame of the language. */
struct python_body {
	__u32 from, to;
};

#define PYTHON_BODIES   24u
#define PYTHON_FP       1u
#define PYTHON_NO_FIELD 0xffffu

struct python_layout {
	__u32 kind;       /* PYTHON_OBJECTS … */
	__u32 version;    /* PY_VERSION_HEX */
	__u32 cfa_offset; /* of a whole machine frame: from the stack or the frame pointer */
	__u16 cfa_fp;     /* PYTHON_FP: from the frame pointer */
	__u16 n_bodies;
	struct python_body bodies[PYTHON_BODIES];

	__u32 runtime_head;      /* of the list of interpreters */
	__u32 runtime_size;      /* 0: not known */
	__u32 runtime_gil_state; /* to 3.10: the state that holds the GIL; 0: not known */
	__u32 interp_threads;    /* head of its list of threads */
	__u32 interp_next;
	__u16 runtime_current; /* 3.6: `runtime` is a pointer to a thread's state */
	__u16 thread_next;
	__u16 thread_interp;
	__u16 thread_id;
	__u16 thread_top;   /* current frame, or CFrame */
	__u16 thread_frame; /* PYTHON_COUNTED: the current frame */
	__u16 cframe_frame;
	__u16 cframe_previous;

	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instruction; /* an address, or an index where the kind is to 3.10 */
	__u16 frame_entry;       /* 3.11: a byte, not 0 in the outermost frame of an activation */
	__u16 frame_owner;       /* a byte; entry frames have one of 3 or more */
	__u16 frame_state;       /* to 3.10: a byte, 0 or 1: see `running` */
	__u16 frame_tlbc;        /* free-threaded 3.14: which copy of the bytecode is executed */
	__u16 running;           /* to 3.10: what frame_state is while the frame is executed */

	__u16 code_first_line;
	__u16 code_file;
	__u16 code_name;
	__u16 code_lines;
	__u16 code_bytes;     /* where instructions begin */
	__u16 code_traceable; /* 3.12: int, the first instruction that is the function's own */
	__u16 code_tlbc;
	__u16 code_changes; /* 3.11: a half-word that counts calls */
	__u16 text_hash;    /* to 3.11, where a code object has no number (`co_version`) */
	__u16 object_type;

	__u16 type_name;
	__u16 var_size;
	__u16 bytes_data;
	__u16 text_length;
	__u16 text_state;
	__u16 text_ascii;   /* where characters of ASCII begin */
	__u16 text_compact; /* where others do */
	__u16 text_shift;   /* bit of `text_state` with `kind`; `compact`, `ascii` follow */
	__u16 type_flags;
	__u16 frame_span, code_span; /* bytes of them that are read */
	__u16 free_threaded;
};

#define PYTHON_FRAME_SPAN 128u
#define PYTHON_CODE_SPAN  256u
#define PYTHON_FRAME_ANY  (PYTHON_FRAME_SPAN - 8) /* the last place of a field */
#define PYTHON_CODE_ANY   (PYTHON_CODE_SPAN - 8)

/* Where asyncio's tasks keep who awaits them, with what it takes to read that. From 3.14 on
 * `_asyncio` says it, beside what the interpreter says. By index of the layout. */
struct python_tasks {
	__u16 thread_task; /* of a thread's state: the task that is executed */
	__u16 task_span;   /* bytes of a task or future that are read */
	__u16 task_name, task_coro, task_awaiter;
	__u16 task_is_task; /* a byte: a task, or a future */
	__u16 task_is_set;  /* a byte: the awaiter is a set of them */
	__u16 gen_frame;    /* a coroutine's frame is in it */
	__u16 gen_state;    /* a byte */
	__u16 gen_span;
	/* What gen_state is: suspended; suspended as it awaits something; executed. */
	__u16 suspended, awaiting, executing;
	__u16 frame_stack; /* where a frame's operands end: the last is what it awaits */
	__u16 set_used, set_table, set_mask;
};

/* A process; by pid. */
struct python_proc {
	__u64 bias; /* of the file that has the loop: address in the process less the file's own */
	__u64 runtime;   /* address of _PyRuntime */
	__u64 salt;      /* of ids */
	__u32 layout;    /* index into `layouts` */
	__u32 asyncio;   /* 1: its layout in `tasks` holds */
	__u64 code_type; /* the program's own: address of PyCode_Type, once it was met */
};

/* Where the last call for a thread ended. It holds in the same walk: as long as the words that were
 * written then stand where they stood. Another walk writes other ones there, since it begins with
 * native frames. */
struct python_cursor {
	__u64 state, sp, next, anchor, words[2];
	__u32 n_words; /* 0: none */
	__u32 reserved;
};

/* A thread, by tgid << 32 | tid. */
struct python_thread {
	__u64 states[2]; /* PyThreadState that were found to be its own, the one last used first */
	__u64 interp, next; /* where the search goes on */
	__u64 stack;        /* a frame that had others before it in its chunk; 0: none had */
	struct python_cursor cursor;
};

/* What a pair of words says: `what` is an id of the code object, or one of these. */
#define PYTHON_WHAT_MARKER 1u /* `where`: the marker */

#define PYTHON_MARKER_VERSION 1u /* this version is not known */
#define PYTHON_MARKER_THREAD  2u /* the thread's state was not found */
#define PYTHON_MARKER_FRAME   3u /* a frame could not be read, or is none */
#define PYTHON_MARKER_ORDER   4u /* native frames of the calls before it stand behind it */
#define PYTHON_MARKER_AWAITER 5u /* who awaits the task could not be read */
/* What is behind is not called by what is before it, but awaits it. */
#define PYTHON_MARKER_TASK    6u /* a task without a name of its own */
#define PYTHON_MARKER_SEVERAL 7u /* several tasks, none of which is behind */
#define PYTHON_MARKER_OTHERS  8u /* more tasks than are read, none of which is behind */
#define PYTHON_MARKER_DEEPER  9u /* the task's coroutines further in are not here */
#define PYTHON_MARKER_DEPTH   10u /* the activation has more frames; the outer ones are not here */

#define PYTHON_ID_MIN  16u
#define PYTHON_ID_MASK 0xffffffffffffffull
#define PYTHON_NO_LINE 0xffffffffull /* low half of `where` */

/* A code object, reported once. Followed by name, file and line table; of a long name the first
 * bytes, of a long path the last ones. */
#define PYTHON_TEXT_MAX  256u
#define PYTHON_LINES_MAX 8192u

struct python_record {
	__u64 id;
	__u64 table; /* address of the line table's bytes */
	__u32 pid;
	__u32 first_line;
	__u32 lines_kind;            /* PYTHON_LINES_… */
	__u32 n_lines;               /* bytes of the table that are here */
	__u32 all_lines;             /* bytes that it has */
	__u16 n_name, n_file;        /* bytes */
	__u8 name_width, file_width; /* of a character, 0: ASCII */
	__u8 reserved[6];
};
