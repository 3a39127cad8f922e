//! Work of one case on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does all jobs, as many at once as there are cores, and gives what they say, in their order.
pub(crate) fn each<J: Sync, T: Send>(jobs: &[J], work: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let at_once = 3 * std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::SeqCst);
                    let Some(job) = jobs.get(place) else { return };
                    let said = work(job);
                    done.lock().unwrap().push((place, said));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, said)| said).collect()
}
