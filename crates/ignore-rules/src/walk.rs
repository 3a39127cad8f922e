//! The walk that all listings of a tree share.
//!
//! [`visit_all`] visits directories with as many threads as are worth it, and [`DirNames`] lists
//! one directory. A visitor opens its directory beneath the root, through no link, lists the names,
//! matches them with the rules of [`RuleLayer`](crate::RuleLayer)s, and returns the directories to
//! visit next. So a directory is opened once, however many names it has.
//!
//! The `ignore` crate's walker resolves a path for each entry and doesn't use descriptors; this one
//! is contained by construction and several times as fast.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

mod dir_names;

pub use dir_names::{DirName, DirNames, compare_paths, git_names_in, names_in};

/// Directories nested deeper than this aren't entered; a path's 4,095 bytes would allow 2,047.
pub const MAX_DEPTH: usize = 128;
/// Minimum number of waiting directories for each further thread: starting a thread costs less than
/// reading thirty directories.
const MIN_WAITING_PER_THREAD: usize = 24;

/// Visits `first` and everything that a visit adds to its second argument, and returns the results
/// of each thread. A tree with few directories is visited by the calling thread alone.
pub fn visit_all<T: Send, R: Default + Send>(
    first: T,
    max_threads: usize,
    visit: impl Fn(T, &mut Vec<T>, &mut R) + Sync,
) -> Vec<R> {
    let queue = Queue::new(first);
    std::thread::scope(|scope| {
        let (mut results, mut helpers, mut max_helpers) = (R::default(), Vec::new(), max_threads.max(1) - 1);
        while let Some(task) = queue.take() {
            queue.visit(task, &visit, &mut results);
            if helpers.len() < max_helpers
                && queue.lock().waiting.len() >= MIN_WAITING_PER_THREAD * (helpers.len() + 1)
            {
                let help = || {
                    let mut results = R::default();
                    while let Some(task) = queue.take() {
                        queue.visit(task, &visit, &mut results);
                    }
                    results
                };
                match Builder::new().spawn_scoped(scope, help) {
                    Ok(helper) => helpers.push(helper),
                    // With fewer threads the walk only takes longer.
                    Err(_) => max_helpers = helpers.len(),
                }
            }
        }
        let mut all = vec![results];
        // Without the results of a thread that panicked, its files would count as gone.
        let joined =
            helpers.into_iter().map(|it| it.join().unwrap_or_else(|it| std::panic::resume_unwind(it)));
        all.extend(joined);
        all
    })
}

/// The directories that wait for a visit.
struct Queue<T> {
    state: Mutex<QueueState<T>>,
    news: Condvar,
}

struct QueueState<T> {
    waiting: Vec<T>,
    /// Tasks taken and not finished.
    running: usize,
    /// Threads that wait for a task.
    idle: usize,
}

/// A visit in progress, which ends on drop.
struct RunningVisit<'a, T> {
    queue: &'a Queue<T>,
    below: Vec<T>,
}

impl<T> Queue<T> {
    fn new(first: T) -> Self {
        let state = QueueState { waiting: vec![first], running: 0, idle: 0 };
        Self { state: Mutex::new(state), news: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        // The queue is valid after a panic of another thread: a task is taken or it isn't.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next task, or `None` when all are done. Waits while another thread may still add
    /// some.
    fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.waiting.pop() {
                state.running += 1;
                return Some(task);
            }
            if state.running == 0 {
                return None;
            }
            state.idle += 1;
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn visit<R>(&self, task: T, visit: &impl Fn(T, &mut Vec<T>, &mut R), results: &mut R) {
        let mut visiting = RunningVisit { queue: self, below: Vec::new() };
        visit(task, &mut visiting.below, results);
    }
}

impl<T> Drop for RunningVisit<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.running -= 1;
        let wakes = state.idle > 0 && (!self.below.is_empty() || state.running == 0);
        state.waiting.append(&mut self.below);
        drop(state);
        if wakes {
            self.queue.news.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of numbers: each has the ten numbers below that begin with it.
    fn visit_numbers(max_threads: usize, limit: u32) -> Vec<Vec<u32>> {
        visit_all(1_u32, max_threads, |number, below, seen: &mut Vec<u32>| {
            seen.push(number);
            below.extend((0..10).map(|digit| number * 10 + digit).filter(|next| *next < limit));
        })
    }

    #[test]
    fn every_task_is_visited_once_by_any_number_of_threads() {
        for (threads, limit) in [(1, 20_000), (4, 20_000), (0, 200), (64, 20_000)] {
            let results = visit_numbers(threads, limit);
            assert!(results.len() <= threads.max(1), "{} threads", results.len());
            let mut all = results.concat();
            all.sort_unstable();
            let mut expected: Vec<u32> =
                [1..2, 10..20, 100..200, 1_000..2_000, 10_000..20_000].into_iter().flatten().collect();
            expected.retain(|number| *number < limit);
            assert_eq!(all, expected, "{threads} threads");
        }
        assert_eq!(visit_numbers(8, 20).len(), 1, "few directories need no thread more");
    }

    #[test]
    fn a_panic_of_a_visit_reaches_the_caller() {
        for fatal in [1, 150, 1_999] {
            let visited = std::panic::catch_unwind(|| {
                visit_all(1_u32, 4, |number, below, _: &mut ()| {
                    assert_ne!(number, fatal, "a visit fails");
                    below.extend((0..10).map(|digit| number * 10 + digit).filter(|next| *next < 2_000));
                })
            });
            assert!(visited.is_err(), "{fatal}");
        }
    }
}
