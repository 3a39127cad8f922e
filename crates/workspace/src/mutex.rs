//! Locking a mutex that a panic may have poisoned.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

/// What the locks guard is replaced whole, so that it is valid after a panic too.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
