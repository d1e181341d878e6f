// SPDX-License-Identifier: Apache-2.0

//! Targets as Rust has them: andiron/target.h, copied.

use std::collections::BTreeMap;

use crate::c;

/// What to profile, and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which one of its producer.
    pub row: u64,
    /// Its place among them.
    pub order: u64,
    /// Its names and their values.
    pub labels: BTreeMap<String, String>,
}

/// A change of targets. Each producer is one of the lists that the consumer refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Of the consumer.
    pub name: String,
    /// Whose rows these are.
    pub producer: u64,
    /// One more with each change; after a gap a snapshot follows.
    pub generation: u64,
    /// Whether `rows` are all that the producer has.
    pub snapshot: bool,
    /// New, or in place of the row of the same number.
    pub rows: Vec<Target>,
    /// Rows that are gone.
    pub removed: Vec<u64>,
}

impl Targets {
    /// # Safety
    /// The update's memory is C's, and unchanged during the call.
    pub(crate) unsafe fn new(name: &str, update: &c::Targets) -> Targets {
        // SAFETY: the caller's promise, for all that it points to.
        let (strings, labels, rows, removed) = unsafe {
            (
                c::slice(update.strings, update.n_strings),
                c::slice(update.labels, update.n_labels),
                c::slice(update.rows, update.n_rows),
                c::slice(update.removed, update.n_removed),
            )
        };
        let text = |i: u32| match strings.get(i as usize) {
            // SAFETY: as above.
            Some(s) => {
                String::from_utf8_lossy(unsafe { c::slice(s.ptr.cast(), s.len) }).into_owned()
            }
            None => String::new(),
        };
        let labels_of = |row: &c::Target| {
            let (from, n) = (row.label_start as usize, row.n_labels as usize);
            labels
                .iter()
                .skip(from)
                .take(n)
                .map(|label| (text(label.name), text(label.value)))
                .collect()
        };
        Targets {
            name: name.to_owned(),
            producer: update.producer,
            generation: update.generation,
            snapshot: update.flags & c::TARGETS_SNAPSHOT != 0,
            rows: rows
                .iter()
                .map(|row| Target { row: row.row, order: row.order, labels: labels_of(row) })
                .collect(),
            removed: removed.to_vec(),
        }
    }
}
