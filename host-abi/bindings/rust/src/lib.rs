// SPDX-License-Identifier: Apache-2.0

//! Continuous profiling from a Rust program: its own functions, those of another process, or of the
//! whole machine. It loads `libandiron.so.1` at run time, so nothing of C is compiled or linked.
//!
//! ```no_run
//! use andiron::{Agent, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::open(Options::default())?;
//! agent.on_profiles("mine", |profile| Ok(std::fs::write("mine.pb.gz", profile.data)?))?;
//! agent.load(
//!     "mine.alloy",
//!     r#"pyroscope.ebpf "all" { forward_to = [embed.profiles.mine.receiver] }
//!        embed.profiles "mine" {}"#,
//! )?;
//! agent.start()?;
//! // …
//! agent.stop(std::time::Duration::from_secs(10))?;
//! # Ok(())
//! # }
//! ```
//!
//! An [`Agent`] is a running configuration. Callbacks are called by threads of andiron. One that
//! panics or returns an error costs its profile and nothing else, unless the program is built with
//! `panic = "abort"`.

#![warn(missing_docs, unsafe_op_in_unsafe_fn)]

mod agent;
mod batch;
mod c;
mod error;
mod library;
mod targets;

pub use agent::{Agent, Fault, Level, LogFn, Options, Profile, ReportFn, Taken, Worker};
pub use batch::{
    Attribute, Batch, Column, Encoded, Function, Group, Line, Link, Location, Loss, Mapping,
    ProfileType, Row, Stack, ATTRIBUTE_INT, ATTRIBUTE_STRING, ENCODED_INGEST, ENCODED_JFR,
    ENCODED_PPROF, FRAME_KERNEL, FRAME_MARKER, FRAME_NATIVE, FRAME_RUNTIME, LOCATION_UNSYMBOLIZED,
};
pub use error::Error;
pub use library::Library;
pub use targets::{Target, Targets};
