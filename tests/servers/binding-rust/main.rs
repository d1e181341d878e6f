// SPDX-License-Identifier: Apache-2.0

//! binding-rust: host-abi/bindings/rust, with real samples of a real program. Speaks TAP.
//!
//! TEST_LIBRARY, TEST_PLUGINS: libandiron.so and the folders of plugins
//! ANDIRON: the command, which parses files and reports profiles
//! WORKLOAD: a program whose function workload_70 takes most of its time
//! EXAMPLE: the binding's example

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::panic::{catch_unwind, panic_any, AssertUnwindSafe};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, ptr, thread};

use andiron::{
    Agent, Batch, Column, Encoded, Error, Fault, Level, Library, Options, Stack, Worker,
};

const ROUNDS: usize = 36;
const PATIENCE: Duration = Duration::from_secs(60);
const ENOENT: i32 = 2;
const ECHILD: i32 = 10;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;
const EDEADLK: i32 = 35;
const SILENT: &str = r#"discovery.process "all" {}"#;
const SAMPLED: &str = r#"pyroscope.ebpf "e" {
  forward_to       = [embed.profiles.mine.receiver]
  targets_only     = true
  targets          = [{"__process_pid__" = "PID"}, {"__process_pid__" = "OWN"}]
  sample_rate      = 499
  demangle         = "simplified"
  collect_interval = "1s"
}
embed.profiles "mine" {}
"#;
const PUSHED: &str = r#"pyroscope.ebpf "e" {
  forward_to       = [embed.profiles.bad.receiver, embed.profiles.columns.receiver]
  targets_only     = true
  targets          = [{"__process_pid__" = "PID", "service_name" = "pushed", "color" = "red"}]
  sample_rate      = 499
  collect_interval = "1s"
}
embed.profiles "columns" {}
embed.profiles "bad" {}
"#;
const LISTED: &str = r#"embed.targets "list" {
  targets = [{"__address__" = "a", "color" = "red"}MORE]
}
"#;
const PROCESSES: &str = r#"discovery.process "all" {
  refresh_interval = "100ms"
}
embed.targets "list" {
  targets = discovery.process.all.targets
}
"#;

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

fn options() -> Options {
    Options {
        // SAFETY: the test's own.
        library: Some(unsafe { Library::at(variable("TEST_LIBRARY")) }.unwrap()),
        plugin_dirs: env::split_paths(&variable("TEST_PLUGINS")).collect(),
        worker: Worker::At(variable("ANDIRON").into()),
        ..Options::default()
    }
}

fn open() -> Agent {
    Agent::open(options()).unwrap()
}

/// Of a call: that it was refused by that number, in these words.
fn assert_refused<T>(result: Result<T, Error>, code: i32, words: &[&str]) {
    let error = result.err().expect("nothing was refused");
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what} did not happen within a minute");
        thread::park_timeout(Duration::from_millis(20)); // the poll interval
    }
}

fn next<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(PATIENCE).expect("nothing came within a minute")
}

/// Threads and descriptors of this process.
fn own() -> (usize, usize) {
    let count = |folder| fs::read_dir(folder).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// Runs it, and expects that no thread and no descriptor is left. One that was joined before may
/// have been listed still.
fn leaves_nothing(function: impl FnOnce()) {
    let before = own();
    function();
    until("that threads and descriptors are gone", || {
        let now = own();
        now.0 <= before.0 && now.1 <= before.1
    });
}

struct Workload(Child);

impl Workload {
    fn start() -> Workload {
        Workload(Command::new(variable("WORKLOAD")).arg("60").spawn().unwrap())
    }

    fn in_text(&self, text: &str) -> String {
        let text = text.replace("PID", &self.0.id().to_string());
        text.replace("OWN", &process::id().to_string())
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The number, or text, that follows these keys in JSON.
fn after<'a>(json: &'a str, keys: &[&str]) -> &'a str {
    let mut rest = json;
    for key in keys {
        let key = format!("\"{key}\":");
        rest = rest.split_once(&key).unwrap_or_else(|| panic!("no {key} in {json}")).1;
    }
    rest.trim_start().split(&[',', '}', '\n'][..]).next().unwrap().trim_matches('"')
}

fn number(json: &str, keys: &[&str]) -> u64 {
    after(json, keys).parse().unwrap_or_else(|_| panic!("no number after {keys:?} in {json}"))
}

/// What `andiron report` says of a pprof.
fn report(data: &[u8], arguments: &[&str]) -> String {
    fs::write("p.pb.gz", data).unwrap();
    let mut command = Command::new(variable("ANDIRON"));
    let out = command.arg("report").args(arguments).arg("p.pb.gz").output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn hottest(data: &[u8]) -> String {
    after(&report(data, &["--json"]), &["by_self", "function"]).to_owned()
}

#[inline(never)]
fn rust_work() -> f64 {
    (0..2_000_000).fold(1.0, |x, i| x + 1.0 / (x + f64::from(i)))
}

/// A panic's payload whose end is a further one.
struct Malicious;

impl Drop for Malicious {
    fn drop(&mut self) {
        panic!("the payload");
    }
}

// --- The tests ---

struct Seen {
    name: String,
    data: Vec<u8>,
    samples: u64,
}

/// The first profile's callback panics, the second's fails, the third's panics with more to come.
fn samples() {
    let worker = Workload::start();
    let working = Arc::new(AtomicBool::new(true));
    let go_on = working.clone();
    let work = thread::spawn(move || {
        while go_on.load(Ordering::Relaxed) {
            assert!(rust_work() > 0.0);
        }
    });
    leaves_nothing(|| sample(&worker));
    working.store(false, Ordering::Relaxed);
    work.join().unwrap();
}

fn sample(worker: &Workload) {
    let (sender, profiles) = channel();
    let faults = Arc::new(Mutex::new(Vec::new()));
    let told = faults.clone();
    let report_fault = move |fault: Fault| {
        told.lock().unwrap().push(fault.to_string());
        panic!("a report that panics");
    };
    let agent = Arc::new(
        Agent::open(Options { report: Some(Box::new(report_fault)), ..options() }).unwrap(),
    );
    let (inside, mut n) = (Arc::downgrade(&agent), 0);
    agent
        .on_profiles("mine", move |p| {
            let agent = inside.upgrade().unwrap();
            assert_refused(agent.stop(Duration::ZERO), EDEADLK, &["callback"]);
            assert!(agent.load("", SILENT).unwrap_err().is_deadlock());
            assert!(agent.metrics().unwrap().contains("andiron_"));
            assert!(p.start < p.end);
            let seen = Seen { name: p.name.to_owned(), data: p.data.to_vec(), samples: p.samples };
            let _ = sender.send(seen);
            n += 1;
            match n {
                1 => panic!("the first"),
                2 => Err("the second".into()),
                3 => panic_any(Malicious),
                _ => Ok(()),
            }
        })
        .unwrap();
    agent.load("sampled", &worker.in_text(SAMPLED)).unwrap();
    agent.start().unwrap();
    let seen: Vec<Seen> = (0..4).map(|_| next(&profiles)).collect();
    agent.stop(PATIENCE).unwrap();
    let ledger = agent.ledger().unwrap();
    assert!(agent.health().unwrap().starts_with('{') && agent.targets().unwrap().starts_with('{'));
    Arc::try_unwrap(agent).unwrap().close().unwrap();

    let told = faults.lock().unwrap();
    let panicked = |words| format!("panic in a callback: {words}");
    assert_eq!(*told, [panicked("the first"), "the second".to_owned(), panicked("no text")]);
    let refused: u64 = seen[..3].iter().map(|p| p.samples).sum();
    let delivered = seen[3].samples + profiles.iter().map(|p| p.samples).sum::<u64>();
    let mine = ["writers", "embed.profiles.mine"];
    assert!(refused > 0 && delivered > 0);
    assert_eq!(number(&ledger, &["taken"]), refused + delivered, "{ledger}");
    assert_eq!(number(&ledger, &[&mine[..], &["delivered"]].concat()), delivered, "{ledger}");
    let dropped = [&mine[..], &["dropped", "embed.profiles.mine:refused"]].concat();
    assert_eq!(number(&ledger, &dropped), refused, "{ledger}");
    assert_eq!(seen[3].name, "mine");
    let most = seen.iter().max_by_key(|p| p.samples).unwrap();
    let hot = hottest(&most.data);
    assert!(hot == "workload_70" || hot == "binding_rust::rust_work", "{hot}");
    let shown: String = seen.iter().map(|p| report(&p.data, &[])).collect();
    assert!(shown.contains("workload_70") && shown.contains("binding_rust::rust_work"), "{shown}");
}

#[derive(Debug, Default)]
struct Read {
    samples: u64,
    rows: u64,
    names: BTreeSet<String>,
    labels: BTreeMap<String, String>,
    profile_type: String,
}

fn read(b: &Batch) -> Read {
    let mut r = Read { samples: b.samples(), ..Read::default() };
    assert!(b.name() == "columns" && b.start() < b.end());
    for group in (0..b.count(Column::Groups)).map(|i| b.group(i)) {
        for label in b.attributes_of(group.label_start, group.n_labels) {
            let value = b.string(label.value as u32);
            r.labels.insert(b.string(label.key).to_owned(), value.to_owned());
        }
        for row in (group.row_start..group.row_start + group.n_rows).map(|i| b.row(i)) {
            r.rows += row.samples;
            r.profile_type = b.string(b.profile_type(row.r#type).name).to_owned();
            for location in b.frames_of(b.stack(row.stack)).map(|i| b.location(i)) {
                for line in location.line_start..location.line_start + location.n_lines {
                    r.names.insert(b.string(b.function(b.line(line).function).name).to_owned());
                }
            }
        }
    }
    out_of_bounds(b);
    r
}

/// What is not there reads as nothing.
fn out_of_bounds(b: &Batch) {
    let all = Stack { start: 0, length: u32::MAX };
    let none = Stack { start: u32::MAX, length: u32::MAX };
    let encoded = Encoded { offset: u64::MAX, length: 8, ..Encoded::default() };
    assert_eq!(b.function(u32::MAX), andiron::Function::default());
    assert_eq!(b.string(u32::MAX), "");
    assert_eq!(b.attributes_of(u32::MAX, 9).count(), 0);
    assert_eq!(b.frames_of(all).count() as u32, b.count(Column::Frames));
    assert_eq!(b.frames_of(none).count(), 0);
    assert!(b.data(&encoded).is_empty() && b.data(&Encoded { segment: 99, ..encoded }).is_empty());
}

/// Two consumers of the same batches, one of which panics.
fn columns() {
    let worker = Workload::start();
    leaves_nothing(|| {
        let (sender, batches) = channel();
        let agent = Agent::open(Options { report: Some(Box::new(drop)), ..options() }).unwrap();
        agent.on_batches("columns", move |b| Ok(sender.send(read(b))?)).unwrap();
        agent.on_batches("bad", |_| panic!("bad")).unwrap();
        assert_refused(agent.on_batches("columns", |_| Ok(())), EEXIST, &["columns"]);
        agent.load("pushed", &worker.in_text(PUSHED)).unwrap();
        agent.start().unwrap();
        let mut read = vec![next(&batches)];
        while read.len() < 2 || !read[read.len() - 1].names.contains("workload_70") {
            read.push(next(&batches)); // on a busy machine one has few samples
        }
        let last = read.len() - 1;
        agent.stop(PATIENCE).unwrap();
        let ledger = agent.ledger().unwrap();
        drop(agent);
        read.extend(batches);
        assert!(read.iter().all(|r| r.rows == r.samples), "{read:?}");
        let (all, last) = (read.iter().map(|r| r.samples).sum::<u64>(), &read[last]);
        assert_eq!(last.profile_type, "process_cpu");
        assert_eq!(last.labels["color"], "red");
        assert_eq!(last.labels["service_name"], "pushed");
        assert_eq!(last.labels["__process_executable_name"], "workload");
        let columns = ["writers", "embed.profiles.columns", "delivered"];
        let bad = ["writers", "embed.profiles.bad", "dropped", "embed.profiles.bad:refused"];
        assert_eq!(number(&ledger, &columns), all, "{ledger}");
        assert_eq!(number(&ledger, &bad), all, "{ledger}");
    });
}

/// Targets that are known, one more, and gone again; a callback that panics ends nothing.
fn targets() {
    let (sender, changes) = channel();
    let agent = Agent::open(Options { report: Some(Box::new(drop)), ..options() }).unwrap();
    agent
        .on_targets("list", move |targets| {
            let _ = sender.send(targets);
            panic!("each time");
        })
        .unwrap();
    let mut held = BTreeMap::new();
    let mut await_names = |expected: &[&str]| loop {
        let change = next(&changes);
        assert_eq!(change.name, "list");
        if change.snapshot {
            held.clear();
        }
        for target in change.rows {
            let color = target.labels.get("color").map_or("", |c| c);
            held.insert(target.row, target.labels["__address__"].clone() + color);
        }
        held.retain(|row, _| !change.removed.contains(row));
        let mut names: Vec<_> = held.values().cloned().collect();
        names.sort();
        if names == expected {
            break;
        }
    };
    agent.load("", &LISTED.replace("MORE", "")).unwrap();
    agent.start().unwrap();
    await_names(&["ared"]);
    agent.load("", &LISTED.replace("MORE", r#", {"__address__" = "b"}"#)).unwrap();
    await_names(&["ared", "b"]);
    agent.load("", &LISTED.replace("MORE", "")).unwrap();
    await_names(&["ared"]);
}

/// The example, for so many seconds. Whether it saw its work: on a busy machine it may begin late,
/// and have a few samples of that alone.
fn profiles_itself(seconds: &str) -> bool {
    let out = Command::new(variable("EXAMPLE"))
        .args([seconds, "itself"])
        .env("LIBRARY", variable("TEST_LIBRARY"))
        .env("PLUGIN_DIRS", variable("TEST_PLUGINS"))
        .env("WORKER", variable("ANDIRON"))
        .output()
        .unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    fs::read("itself.1.pb.gz").map_or(false, |data| hottest(&data) == "example::work")
}

fn example() {
    assert!(["1.5", "6", "24"].into_iter().any(profiles_itself));
}

fn configurations() {
    let agent = open();
    assert!(!options().library.unwrap().version().is_empty());
    agent.on_profiles("mine", |_| Ok(())).unwrap();
    assert_refused(agent.on_profiles("mine", |_| Ok(())), EEXIST, &["mine"]);
    assert_refused(agent.on_profiles("zero\0", |_| Ok(())), EINVAL, &["zero"]);
    assert_refused(agent.start(), EINVAL, &["no configuration"]);
    let typo = "pyroscope.ebpf \"e\" {\n sample_rat = 9 }";
    assert_refused(
        agent.load("my.alloy", typo),
        EINVAL,
        &["my.alloy:2", "no argument \"sample_rat\""],
    );
    assert_refused(agent.load_file("nowhere.alloy"), ENOENT, &["nowhere.alloy"]);
    assert_eq!(agent.load("", SILENT).unwrap(), "");
    agent.start().unwrap();
    assert_refused(agent.load("", r#"discovery.proces "typo" {}"#), EINVAL, &["discovery.proces"]);
    assert_refused(agent.on_profiles("late", |_| Ok(())), EBUSY, &[]);
    agent.load("", r#"embed.profiles "mine" {}"#).unwrap();
    let late = agent.stop(Duration::from_nanos(1)).unwrap_err();
    assert!(late.is_deadline() && late.to_string().contains("deadline"), "{late}");
    agent.close().unwrap();
    // SAFETY: there is none.
    let nowhere = unsafe { Library::at("./nowhere.so") };
    assert_refused(nowhere, ENOENT, &["nowhere.so", "Options::library"]);
    let colon = Options { plugin_dirs: vec!["/a:b".into()], ..options() };
    assert_refused(Agent::open(colon), EINVAL, &["colon"]);
}

/// The log is called by the agent's thread while load, start, stop and the end wait for that.
fn one_round() {
    let lines = Arc::new(AtomicUsize::new(0));
    let counted = lines.clone();
    let log = move |level, component: &str, line: &str| {
        assert!(level <= Level::Debug && !(component.is_empty() && line.is_empty()));
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let how = Options { log: Some(Box::new(log)), log_level: Level::Debug, ..options() };
    let agent = Agent::open(how).unwrap();
    agent.load("", SILENT).unwrap();
    agent.start().unwrap();
    agent.load("", SILENT).unwrap();
    agent.stop(PATIENCE).unwrap();
    drop(agent);
    assert!(lines.load(Ordering::Relaxed) > 0, "nothing was logged");
    assert_eq!(Arc::strong_count(&lines), 1, "the log function is still there");
}

fn rounds() {
    one_round();
    leaves_nothing(|| (0..ROUNDS).for_each(|_| one_round()));
}

/// The agent is dropped, or closed, by its own callback: whatever that has captured outlives it.
fn dropped_inside() {
    for close in [false, true] {
        leaves_nothing(|| {
            let alive = Arc::new(());
            let (held, kept) = (alive.clone(), Arc::new(Mutex::new(None)));
            let (mine, (sender, refusals)) = (kept.clone(), channel());
            let agent = open();
            agent
                .on_targets("list", move |_| {
                    let agent: Option<Agent> = mine.lock().unwrap().take();
                    match agent {
                        Some(agent) if close => sender.send(agent.close()).unwrap(),
                        other => drop(other),
                    }
                    assert!(Arc::strong_count(&held) > 1);
                })
                .unwrap();
            agent.load("", PROCESSES).unwrap();
            agent.start().unwrap();
            *kept.lock().unwrap() = Some(agent);
            let _another = Workload::start(); // it comes to the callback, which finds the agent
            if close {
                assert!(next(&refusals).unwrap_err().is_deadlock());
            }
            until("that the agent is closed", || Arc::strong_count(&alive) == 1);
        });
    }
}

/// Threads that share an agent; the last of them closes it.
fn shared() {
    leaves_nothing(|| {
        let agent = Arc::new(open());
        agent.load("", SILENT).unwrap();
        agent.start().unwrap();
        let together = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (agent, together) = (agent.clone(), together.clone());
                thread::spawn(move || {
                    together.wait();
                    (0..50).for_each(|_| assert!(agent.metrics().unwrap().contains("andiron_")));
                })
            })
            .collect();
        drop(agent);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Between fork and exec the child is told by whom it was refused, which is all that it does.
fn forked() {
    let agent = Arc::new(open());
    let inside = agent.clone();
    let mut command = Command::new("true");
    let refused = move || {
        let code = inside.metrics().unwrap_err().code();
        // SAFETY: another process's copy, which is forgotten here.
        drop(unsafe { ptr::read(&*inside) });
        Err(io::Error::from_raw_os_error(code))
    };
    // SAFETY: as above; the C library's allocator works after a fork.
    let spawned = unsafe { command.pre_exec(refused) }.spawn();
    assert_eq!(spawned.unwrap_err().raw_os_error(), Some(ECHILD));
    agent.load("", SILENT).unwrap();
    agent.start().unwrap();
}

// --- TAP ---

type Test = (&'static str, fn(), bool);

const TESTS: [Test; 9] = [
    ("profiles of a program and of Rust itself; callbacks may panic and fail", samples, true),
    ("batches come as columns, whose every index is checked", columns, true),
    ("targets come and go by callback", targets, false),
    ("the example profiles itself", example, true),
    ("a bad configuration is refused in the library's words", configurations, false),
    ("some dozens of agents leave no thread and no descriptor", rounds, false),
    ("an agent that its own callback drops is closed after it", dropped_inside, false),
    ("threads share an agent, and the last of them closes it", shared, false),
    ("the child of a fork is refused its parent's agent", forked, false),
];

fn main() {
    std::panic::set_hook(Box::new(|info| {
        println!("# {}", info.to_string().replace('\n', "\n# "));
    }));
    let folder = env::temp_dir().join(format!("binding-rust-{}", process::id()));
    fs::create_dir(&folder).unwrap();
    env::set_current_dir(&folder).unwrap();
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut failed = false;
    println!("1..{}", TESTS.len());
    for (i, (promise, test, needs_root)) in TESTS.iter().enumerate() {
        if *needs_root && !root {
            println!("ok {} - {promise} # SKIP needs root: run it by `sudo ./check`", i + 1);
            continue;
        }
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("{}ok {} - {promise}", if passed { "" } else { "not " }, i + 1);
        failed |= !passed;
    }
    fs::remove_dir_all(folder).unwrap();
    process::exit(failed.into());
}
