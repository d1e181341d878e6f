// SPDX-License-Identifier: Apache-2.0

//! Profile batches: the columns of andiron/batch.h, whose text says what is in each.
//!
//! A batch is C's memory, borrowed for the call that gave it: its lifetime lets nobody read it
//! later. Whatever stands in one, no read leaves its memory: a column that does has the batch
//! refused, and a record, text or index that is not there reads as zero.

use std::mem::size_of;
use std::time::SystemTime;

use crate::agent::time_of;
use crate::c;
use crate::error::{Error, EBADMSG};

/// One of a batch's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u32)]
pub enum Column {
    Strings = 1,
    Functions,
    Lines,
    Locations,
    Mappings,
    Stacks,
    Frames,
    Attributes,
    AttributeIndices,
    Links,
    Types,
    Groups,
    Rows,
    Times,
    Losses,
    Encodeds,
}

const COLUMNS: usize = Column::Encodeds as usize + 1;

/// [`Location::kind`]: compiled code of a program.
pub const FRAME_NATIVE: u16 = 1;
/// [`Location::kind`]: code of the kernel.
pub const FRAME_KERNEL: u16 = 2;
/// [`Location::kind`]: a function of a language that is interpreted, or compiled at run time.
pub const FRAME_RUNTIME: u16 = 3;
/// [`Location::kind`]: no code, but why a stack ends.
pub const FRAME_MARKER: u16 = 4;
/// [`Location::flags`]: no name was found, and its line stands in.
pub const LOCATION_UNSYMBOLIZED: u32 = 1;
/// [`Attribute::kind`]: the value is the number of a string.
pub const ATTRIBUTE_STRING: u32 = 1;
/// [`Attribute::kind`]: the value is an `i64`.
pub const ATTRIBUTE_INT: u32 = 2;
/// [`Encoded::format`]: pprof.
pub const ENCODED_PPROF: u32 = 1;
/// [`Encoded::format`]: a Java flight recording.
pub const ENCODED_JFR: u32 = 2;
/// [`Encoded::format`]: the body of a request to Pyroscope's `/ingest`.
pub const ENCODED_INGEST: u32 = 3;

/// # Safety
/// Any bytes are a value of it.
unsafe trait Record: Default {}

// SAFETY: integers.
unsafe impl Record for u32 {}
unsafe impl Record for i64 {}

macro_rules! records {
    ($($(#[$meta:meta])* $visible:vis struct $name:ident { $($body:tt)* })*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs)]
        #[repr(C)]
        $visible struct $name { $($body)* }

        // SAFETY: integers and arrays of them.
        unsafe impl Record for $name {}
    )* };
}

records! {
/// `andiron_string`
struct StringRecord {
    offset: u64,
    length: u32,
    segment: u32,
}

/// `andiron_function`
pub struct Function {
    pub name: u32,
    pub system_name: u32,
    pub file: u32,
    pub start_line: u32,
}

/// `andiron_line`
pub struct Line {
    pub function: u32,
    pub line: u32,
    pub column: u32,
    pub reserved: u32,
}

/// `andiron_location`
pub struct Location {
    pub address: u64,
    pub mapping: u32,
    pub kind: u16,
    pub reserved: u16,
    pub runtime: u32,
    pub line_start: u32,
    pub n_lines: u32,
    pub flags: u32,
}

/// `andiron_mapping`
pub struct Mapping {
    pub start: u64,
    pub limit: u64,
    pub offset: u64,
    pub object: u64,
    pub file: u32,
    pub gnu_build_id: u32,
    pub go_build_id: u32,
    pub file_id: u32,
}

/// `andiron_stack`
pub struct Stack {
    pub start: u32,
    pub length: u32,
}

/// `andiron_attribute`
pub struct Attribute {
    pub value: u64,
    pub key: u32,
    pub kind: u32,
    pub unit: u32,
    pub reserved: u32,
}

/// `andiron_link`
pub struct Link {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

/// `andiron_profile_type`
pub struct ProfileType {
    pub name: u32,
    pub r#type: u32,
    pub unit: u32,
    pub period_type: u32,
    pub period_unit: u32,
    pub reserved: u32,
    pub period: i64,
}

/// `andiron_group`
pub struct Group {
    pub label_start: u32,
    pub n_labels: u32,
    pub row_start: u32,
    pub n_rows: u32,
}

/// `andiron_row`
pub struct Row {
    pub value: i64,
    pub samples: u64,
    pub stack: u32,
    pub r#type: u32,
    pub attr_start: u32,
    pub n_attrs: u32,
    pub link: u32,
    pub n_times: u32,
    pub time_start: u32,
    pub reserved: u32,
}

/// `andiron_loss`
pub struct Loss {
    pub samples: u64,
    pub reason: u32,
    pub reserved: u32,
}

/// `andiron_encoded`
pub struct Encoded {
    pub offset: u64,
    pub length: u32,
    pub segment: u32,
    pub group: u32,
    pub format: u32,
    pub content_type: u32,
    pub query: u32,
    pub raw_bytes: u64,
    pub n_stacks: u64,
    pub start_ns: i64,
    pub end_ns: i64,
}
}

#[derive(Clone, Copy, Default)]
struct Table<'a> {
    bytes: &'a [u8],
    elem_size: usize,
}

/// The profiles of one interval: all targets', in tables.
pub struct Batch<'a> {
    name: &'a str,
    samples: u64,
    start_ns: i64,
    end_ns: i64,
    tables: [Table<'a>; COLUMNS],
    segments: Vec<&'a [u8]>,
}

macro_rules! reads {
    ($($(#[$meta:meta])* $name:ident: $column:ident => $record:ty,)*) => { $(
        $(#[$meta])*
        pub fn $name(&self, i: u32) -> $record {
            self.record(Column::$column, i)
        }
    )* };
}

impl<'a> Batch<'a> {
    /// # Safety
    /// The batch's memory is there, unchanged, for `'a`.
    pub(crate) unsafe fn new(name: &'a str, batch: &'a c::Batch) -> Result<Batch<'a>, Error> {
        // SAFETY: the caller's promise, for all that it points to.
        let (columns, segments) = unsafe {
            (
                c::slice(batch.columns, batch.n_columns.into()),
                c::slice(batch.segments, batch.n_segments.into()),
            )
        };
        let mut b = Batch {
            name,
            samples: batch.samples,
            start_ns: batch.start_ns,
            end_ns: batch.end_ns,
            tables: [Table::default(); COLUMNS],
            // SAFETY: as above.
            segments: segments.iter().map(|s| unsafe { c::slice(s.base.cast(), s.size) }).collect(),
        };
        for column in columns {
            let known = column.id != 0 && (column.id as usize) < COLUMNS;
            if known && column.count != 0 {
                b.tables[column.id as usize] = b.table(column).ok_or_else(|| {
                    Error::new(EBADMSG, "a batch whose columns do not lie in its memory")
                })?;
            }
        }
        Ok(b)
    }

    fn table(&self, column: &c::Column) -> Option<Table<'a>> {
        let elem_size = column.elem_size as usize;
        let n_bytes = column.count.checked_mul(column.elem_size.into())?;
        let bytes = self.bytes(column.segment, column.offset, n_bytes)?;
        (elem_size != 0).then_some(Table { bytes, elem_size })
    }

    fn bytes(&self, segment: u32, offset: u64, length: u64) -> Option<&'a [u8]> {
        let memory: &'a [u8] = self.segments.get(segment as usize)?;
        memory.get(offset as usize..offset.checked_add(length)? as usize)
    }

    /// What is longer than the record is cut; what is shorter is zero at its end.
    fn record<T: Record>(&self, column: Column, i: u32) -> T {
        let table = &self.tables[column as usize];
        let mut result = T::default();
        if i < self.count(column) {
            let n = table.elem_size.min(size_of::<T>());
            let from = &table.bytes[i as usize * table.elem_size..][..n];
            // SAFETY: so many bytes are in both, and any bytes are a T.
            unsafe {
                std::ptr::copy_nonoverlapping(from.as_ptr(), (&mut result as *mut T).cast(), n)
            };
        }
        result
    }

    /// Of the consumer.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// How many samples are in all its rows.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// When the interval began.
    pub fn start(&self) -> SystemTime {
        time_of(self.start_ns)
    }

    /// When the interval ended.
    pub fn end(&self) -> SystemTime {
        time_of(self.end_ns)
    }

    /// How many records a column has.
    pub fn count(&self, column: Column) -> u32 {
        let table = &self.tables[column as usize];
        (table.bytes.len() / table.elem_size.max(1)).try_into().unwrap_or(u32::MAX)
    }

    reads! {
        /// Function `i`.
        function: Functions => Function,
        /// Line `i`.
        line: Lines => Line,
        /// Location `i`.
        location: Locations => Location,
        /// Mapping `i`.
        mapping: Mappings => Mapping,
        /// Stack `i`.
        stack: Stacks => Stack,
        /// Frame `i`: the number of a location.
        frame: Frames => u32,
        /// Attribute `i`.
        attribute: Attributes => Attribute,
        /// Link `i`.
        link: Links => Link,
        /// Profile type `i`.
        profile_type: Types => ProfileType,
        /// Group `i`: the rows of a target.
        group: Groups => Group,
        /// Row `i`: a stack and what was counted on it.
        row: Rows => Row,
        /// Time `i` of a sample, in Unix nanoseconds.
        time: Times => i64,
        /// Loss `i`.
        loss: Losses => Loss,
        /// Encoded profile `i`.
        encoded: Encodeds => Encoded,
    }

    /// Text `i`. One that is no UTF-8 reads as "".
    pub fn string(&self, i: u32) -> &'a str {
        let s: StringRecord = self.record(Column::Strings, i);
        let bytes = self.bytes(s.segment, s.offset, s.length.into()).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or("")
    }

    /// An encoded profile's bytes.
    pub fn data(&self, encoded: &Encoded) -> &'a [u8] {
        self.bytes(encoded.segment, encoded.offset, encoded.length.into()).unwrap_or(&[])
    }

    fn range(&self, column: Column, start: u32, n: u32) -> std::ops::Range<u32> {
        let end = self.count(column).min(start.saturating_add(n));
        start.min(end)..end
    }

    /// Attributes `start..start + n` of [`Column::AttributeIndices`]: a group's labels, a row's.
    pub fn attributes_of(&self, start: u32, n: u32) -> impl Iterator<Item = Attribute> + '_ {
        let indices = self.range(Column::AttributeIndices, start, n);
        indices.map(move |i| self.attribute(self.record(Column::AttributeIndices, i)))
    }

    /// The numbers of a stack's locations, leaf first.
    pub fn frames_of(&self, stack: Stack) -> impl Iterator<Item = u32> + '_ {
        self.range(Column::Frames, stack.start, stack.length).map(move |i| self.frame(i))
    }
}
