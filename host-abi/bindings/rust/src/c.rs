// SPDX-License-Identifier: Apache-2.0

//! What crosses the border to C: andiron/embed.h, andiron/target.h, and of andiron/batch.h what a
//! batch is made of.
//!
//! Member by member as the headers have them, which tests/embed compares. The library is of version
//! 1.0 at least, so all of these members are there; none is read by its own `size`.

use std::os::raw::{c_char, c_void};

/// struct andiron, which only the library looks into.
#[repr(C)]
pub struct Andiron {
    _opaque: [u8; 0],
}

pub const LOG_LEVELS: u32 = 4;
pub const FORM_BATCH: u32 = 1;
pub const FORM_PPROF: u32 = 2;
pub const READ_METRICS: u32 = 1;
pub const READ_HEALTH: u32 = 2;
pub const READ_LEDGER: u32 = 3;
pub const READ_TARGETS: u32 = 4;
pub const TARGETS_SNAPSHOT: u32 = 1;

pub type LogFn = unsafe extern "C" fn(*mut c_void, u32, *const c_char, *const c_char);
pub type ProfileFn = unsafe extern "C" fn(*mut c_void, *const Profile) -> i32;
pub type TargetsFn = unsafe extern "C" fn(*mut c_void, *const Targets);

/// Never called: whatever is retained is to be released before the agent is closed, which no
/// lifetime of Rust's says.
pub type OwnerFn = unsafe extern "C" fn(*mut c_void);

#[repr(C)]
pub struct Embed {
    pub size: u32,
    pub log_level: u32,
    pub plugin_dirs: *const c_char,
    pub worker: *const c_char,
    pub queue_bytes: u64,
    pub workers: u32,
    pub reserved: u32,
    pub context: *mut c_void,
    pub log: Option<LogFn>,
    pub answers: *const c_char,
}

#[repr(C)]
pub struct Profile {
    pub size: u32,
    pub form: u32,
    pub name: *const c_char,
    pub batch: *const Batch,
    pub bytes: *const c_void,
    pub n_bytes: u64,
    pub samples: u64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub owner: *mut c_void,
    pub retain: Option<OwnerFn>,
    pub release: Option<OwnerFn>,
}

#[repr(C)]
pub struct Batch {
    pub size: u32,
    pub demangle: u32,
    pub n_columns: u32,
    pub n_segments: u32,
    pub columns: *const Column,
    pub segments: *const Segment,
    pub start_ns: i64,
    pub end_ns: i64,
    pub samples: u64,
    pub bytes: u64,
    pub producer: u64,
    pub sequence: u64,
    pub owner: *mut c_void,
    pub retain: Option<OwnerFn>,
    pub release: Option<OwnerFn>,
}

#[repr(C)]
pub struct Column {
    pub id: u32,
    pub elem_size: u32,
    pub segment: u32,
    pub reserved: u32,
    pub offset: u64,
    pub count: u64,
}

#[repr(C)]
pub struct Segment {
    pub base: *const c_void,
    pub size: u64,
    pub fd: i32,
    pub reserved: u32,
}

#[repr(C)]
pub struct Str {
    pub ptr: *const c_char,
    pub len: u64,
}

#[repr(C)]
pub struct Label {
    pub name: u32,
    pub value: u32,
}

#[repr(C)]
pub struct Target {
    pub row: u64,
    pub order: u64,
    pub fingerprint: u64,
    pub label_start: u32,
    pub n_labels: u32,
}

#[repr(C)]
pub struct Targets {
    pub size: u32,
    pub flags: u32,
    pub producer: u64,
    pub generation: u64,
    pub strings: *const Str,
    pub n_strings: u64,
    pub labels: *const Label,
    pub n_labels: u64,
    pub rows: *const Target,
    pub n_rows: u64,
    pub n_added: u64,
    pub removed: *const u64,
    pub n_removed: u64,
    pub owner: *mut c_void,
    pub retain: Option<OwnerFn>,
    pub release: Option<OwnerFn>,
}

/// `n` records of C's; none where the pointer is NULL.
///
/// # Safety
/// They are there for `'a`, and nobody changes them.
pub unsafe fn slice<'a, T>(first: *const T, n: u64) -> &'a [T] {
    if first.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(first, n as usize) }
}
