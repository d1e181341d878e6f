// SPDX-License-Identifier: Apache-2.0

//! What libandiron refuses, as an error of Rust's.

use std::fmt;
use std::io;

pub(crate) const ENOENT: i32 = 2;
pub(crate) const ECHILD: i32 = 10;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EDEADLK: i32 = 35;
pub(crate) const EBADMSG: i32 = 74;
const ETIMEDOUT: i32 = 110;

/// What libandiron refused, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: i32,
    text: String,
}

impl Error {
    /// An empty text stands for the system's words for the number.
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Error {
        let mut text = text.into();
        text.truncate(text.trim_end_matches('\n').len());
        if text.is_empty() {
            text = io::Error::from_raw_os_error(code).to_string();
        }
        Error { code, text }
    }

    /// The `errno` number, as of `andiron/embed.h`.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// Whether a stop was complete, but for profiles that could not be delivered in time.
    pub fn is_deadline(&self) -> bool {
        self.code == ETIMEDOUT
    }

    /// Whether a callback made a call that would wait for that callback.
    pub fn is_deadlock(&self) -> bool {
        self.code == EDEADLK
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(io::Error::from_raw_os_error(error.code).kind(), error)
    }
}
