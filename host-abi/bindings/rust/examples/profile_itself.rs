// SPDX-License-Identifier: Apache-2.0

//! profile_itself SECONDS PREFIX: a program that profiles itself while it works, and has each
//! second's pprof in PREFIX.1.pb.gz, PREFIX.2.pb.gz, …; `andiron report` shows one.
//!
//!     cargo build --release --example profile_itself
//!     sudo target/release/examples/profile_itself 5 itself && andiron report itself.1.pb.gz
//!
//! LIBRARY, PLUGIN_DIRS and WORKER say where the parts are if they are not installed.

use std::error::Error;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use andiron::{Agent, Library, Options, Worker};

const CONFIGURATION: &str = r#"pyroscope.ebpf "self" {
  targets          = [{"__process_pid__" = "PID", "service_name" = "example"}]
  targets_only     = true
  collect_interval = "1s"
  demangle         = "simplified"
  forward_to       = [embed.profiles.files.receiver]
}
embed.profiles "files" {}
"#;

fn profile_itself(prefix: String) -> Result<Agent, Box<dyn Error>> {
    let agent = Agent::open(options()?)?;
    let mut n = 0;
    agent.on_profiles("files", move |profile| {
        n += 1;
        Ok(fs::write(format!("{prefix}.{n}.pb.gz"), profile.data)?)
    })?;
    agent.load("example", &CONFIGURATION.replace("PID", &process::id().to_string()))?;
    agent.start()?;
    Ok(agent)
}

/// The default does where andiron is installed.
fn options() -> Result<Options, Box<dyn Error>> {
    // SAFETY: whoever sets LIBRARY says that it is a libandiron.
    let library = env::var_os("LIBRARY").map(|path| unsafe { Library::at(path) }).transpose()?;
    let plugin_dirs = env::var_os("PLUGIN_DIRS").map(|dirs| env::split_paths(&dirs).collect());
    Ok(Options {
        library,
        plugin_dirs: plugin_dirs.unwrap_or_default(),
        worker: env::var_os("WORKER").map_or(Worker::Installed, |path| Worker::At(path.into())),
        ..Options::default()
    })
}

/// What the program is for.
#[inline(never)]
fn work(seconds: f64) -> f64 {
    let (end, mut sum) = (Instant::now() + Duration::from_secs_f64(seconds), 0.0);
    while Instant::now() < end {
        for i in 1..100_000 {
            sum += f64::from(i).sqrt();
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let seconds =
        arguments.next().and_then(|text| text.parse().ok()).filter(|s| (0.0..1e6).contains(s));
    let (seconds, prefix) = match (seconds, arguments.next()) {
        (Some(seconds), Some(prefix)) => (seconds, prefix),
        _ => return Err("usage: profile_itself SECONDS PREFIX".into()),
    };
    let agent = profile_itself(prefix);
    println!("{}", work(seconds)); // without a profile the work is done all the same
    agent?.stop(Duration::from_secs(10))?;
    Ok(())
}
