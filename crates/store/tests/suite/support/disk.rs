//! A disk that counts what is asked of it and fails when told to: SQLite's own file layer, with a
//! look at each flush and write. It becomes the default of this process.
#![allow(unsafe_code, reason = "a file layer of SQLite is a table of C functions")]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use rusqlite::ffi;

/// Flushes of files by SQLite so far.
pub(crate) static FLUSHES: AtomicU64 = AtomicU64::new(0);
/// Reads of files by SQLite so far.
pub(crate) static READS: AtomicU64 = AtomicU64::new(0);
/// Whether every flush fails, as a broken disk's does.
pub(crate) static NO_FLUSH: AtomicBool = AtomicBool::new(false);
/// Whether every write fails, as on a full disk.
pub(crate) static NO_ROOM: AtomicBool = AtomicBool::new(false);

static BELOW: AtomicPtr<ffi::sqlite3_vfs> = AtomicPtr::new(std::ptr::null_mut());
/// The first methods that were seen. Files differ in how they are locked only.
static PLAIN: AtomicPtr<ffi::sqlite3_io_methods> = AtomicPtr::new(std::ptr::null_mut());
/// Methods by the layer below, with ours for each.
static METHODS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Puts it in place, once.
pub(crate) fn install() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        // SAFETY: the layers live for ever, and the copy differs from the original in its name and
        // in how files are opened only.
        unsafe {
            let below = ffi::sqlite3_vfs_find(std::ptr::null());
            BELOW.store(below, Ordering::SeqCst);
            let mut watched = *below;
            watched.zName = c"watched".as_ptr();
            watched.pNext = std::ptr::null_mut();
            watched.xOpen = Some(open);
            assert_eq!(ffi::sqlite3_vfs_register(Box::into_raw(Box::new(watched)), 1), ffi::SQLITE_OK);
        }
    });
}

/// Opens a file with the layer below, and puts the looks into its methods.
unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's arguments are handed on as they are, and the methods of a file that was
    // opened are valid for ever.
    unsafe {
        let below = BELOW.load(Ordering::SeqCst);
        let Some(open) = (*below).xOpen else { return ffi::SQLITE_ERROR };
        let code = open(below, name, file, flags, out);
        let methods = (*file).pMethods;
        if code == ffi::SQLITE_OK && !methods.is_null() {
            let mut known = METHODS.lock().unwrap();
            let ours = match known.iter().find(|(plain, _)| *plain == methods.addr()) {
                Some((_, ours)) => *ours,
                None => {
                    let mut watched = *methods;
                    watched.xSync = Some(sync);
                    watched.xWrite = Some(write);
                    watched.xRead = Some(read);
                    let ours = Box::into_raw(Box::new(watched)).expose_provenance();
                    PLAIN.store(methods.cast_mut(), Ordering::SeqCst);
                    known.push((methods.addr(), ours));
                    ours
                }
            };
            (*file).pMethods = std::ptr::with_exposed_provenance(ours);
        }
        code
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    FLUSHES.fetch_add(1, Ordering::SeqCst);
    if NO_FLUSH.load(Ordering::SeqCst) {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    // SAFETY: the file was opened by the layer whose method this is.
    unsafe {
        match (*PLAIN.load(Ordering::SeqCst)).xSync {
            Some(sync) => sync(file, flags),
            None => ffi::SQLITE_ERROR,
        }
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    if NO_ROOM.load(Ordering::SeqCst) {
        return ffi::SQLITE_FULL;
    }
    // SAFETY: as above.
    unsafe {
        match (*PLAIN.load(Ordering::SeqCst)).xWrite {
            Some(write) => write(file, bytes, count, offset),
            None => ffi::SQLITE_ERROR,
        }
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    bytes: *mut c_void,
    count: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    READS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe {
        match (*PLAIN.load(Ordering::SeqCst)).xRead {
            Some(read) => read(file, bytes, count, offset),
            None => ffi::SQLITE_ERROR,
        }
    }
}

/// The most memory that SQLite had at a time since the last call, in bytes.
pub(crate) fn most_memory() -> i64 {
    // SAFETY: it takes a flag and gives a number.
    unsafe { ffi::sqlite3_memory_highwater(1) }
}
