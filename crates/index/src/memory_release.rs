//! Returning freed memory to the system.
#![allow(unsafe_code)]

/// Returns freed memory to the system. The C library would keep what ended threads have freed: tens
/// of megabytes after many files were parsed.
pub(crate) fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's locks and changes no memory in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
