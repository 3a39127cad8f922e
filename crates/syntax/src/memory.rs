//! The parser's memory, and giving memory back. Unsafe: it is C that asks for it, and C that is asked.
#![allow(unsafe_code)]

mod region;

use std::ffi::c_void;
use std::sync::Once;

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_zalloc};
use tree_sitter::{Allocator, set_allocator};

pub(crate) use region::Scope;

/// Gives tree-sitter an allocator that is made for many small pieces: a tree is a piece a node, made one after the other and
/// freed at once. To be called before anything else of tree-sitter's that may ask for memory.
pub(crate) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let allocator = Allocator { malloc, calloc, realloc, free };
        // SAFETY: the four belong together: each knows what the region gave from what mimalloc did. They align as the C
        // library's do, and never give null for more than nothing. Nobody else in the workspace uses tree-sitter, and this
        // crate makes parsers and queries only after a call of this function, in which other threads wait until it is done:
        // nothing of another allocator lives, and nobody else is at it.
        unsafe { set_allocator(Some(allocator)) };
    });
}

/// Gives memory that was freed back to the system, where its allocator would keep it: the C library's keeps what threads that
/// have ended freed, tens of megabytes after much was parsed and indexed. And what this thread keeps for the next text.
pub fn give_back() {
    region::rest();
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes locks of the allocator and changes nothing that anybody has.
    unsafe {
        libc::malloc_trim(0);
    }
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match region::take(size) {
        Some(piece) => piece.as_ptr(),
        // SAFETY: any size may be asked for.
        None => there(unsafe { mi_malloc(size) }, size),
    }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // More than there can be is never there.
    let size = count.saturating_mul(size);
    match region::take(size) {
        Some(piece) => {
            // SAFETY: the piece is of this size.
            unsafe { piece.as_ptr().write_bytes(0, size) };
            piece.as_ptr()
        }
        // SAFETY: any size may be asked for.
        None => there(unsafe { mi_zalloc(size) }, size),
    }
}

unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if old.is_null() {
        // SAFETY: any size may be asked for.
        return unsafe { malloc(size) };
    }
    // SAFETY: any size may be asked for.
    let elsewhere = |size| there(unsafe { mi_malloc(size) }, size);
    region::resize(old, size, elsewhere).unwrap_or_else(|| {
        // SAFETY: what isn't a piece of the region is from this allocator, for tree-sitter was given no other.
        there(unsafe { mi_realloc(old, size) }, size)
    })
}

unsafe extern "C" fn free(piece: *mut c_void) {
    if !region::give(piece) {
        // SAFETY: what isn't a piece of the region is from this allocator, or null.
        unsafe { mi_free(piece) };
    }
}

/// Ends the process where there is no memory, as tree-sitter itself does by default: it uses what it gets without a look.
fn there(found: *mut c_void, size: usize) -> *mut c_void {
    if found.is_null() && size > 0 {
        std::process::abort();
    }
    found
}
