/* SPDX-License-Identifier: Apache-2.0 */
/* What a JVM says of itself: gHotSpotVMStructs, gHotSpotVMTypes and gHotSpotVMIntConstants, the
 * tables that libjvm.so exports for its serviceability agent. They are read from the process, where
 * they are relocated, and anew for each process: a process that forges its own misleads nobody
 * else. The names that their entries point to are the file's, which is read once: there are 2 MB of
 * them, of which a hundred are wanted. */
#pragma once

#include "runtime-kit/target-memory.h"

#include <stddef.h>
#include <stdint.h>

/* The symbols that lead to the tables. */
extern const char *const vm_symbols[];
#define VM_SYMBOLS 15

/* Members, by enum: offset or, of a static one, the address; sizes of types; constants. */
#define VM_MEMBERS(X)                                                                              \
	X(HEAP_MEMORY, "CodeHeap", "_memory")                                                      \
	X(HEAP_SEGMAP, "CodeHeap", "_segmap")                                                      \
	X(HEAP_SHIFT, "CodeHeap", "_log2_segment_size")                                            \
	X(SPACE_LOW, "VirtualSpace", "_low_boundary")                                              \
	X(SPACE_HIGH, "VirtualSpace", "_high_boundary")                                            \
	X(CACHE_HEAPS, "CodeCache", "_heaps")                                                      \
	X(CACHE_HEAP, "CodeCache", "_heap")                                                        \
	X(ARRAY_LEN, "GrowableArrayBase", "_len")                                                  \
	X(ARRAY_LEN_8, "GenericGrowableArray", "_len")                                             \
	X(ARRAY_DATA, "GrowableArray<int>", "_data")                                               \
	X(INTERPRETER, "AbstractInterpreter", "_code")                                             \
	X(QUEUE_BUFFER, "StubQueue", "_stub_buffer")                                               \
	X(QUEUE_LIMIT, "StubQueue", "_buffer_limit")                                               \
	X(QUEUE_END, "StubQueue", "_queue_end")                                                    \
	X(QUEUE_STUBS, "StubQueue", "_number_of_stubs")                                            \
	X(CODELET_SIZE, "InterpreterCodelet", "_size")                                             \
	X(CODELET_TEXT, "InterpreterCodelet", "_description")                                      \
	X(CALL_STUB, "StubRoutines", "_call_stub_return_address")                                  \
	X(BLOB_NAME, "CodeBlob", "_name")                                                          \
	X(BLOB_SIZE, "CodeBlob", "_size")                                                          \
	X(BLOB_KIND, "CodeBlob", "_kind")                                                          \
	X(BLOB_CODE_BEGIN, "CodeBlob", "_code_begin")                                              \
	X(BLOB_CODE_OFFSET, "CodeBlob", "_code_offset")                                            \
	X(BLOB_DATA, "CodeBlob", "_data_offset")                                                   \
	X(BLOB_COMPLETE, "CodeBlob", "_frame_complete_offset")                                     \
	X(BLOB_FRAME_SIZE, "CodeBlob", "_frame_size")                                              \
	X(BLOB_MUTABLE, "CodeBlob", "_mutable_data")                                               \
	X(BLOB_RELOCATION, "CodeBlob", "_relocation_size")                                         \
	X(NMETHOD_METHOD, "nmethod", "_method")                                                    \
	X(COMPILED_METHOD, "CompiledMethod", "_method")                                            \
	X(NMETHOD_BCI, "nmethod", "_entry_bci")                                                    \
	X(NMETHOD_ID, "nmethod", "_compile_id")                                                    \
	X(NMETHOD_ENTRY, "nmethod", "_verified_entry_point")                                       \
	X(NMETHOD_ENTRY_OFFSET, "nmethod", "_verified_entry_offset")                               \
	X(NMETHOD_OSR, "nmethod", "_osr_entry_point")                                              \
	X(COMPILED_DEOPT, "CompiledMethod", "_deopt_handler_begin")                                \
	X(COMPILED_DEOPT_MH, "CompiledMethod", "_deopt_mh_handler_begin")                          \
	X(NMETHOD_DEOPT_8, "nmethod", "_deoptimize_offset")                                        \
	X(NMETHOD_DEOPT_MH_8, "nmethod", "_deoptimize_mh_offset")                                  \
	X(NMETHOD_DEOPT, "nmethod", "_deopt_handler_offset")                                       \
	X(NMETHOD_DEOPT_MH, "nmethod", "_deopt_mh_handler_offset")                                 \
	X(NMETHOD_DEOPT_ENTRY, "nmethod", "_deopt_handler_entry_offset")                           \
	X(NMETHOD_ORIG_PC, "nmethod", "_orig_pc_offset")                                           \
	X(NMETHOD_IMMUTABLE, "nmethod", "_immutable_data")                                         \
	X(NMETHOD_METADATA, "nmethod", "_metadata_offset")                                         \
	X(COMPILED_SCOPES, "CompiledMethod", "_scopes_data_begin")                                 \
	X(NMETHOD_SCOPES, "nmethod", "_scopes_data_offset")                                        \
	X(NMETHOD_PCS, "nmethod", "_scopes_pcs_offset")                                            \
	X(NMETHOD_DEPENDENCIES, "nmethod", "_dependencies_offset")                                 \
	X(METHOD_CONST, "Method", "_constMethod")                                                  \
	X(CONST_POOL, "ConstMethod", "_constants")                                                 \
	X(CONST_SIZE, "ConstMethod", "_constMethod_size")                                          \
	X(CONST_FLAGS, "ConstMethod", "_flags")                                                    \
	X(CONST_FLAGS_21, "ConstMethod", "_flags._flags")                                          \
	X(CONST_CODE_SIZE, "ConstMethod", "_code_size")                                            \
	X(CONST_NAME, "ConstMethod", "_name_index")                                                \
	X(POOL_HOLDER, "ConstantPool", "_pool_holder")                                             \
	X(POOL_SOURCE, "ConstantPool", "_source_file_name_index")                                  \
	X(CLASS_SOURCE, "InstanceKlass", "_source_file_name_index")                                \
	X(CLASS_NAME, "Klass", "_name")                                                            \
	X(SYMBOL_LENGTH, "Symbol", "_length")                                                      \
	X(SYMBOL_BODY, "Symbol", "_body")                                                          \
	X(RELEASE, "Abstract_VM_Version", "_s_vm_release")                                         \
	X(MAJOR, "Abstract_VM_Version", "_vm_major_version")                                       \
	X(CONT_ENTRY, "JavaThread", "_cont_entry")

#define VM_TYPES(X)                                                                                \
	X(SIZEOF_HEAP_BLOCK, "HeapBlock")                                                          \
	X(SIZEOF_CODELET, "InterpreterCodelet")                                                    \
	X(SIZEOF_BLOB, "CodeBlob")                                                                 \
	X(SIZEOF_NMETHOD, "nmethod")                                                               \
	X(SIZEOF_CONST, "ConstMethod")                                                             \
	X(SIZEOF_POOL, "ConstantPool")                                                             \
	X(SIZEOF_ENTRY, "ContinuationEntry")

#define VM_CONSTANTS(X)                                                                            \
	X(SENDER_SP, "frame::interpreter_frame_sender_sp_offset")                                  \
	X(LAST_SP, "frame::interpreter_frame_last_sp_offset")                                      \
	X(LINES, "ConstMethod::_has_linenumber_table")                                             \
	X(LINES_21, "ConstMethodFlags::_misc_has_linenumber_table")                                \
	X(KIND_NMETHOD, "CodeBlobKind::Nmethod")                                                   \
	X(KIND_UPCALL, "CodeBlobKind::Upcall")

#define VM_ENUM(id, ...) VM_##id,
enum vm_id {
	VM_MEMBERS(VM_ENUM) VM_TYPES(VM_ENUM) VM_CONSTANTS(VM_ENUM) VM_IDS,
};
#undef VM_ENUM

#define VM_ABSENT UINT64_MAX

struct vm_structs {
	uint64_t values[VM_IDS];
};

#define VM_TABLES 3

/* Which entries are the wanted ones. The file's names say it, so it holds for each process with
 * entries that point to the same ones; whether they do is looked at in each process. */
struct vm_places {
	uint64_t key; /* random, of the hash: no process can have its entries look like others' */
	uint64_t hashes[VM_TABLES]; /* of where the entries point to; 0: nothing is known */
	uint16_t at[VM_IDS];        /* and one; 0: there is none */
};

/* The file of a process's library. `read`: bytes at an address of the file's own; all, or false. */
struct vm_library {
	struct vm_places *places;
	uint64_t bias; /* of its addresses in the process */
	bool (*read)(void *context, uint64_t address, void *ret, size_t n);
	void *context;
};

/* Of a process whose symbols stand at `addresses` (as vm_symbols has them). Without a library
 * (NULL), or where its file is too short, names are read from the process. 0; -EAGAIN: they are not
 * relocated yet; or another negative errno. Six reads of the process; in the first one of a library
 * of the file as well. */
int vm_structs_read(struct target_memory *memory, const uint64_t *addresses,
		    const struct vm_library *library, struct vm_structs *ret);

/* What is missing is called by its name, "CodeBlob::_name". Lives for ever. */
const char *vm_name(enum vm_id id);
