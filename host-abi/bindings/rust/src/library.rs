// SPDX-License-Identifier: Apache-2.0

//! libandiron.so.1, found at run time. It is never unloaded, and each file is opened once.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library as Opened, RTLD_LOCAL, RTLD_NOW};

use crate::c;
use crate::error::{Error, EINVAL, ENOENT};

const SONAME: &str = "libandiron.so.1";

type Instance = *mut c::Andiron;
type Given = *const c_char; // a text of ours
type Text = *mut *mut c_char; // where one of the library's goes

macro_rules! symbol {
    ($name:ident) => {
        concat!("andiron_", stringify!($name)).as_bytes()
    };
}

macro_rules! functions {
    ($($name:ident: $type:ty,)*) => {
        /// The functions of andiron/embed.h that the crate calls.
        pub(crate) struct Functions {
            $(pub $name: $type,)*
        }

        impl Functions {
            /// # Safety
            /// What bears these names in the library is what andiron/embed.h declares.
            unsafe fn of(opened: &Opened) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    // SAFETY: the caller's promise.
                    $($name: unsafe { *opened.get(symbol!($name))? },)*
                })
            }
        }
    };
}

functions! {
    version: unsafe extern "C" fn() -> *const c_char,
    open: unsafe extern "C" fn(*const c::Embed, *mut Instance, Text) -> i32,
    close: unsafe extern "C" fn(Instance) -> i32,
    on_profiles: unsafe extern "C" fn(Instance, Given, u32, c::ProfileFn, *mut c_void, Text) -> i32,
    on_targets: unsafe extern "C" fn(Instance, Given, c::TargetsFn, *mut c_void, Text) -> i32,
    load: unsafe extern "C" fn(Instance, Given, Given, u64, Text) -> i32,
    load_file: unsafe extern "C" fn(Instance, Given, Text) -> i32,
    start: unsafe extern "C" fn(Instance, Text) -> i32,
    stop: unsafe extern "C" fn(Instance, i64, Text) -> i32,
    read: unsafe extern "C" fn(Instance, u32, Text) -> i32,
    text_free: unsafe extern "C" fn(*mut c_char),
}

static OPENED: Mutex<Vec<(PathBuf, &'static Functions)>> = Mutex::new(Vec::new());

/// `libandiron.so.1` in this process. It stays for the rest of the process's life.
#[derive(Clone, Copy)]
pub struct Library {
    pub(crate) functions: &'static Functions,
}

impl Library {
    /// The one that is installed: where the system's loader finds it.
    pub fn installed() -> Result<Library, Error> {
        // SAFETY: under this name andiron is installed, as with a library that a program links.
        unsafe { Library::at(SONAME) }
    }

    /// The file at that path: a build that is not installed.
    ///
    /// # Safety
    /// The file is a libandiron. Another library's code would be run, and functions of the same
    /// names be called as if they were libandiron's.
    pub unsafe fn at(path: impl AsRef<Path>) -> Result<Library, Error> {
        let path = path.as_ref();
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, functions)) = opened.iter().find(|(known, _)| known == path) {
            return Ok(Library { functions });
        }
        // SAFETY: the caller's promise, for both.
        let found =
            unsafe { Opened::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.and_then(|library| {
                let functions = unsafe { Functions::of(&library) }?;
                std::mem::forget(library); // the functions are code of it
                Ok(functions)
            });
        let functions = found.map_err(|why| {
            let text = format!(
                "libandiron cannot be used: {why}; install Debian's package libandiron1, or say \
                 where the file is by Options::library"
            );
            Error::new(ENOENT, text)
        })?;
        let functions: &'static Functions = Box::leak(Box::new(functions));
        opened.push((path.to_owned(), functions));
        Ok(Library { functions })
    }

    /// The version of the library: "0.1.0".
    pub fn version(&self) -> String {
        // SAFETY: a constant of the library.
        unsafe { CStr::from_ptr((self.functions.version)()) }.to_string_lossy().into_owned()
    }

    /// Makes a call and gives its text, or what it refused.
    pub(crate) fn call(&self, function: impl FnOnce(Text) -> i32) -> Result<String, Error> {
        let mut raw = ptr::null_mut();
        let result = function(&mut raw);
        // SAFETY: the text is ours until we give it back.
        let text = unsafe { text_of(raw) };
        unsafe { (self.functions.text_free)(raw) };
        if result < 0 {
            return Err(Error::new(-result, text));
        }
        Ok(text)
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("version", &self.version()).finish()
    }
}

/// A copy of C's text; "" for NULL.
///
/// # Safety
/// It is NULL or ends with a zero.
pub(crate) unsafe fn text_of(raw: *const c_char) -> String {
    if raw.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(raw) }.to_string_lossy().into_owned()
}

/// A text as C takes it, where it would end at a zero.
pub(crate) fn c_text(text: impl Into<Vec<u8>>, what: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new(EINVAL, format!("{what} has a zero in it")))
}

pub(crate) fn c_path(path: &Path, what: &str) -> Result<CString, Error> {
    c_text(path.as_os_str().as_bytes(), what)
}
