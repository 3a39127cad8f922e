//! Names, places and races.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::*;

/// A session that knows whether it was ended.
#[derive(Clone, Debug)]
struct SessionDouble {
    number: usize,
    closed: Arc<AtomicBool>,
    refuses: bool,
}

impl RegisteredSession for SessionDouble {
    type Status = usize;

    fn send_as(&self, _: MessageKind, _: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async { Ok(()) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, usize> {
        async { self.number }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        async {
            self.closed.store(true, Ordering::SeqCst);
            if self.refuses { Err(AgentError::Ended) } else { Ok(()) }
        }
        .boxed()
    }
}

fn double(number: usize) -> SessionDouble {
    SessionDouble { number, closed: Arc::default(), refuses: false }
}

async fn made(number: usize) -> Result<SessionDouble, AgentError> {
    Ok(double(number))
}

/// Case 32: a full registry says so; removing frees the place and ends the session.
#[tokio::test]
async fn case_32_capacity_and_removal() {
    let pool = SessionRegistry::new(2);
    let first = pool.create("a", || made(1)).await.unwrap();
    pool.create("b", || made(2)).await.unwrap();
    let full = pool.create("c", || made(3)).await.unwrap_err();
    assert!(full.to_string().starts_with("Pool is full"), "{full}");
    assert!(matches!(pool.resume("c", || made(3)).await, Err(RegistryError::Full { capacity: 2 })));
    pool.remove("a").await.unwrap();
    assert!(first.closed.load(Ordering::SeqCst));
    assert!(pool.get("a").is_none());
    pool.create("c", || made(3)).await.unwrap();
    assert_eq!((pool.list(""), pool.len()), (vec!["b".to_owned(), "c".to_owned()], 2));
    assert_eq!(SessionRegistry::<SessionDouble>::default().shared.capacity, 50);
}

#[tokio::test]
async fn names_are_looked_up_listed_and_asked() {
    let pool = SessionRegistry::default();
    for (name, number) in [("web/1", 1), ("web/2", 2), ("cli", 3)] {
        pool.create(name, || made(number)).await.unwrap();
    }
    assert_eq!(pool.list("web/"), ["web/1", "web/2"]);
    assert_eq!(pool.status("cli").await.unwrap(), 3);
    assert_eq!(pool.get("web/2").unwrap().number, 2);
    for refused in [pool.status("x").await.map(|_| ()), pool.remove("x").await] {
        assert!(matches!(refused, Err(RegistryError::Unknown(name)) if name == "x"));
    }
    assert!(matches!(pool.create("cli", || made(4)).await, Err(RegistryError::Taken(name)) if name == "cli"));
}

/// Fault 64: two creators of one name used to get a session each.
#[tokio::test]
async fn fault_64_two_creators_of_one_name_never_both_get_a_session() {
    let pool = SessionRegistry::new(1);
    let (go, wait) = oneshot::channel::<()>();
    let count = Arc::new(AtomicUsize::new(0));
    let (slow_pool, slow_count) = (pool.clone(), Arc::clone(&count));
    let slow = tokio::spawn(async move {
        let make = || async {
            slow_count.fetch_add(1, Ordering::SeqCst);
            wait.await.unwrap();
            made(1).await
        };
        slow_pool.create("a", make).await
    });
    while count.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let second = pool.create("a", || async { unreachable!("the name is taken") }).await;
    assert!(matches!(second, Err(RegistryError::Taken(_))));
    assert!(
        matches!(pool.create("b", || made(2)).await, Err(RegistryError::Full { .. })),
        "one in the making counts"
    );
    assert!(pool.get("a").is_none());
    // Who resumes waits for the one in the making, and removing it waits too.
    let resumed = pool.resume("a", || async { unreachable!("it gets live") });
    let (resumed, ()) = tokio::join!(resumed, async { go.send(()).unwrap() });
    assert_eq!(resumed.unwrap().number, 1);
    assert_eq!(slow.await.unwrap().unwrap().number, 1);
}

#[tokio::test]
async fn a_creator_that_fails_panics_or_is_dropped_gives_the_name_back() {
    let pool = SessionRegistry::new(1);
    let failed = pool.create("a", || async { Err(AgentError::Ended) }).await;
    assert!(matches!(failed, Err(RegistryError::Session(AgentError::Ended))));
    assert!(
        pool.create("a", std::future::pending::<Result<SessionDouble, AgentError>>).now_or_never().is_none()
    );
    let doomed = pool.clone();
    let died = tokio::spawn(async move { doomed.create("a", || async { panic!("on purpose") }).await }).await;
    assert!(died.is_err());
    assert!(pool.is_empty());
    pool.create("a", || made(1)).await.unwrap();
}

#[tokio::test]
async fn resume_gives_the_live_one_or_opens_it_once() {
    let pool = SessionRegistry::new(2);
    let opened = AtomicUsize::new(0);
    let open = || async {
        opened.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        made(7).await
    };
    let (one, other) = tokio::join!(pool.resume("a", open), pool.resume("a", open));
    assert_eq!((one.unwrap().number, other.unwrap().number, opened.load(Ordering::SeqCst)), (7, 7, 1));
    pool.resume("a", || async { unreachable!("it is live") }).await.unwrap();
    let names = ["a", "b", "c"].map(str::to_owned);
    let failed = pool.resume_all(names, |_| made(8)).await;
    assert!(matches!(&failed[..], [(name, RegistryError::Full { .. })] if name == "c"));
}

#[tokio::test]
async fn a_fork_is_a_session_of_its_own() {
    let pool = SessionRegistry::new(2);
    pool.create("a", || made(1)).await.unwrap();
    let fork = pool.fork("a", "a/1", |parent| made(parent.number + 10)).await.unwrap();
    assert_eq!((fork.number, pool.list("a")), (11, vec!["a".to_owned(), "a/1".to_owned()]));
    assert!(matches!(pool.fork("x", "y", |_| made(1)).await, Err(RegistryError::Unknown(_))));
    assert!(matches!(pool.fork("a", "a/1", |_| made(1)).await, Err(RegistryError::Taken(_))));
    pool.remove("a").await.unwrap();
    assert_eq!(pool.list(""), ["a/1"], "a fork outlives its parent");
}

#[tokio::test]
async fn one_that_ends_badly_is_out_all_the_same() {
    let pool = SessionRegistry::new(3);
    let bad = SessionDouble { refuses: true, ..double(1) };
    let given = bad.clone();
    pool.create("bad", || async move { Ok(given) }).await.unwrap();
    pool.create("good", || made(2)).await.unwrap();
    let failed = pool.close_all().await;
    assert!(matches!(&failed[..], [(name, RegistryError::Session(_))] if name == "bad"));
    assert!(bad.closed.load(Ordering::SeqCst) && pool.is_empty());
}
