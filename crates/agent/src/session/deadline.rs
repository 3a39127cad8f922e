//! Deadlines that pause while a person is asked.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::shared_state::SessionStatus;

/// Waits until a session has worked for `limit`. Time in which a question is open, of the session
/// or of one of its agents, doesn't count.
pub(super) async fn wait_for_work_time(limit: Duration, mut status: watch::Receiver<SessionStatus>) {
    let mut left = limit;
    loop {
        let is_waiting = !status.borrow_and_update().asked.is_empty();
        if is_waiting {
            if status.changed().await.is_err() {
                return;
            }
            continue;
        }
        let began = Instant::now();
        tokio::select! {
            biased;
            () = tokio::time::sleep(left) => return,
            changed = status.changed() => {
                left = left.saturating_sub(began.elapsed());
                if changed.is_err() {
                    return tokio::time::sleep(left).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::CallId;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn twenty_minutes_of_waiting_for_a_person_leave_ten_of_work() {
        let status = watch::Sender::new(SessionStatus::default());
        let began = Instant::now();
        let ask = |calls: &[&str]| {
            let asked = calls.iter().map(|call| CallId::new(*call)).collect();
            status.send_modify(|status| status.asked = asked);
        };
        let minutes = |minutes: u64| tokio::time::sleep(Duration::from_secs(60 * minutes));
        let person = async {
            minutes(4).await;
            ask(&["c1", "c2"]);
            minutes(10).await;
            // One answer of two: the clock stays stopped.
            ask(&["c2"]);
            minutes(10).await;
            ask(&[]);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = wait_for_work_time(Duration::from_secs(600), status.subscribe()) => {}
            () = person => {}
        }
        assert_eq!(began.elapsed().as_secs() / 60, 30);
    }
}
