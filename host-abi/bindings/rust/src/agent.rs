// SPDX-License-Identifier: Apache-2.0

//! A running configuration: andiron/embed.h as Rust has it.
//!
//! Whatever a program does with an [`Agent`], the library never calls what is gone, and is never
//! called once the agent is closed. The functions that it calls are freed after `andiron_close` has
//! returned, which waits for them; where it refuses, they are never freed. No call is under way
//! then, since each borrows the agent.
//!
//! A panic ends at the border to C, and costs what it was called for.

use std::any::Any;
use std::ffi::CString;
use std::fmt;
use std::mem::{size_of, ManuallyDrop};
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::batch::Batch;
use crate::c;
use crate::error::{Error, ECHILD, EDEADLK, EINVAL};
use crate::library::{c_path, c_text, text_of, Library};
use crate::targets::Targets;

/// Of a deadline; the library adds it to the time of day.
const LONGEST: Duration = Duration::from_secs(86400 * 365);

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
}

const LEVELS: [Level; c::LOG_LEVELS as usize] =
    [Level::Error, Level::Warn, Level::Info, Level::Debug];

/// The program that parses files, and speaks to servers, in a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Worker {
    /// The `andiron` that is installed.
    #[default]
    Installed,
    /// None: functions that only a file knows have no names.
    Without,
    /// The `andiron` at this path.
    At(PathBuf),
}

/// What came of a call of the program's own.
#[derive(Debug)]
pub enum Fault {
    /// A consumer of profiles returned this.
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// A callback panicked, in these words.
    Panicked(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Refused(error) => write!(f, "{error}"),
            Fault::Panicked(words) => write!(f, "panic in a callback: {words}"),
        }
    }
}

impl std::error::Error for Fault {}

/// What a consumer of profiles returns: an error drops the profile.
pub type Taken = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// See [`Options::log`].
pub type LogFn = Box<dyn Fn(Level, &str, &str) + Send + Sync>;

/// See [`Options::report`].
pub type ReportFn = Box<dyn Fn(Fault) + Send + Sync>;

/// How an [`Agent`] is to be. The default is right for what is installed.
#[derive(Default)]
pub struct Options {
    /// The library; by default the one that is installed.
    pub library: Option<Library>,
    /// Folders of plugins, which are code; by default where they are installed.
    pub plugin_dirs: Vec<PathBuf>,
    /// The program that parses files.
    pub worker: Worker,
    /// The bound of each consumer's queue; 0: the default.
    pub queue_bytes: u64,
    /// Threads that compute or block; 0: the default.
    pub workers: u32,
    /// The least level that `log` gets.
    pub log_level: Level,
    /// Called with level, component and line for each line of the log, by threads of andiron.
    pub log: Option<LogFn>,
    /// Told of each fault of a callback, on the callback's thread. Without it errors go to standard
    /// error, where the panic hook writes panics anyhow.
    pub report: Option<ReportFn>,
}

/// A finished profile of one interval, borrowed for the call.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// Of the consumer.
    pub name: &'a str,
    /// pprof, gzip.
    pub data: &'a [u8],
    /// How many samples are in it.
    pub samples: u64,
    /// When the interval began.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
}

/// What is called by C: the context of a registration.
struct Consumer<F> {
    name: String,
    report: Arc<ReportFn>,
    take: Mutex<F>,
}

/// The same of the log, whose lines may come from several threads at a time.
struct Logger {
    report: Arc<ReportFn>,
    take: LogFn,
}

/// struct andiron, and what it calls. Ends only by `end`, or not at all.
struct Open {
    library: Library,
    pointer: NonNull<c::Andiron>,
    report: Arc<ReportFn>,
    called: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

// SAFETY: andiron/embed.h: an instance may be used by any thread.
unsafe impl Send for Open {}
unsafe impl Sync for Open {}

/// One instance of andiron. Any thread may use it; dropping it closes it.
pub struct Agent {
    open: ManuallyDrop<Open>,
}

impl Agent {
    /// Makes an agent. It reads no configuration yet.
    pub fn open(options: Options) -> Result<Agent, Error> {
        let library = options.library.map_or_else(Library::installed, Ok)?;
        let plugin_dirs = folders(&options.plugin_dirs)?;
        let worker = match &options.worker {
            Worker::Installed => None,
            Worker::Without => Some(CString::default()),
            Worker::At(path) => Some(c_path(&absolute(path)?, "worker")?),
        };
        let report = Arc::new(options.report.unwrap_or_else(|| Box::new(print)));
        let log = options.log.map(|take| {
            let report = report.clone();
            Arc::new(Logger { report, take })
        });
        let how = c::Embed {
            size: size_of::<c::Embed>() as u32,
            log_level: options.log_level as u32,
            plugin_dirs: plugin_dirs.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            worker: worker.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            queue_bytes: options.queue_bytes,
            workers: options.workers,
            reserved: 0,
            context: log.as_ref().map_or(ptr::null_mut(), context_of),
            log: log.is_some().then_some(line_logged as c::LogFn),
            answers: ptr::null(),
        };
        let mut pointer = ptr::null_mut();
        // SAFETY: the library copies `how` and its texts; `log` lives until it is closed.
        library.call(|text| unsafe { (library.functions.open)(&how, &mut pointer, text) })?;
        let pointer =
            NonNull::new(pointer).ok_or_else(|| Error::new(EINVAL, "no instance was made"))?;
        let called = log.map(|log| log as Arc<dyn Any + Send + Sync>).into_iter().collect();
        let open = Open { library, pointer, report, called: Mutex::new(called) };
        Ok(Agent { open: ManuallyDrop::new(open) })
    }

    /// Has `take` called for each profile that `embed.profiles "NAME"` gets, by a thread of
    /// andiron, one call at a time. If it returns an error or panics, the profile is dropped, its
    /// samples are counted as refused, and [`Options::report`] is told. Before [`Agent::start`].
    pub fn on_profiles<F>(&self, name: &str, take: F) -> Result<(), Error>
    where
        F: FnMut(&Profile<'_>) -> Taken + Send + 'static,
    {
        let functions = self.open.library.functions;
        self.consume(name, take, |a, name, context, text| {
            // SAFETY: the context is a Consumer<F>, which lives until the agent is closed.
            unsafe {
                (functions.on_profiles)(
                    a,
                    name,
                    c::FORM_PPROF,
                    profile_finished::<F>,
                    context,
                    text,
                )
            }
        })
    }

    /// [`Agent::on_profiles`] for profiles that are not encoded: all that was sampled in an
    /// interval, with the labels of every target. No copy is made.
    pub fn on_batches<F>(&self, name: &str, take: F) -> Result<(), Error>
    where
        F: FnMut(&Batch<'_>) -> Taken + Send + 'static,
    {
        let functions = self.open.library.functions;
        self.consume(name, take, |a, name, context, text| {
            // SAFETY: as in on_profiles.
            unsafe {
                (functions.on_profiles)(a, name, c::FORM_BATCH, batch_finished::<F>, context, text)
            }
        })
    }

    /// Has `take` called for each change of what `embed.targets "NAME"` refers to. It must not
    /// block: the agent does nothing else meanwhile. Before [`Agent::start`].
    pub fn on_targets<F>(&self, name: &str, take: F) -> Result<(), Error>
    where
        F: FnMut(Targets) + Send + 'static,
    {
        let functions = self.open.library.functions;
        self.consume(name, take, |a, name, context, text| {
            // SAFETY: as in on_profiles.
            unsafe { (functions.on_targets)(a, name, targets_changed::<F>, context, text) }
        })
    }

    fn consume<F: Send + 'static>(
        &self,
        name: &str,
        take: F,
        register: impl FnOnce(*mut c::Andiron, *const c_char, *mut c_void, *mut *mut c_char) -> i32,
    ) -> Result<(), Error> {
        let raw = c_text(name, "name")?;
        let report = self.open.report.clone();
        let consumer = Arc::new(Consumer { name: name.to_owned(), report, take: Mutex::new(take) });
        let context = context_of(&consumer);
        self.call(|a, text| register(a, raw.as_ptr(), context, text))?;
        lock(&self.open.called).push(consumer);
        Ok(())
    }

    fn call(
        &self,
        function: impl FnOnce(*mut c::Andiron, *mut *mut c_char) -> i32,
    ) -> Result<String, Error> {
        self.open.library.call(|text| function(self.open.pointer.as_ptr(), text))
    }

    /// Takes a configuration; of one that runs, changes to it, all or nothing. The name stands
    /// before findings. What it gives are warnings.
    pub fn load(&self, name: &str, config: &str) -> Result<String, Error> {
        let name = c_text(name, "name")?;
        let (bytes, n) = (config.as_ptr().cast(), config.len() as u64);
        // SAFETY: both texts outlive the call.
        self.call(|a, text| unsafe {
            (self.open.library.functions.load)(a, name.as_ptr(), bytes, n, text)
        })
    }

    /// The same from a file, or from a folder of `*.alloy` files.
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        let path = c_path(path.as_ref(), "path")?;
        // SAFETY: the path outlives the call.
        self.call(|a, text| unsafe {
            (self.open.library.functions.load_file)(a, path.as_ptr(), text)
        })
    }

    /// Returns when all components run. An error of code EIO names those that could not start; the
    /// others run.
    pub fn start(&self) -> Result<(), Error> {
        // SAFETY: the instance is open while this borrows it.
        self.call(|a, text| unsafe { (self.open.library.functions.start)(a, text) }).map(drop)
    }

    /// Ends the run. What is queued is delivered within the deadline; if something is left it is
    /// dropped and counted, and the error [is a deadline's](Error::is_deadline). State can still be
    /// read.
    pub fn stop(&self, deadline: Duration) -> Result<(), Error> {
        let ns = deadline.min(LONGEST).as_nanos() as i64;
        // SAFETY: as in start.
        self.call(|a, text| unsafe { (self.open.library.functions.stop)(a, ns, text) }).map(drop)
    }

    fn read(&self, what: u32) -> Result<String, Error> {
        // SAFETY: as in start.
        self.call(|a, text| unsafe { (self.open.library.functions.read)(a, what, text) })
    }

    /// Prometheus text.
    pub fn metrics(&self) -> Result<String, Error> {
        self.read(c::READ_METRICS)
    }

    /// JSON, as GET /health of `andiron run`.
    pub fn health(&self) -> Result<String, Error> {
        self.read(c::READ_HEALTH)
    }

    /// JSON: what became of each sample.
    pub fn ledger(&self) -> Result<String, Error> {
        self.read(c::READ_LEDGER)
    }

    /// JSON: which processes each target has.
    pub fn targets(&self) -> Result<String, Error> {
        self.read(c::READ_TARGETS)
    }

    /// Stops at once what still runs, waits for callbacks, and gives everything back, as dropping
    /// the agent does. In a callback of the agent's own, which it would wait for, the error
    /// [is a deadlock's](Error::is_deadlock), and another thread closes it when the callback has
    /// returned.
    pub fn close(self) -> Result<(), Error> {
        let mut agent = ManuallyDrop::new(self);
        // SAFETY: the agent is not used again, nor dropped.
        unsafe { ManuallyDrop::take(&mut agent.open) }.end()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SAFETY: nor is this one.
        let _ = unsafe { ManuallyDrop::take(&mut self.open) }.end();
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("library", &self.open.library).finish_non_exhaustive()
    }
}

impl Open {
    /// Where closing is refused, what is called lives on: in another thread, which waits for this
    /// callback, or for ever in the child of a fork, where the instance is its parent's.
    fn end(self) -> Result<(), Error> {
        let open = ManuallyDrop::new(self);
        // SAFETY: no call is under way, and none follows.
        let result = unsafe { (open.library.functions.close)(open.pointer.as_ptr()) };
        if result >= 0 {
            drop(ManuallyDrop::into_inner(open));
            return Ok(());
        }
        if result == -EDEADLK {
            let close = move || ManuallyDrop::into_inner(open).end();
            // Without a thread it stays open.
            let _ = std::thread::Builder::new().name("andiron-close".into()).spawn(close);
            return Err(Error::new(EDEADLK, "closing would wait for this callback; it follows it"));
        }
        let words = if result == -ECHILD {
            "the process has forked, and the agent is its parent's"
        } else {
            ""
        };
        Err(Error::new(-result, words))
    }
}

fn print(fault: Fault) {
    if let Fault::Refused(error) = fault {
        eprintln!("andiron: {error}");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn context_of<T>(consumer: &Arc<T>) -> *mut c_void {
    Arc::as_ptr(consumer) as *mut c_void
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let here =
        std::env::current_dir().map_err(|e| Error::new(e.raw_os_error().unwrap_or(EINVAL), ""))?;
    Ok(here.join(path))
}

/// Folders as plugin_dirs has them; None: the default.
fn folders(folders: &[PathBuf]) -> Result<Option<CString>, Error> {
    let mut all = Vec::new();
    for folder in folders {
        let raw = c_path(&absolute(folder)?, "plugin_dirs")?;
        if raw.as_bytes().contains(&b':') {
            let words =
                format!("a folder of plugins has no colon in its path: {}", folder.display());
            return Err(Error::new(EINVAL, words));
        }
        all.push(raw.into_bytes());
    }
    (!all.is_empty()).then(|| c_text(all.join(&b':'), "plugin_dirs")).transpose()
}

pub(crate) fn time_of(ns: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(ns.max(0) as u64)
}

/// A panic's payload may panic again as it is dropped.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(further) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(further);
    }
}

fn words_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
        .to_owned()
}

/// Runs what belongs to the user. No panic leaves it, which must not pass through C.
fn guarded(report: &ReportFn, function: impl FnOnce() -> Taken) -> bool {
    let fault = match catch_unwind(AssertUnwindSafe(function)) {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => Fault::Refused(error),
        Err(payload) => {
            let words = words_of(&*payload);
            discard(payload);
            Fault::Panicked(words)
        }
    };
    // A report that panics has nobody to be reported to.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| report(fault))) {
        discard(payload);
    }
    false
}

/// # Safety
/// The context is a `Consumer<F>` that lives, and the profile is one of andiron's.
unsafe extern "C" fn profile_finished<F>(context: *mut c_void, profile: *const c::Profile) -> i32
where
    F: FnMut(&Profile<'_>) -> Taken + Send,
{
    // SAFETY: the caller's promise; the bytes are there for the call, as the closure's argument is.
    let (consumer, p) = unsafe { (&*context.cast::<Consumer<F>>(), &*profile) };
    let data = unsafe { c::slice(p.bytes.cast(), p.n_bytes) };
    let (start, end) = (time_of(p.start_ns), time_of(p.end_ns));
    let profile = Profile { name: &consumer.name, data, samples: p.samples, start, end };
    answer(guarded(&consumer.report, || lock(&consumer.take)(&profile)))
}

/// # Safety
/// As of profile_finished.
unsafe extern "C" fn batch_finished<F>(context: *mut c_void, profile: *const c::Profile) -> i32
where
    F: FnMut(&Batch<'_>) -> Taken + Send,
{
    // SAFETY: the caller's promise; the batch is there for the call.
    let (consumer, p) = unsafe { (&*context.cast::<Consumer<F>>(), &*profile) };
    answer(guarded(&consumer.report, || {
        let batch = unsafe { Batch::new(&consumer.name, &*p.batch) }?;
        lock(&consumer.take)(&batch)
    }))
}

/// # Safety
/// The context is a `Consumer<F>` that lives, and the update is one of andiron's.
unsafe extern "C" fn targets_changed<F>(context: *mut c_void, update: *const c::Targets)
where
    F: FnMut(Targets) + Send,
{
    // SAFETY: the caller's promise.
    let consumer = unsafe { &*context.cast::<Consumer<F>>() };
    guarded(&consumer.report, || {
        let targets = unsafe { Targets::new(&consumer.name, &*update) };
        lock(&consumer.take)(targets);
        Ok(())
    });
}

/// # Safety
/// The context is a `Logger` that lives, and both texts end with a zero.
unsafe extern "C" fn line_logged(
    context: *mut c_void,
    level: u32,
    component: *const c_char,
    line: *const c_char,
) {
    // SAFETY: the caller's promise.
    let logger = unsafe { &*context.cast::<Logger>() };
    guarded(&logger.report, || {
        let (component, line) = unsafe { (text_of(component), text_of(line)) };
        (logger.take)(LEVELS[level.min(c::LOG_LEVELS - 1) as usize], &component, &line);
        Ok(())
    });
}

/// As `andiron_profile_fn` has it.
fn answer(ok: bool) -> i32 {
    if ok {
        0
    } else {
        -1
    }
}
