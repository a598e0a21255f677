//! Many who ask the same, in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::*;

fn found(value: u32, is_yes: bool) -> Found<u32> {
    Found {
        value,
        is_yes,
        good_for: Duration::from_secs(60),
        weight: 1,
    }
}

fn key(number: u32) -> Key {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&number.to_be_bytes());
    key
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_the_same_are_one_question() {
    let (shared, asked) = (Shared::new(10), Arc::new(AtomicUsize::new(0)));
    let mut asking = JoinSet::new();
    for _ in 0..100 {
        let (shared, asked) = (Arc::clone(&shared), Arc::clone(&asked));
        asking.spawn(async move {
            let question = async move {
                asked.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                Ok(found(7, true))
            };
            shared.get(key(1), || question).await
        });
    }
    // Those who give up end nothing for the others.
    sleep(Duration::from_millis(1)).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let first = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            shared
                .get(key(2), || async {
                    sleep(Duration::from_secs(1)).await;
                    Ok(found(8, true))
                })
                .await
        }
    });
    sleep(Duration::from_millis(1)).await;
    first.abort();
    let never = || async { Err(Fault::Closed) };
    assert_eq!(shared.get(key(2), never).await, Ok(8));
    assert!(asking.join_all().await.iter().all(|found| *found == Ok(7)));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_to_all_who_wait_and_kept_for_nobody() {
    let shared = Shared::<u32>::new(10);
    let fails = || async { Err(Fault::Garbage("x")) };
    assert_eq!(shared.get(key(1), fails).await, Err(Fault::Garbage("x")));
    let answers = || async { Ok(found(1, true)) };
    assert_eq!(shared.get(key(1), answers).await, Ok(1));
    assert_eq!(shared.get(key(1), fails).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_panics_leaves_the_next_one_free() {
    let shared = Shared::<u32>::new(10);
    let broken = shared.get(key(1), || async { panic!("on purpose") }).await;
    assert_eq!(broken, Err(Fault::Closed));
    assert_eq!(
        shared.get(key(1), || async { Ok(found(1, true)) }).await,
        Ok(1)
    );
}

#[tokio::test(start_paused = true)]
async fn invented_questions_push_out_nobody() {
    let shared = Shared::<u32>::new(16);
    let answers = |value, is_yes| move || async move { Ok(found(value, is_yes)) };
    assert_eq!(shared.get(key(0), answers(1, true)).await, Ok(1));
    for number in 1..1000 {
        assert_eq!(shared.get(key(number), answers(0, false)).await, Ok(0));
    }
    let never = || async { Err(Fault::Closed) };
    assert_eq!(shared.get(key(0), never).await, Ok(1));
    let kept = (0..1000).filter(|n| shared.state().kept(&key(*n), Instant::now()).is_some());
    assert_eq!(kept.count(), 1 + 2);
}

#[tokio::test(start_paused = true)]
async fn as_many_questions_run_as_may() {
    let shared = Shared::<u32>::new(16);
    let mut asking = JoinSet::new();
    let slow = || async {
        sleep(Duration::from_secs(1)).await;
        Ok(found(1, true))
    };
    for number in 0..u32::try_from(FLIGHTS_MAX).expect("few") {
        let shared = Arc::clone(&shared);
        asking.spawn(async move { shared.get(key(number), slow).await });
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(shared.get(key(9999), slow).await, Err(Fault::Full));
    assert!(asking.join_all().await.iter().all(|found| *found == Ok(1)));
    assert_eq!(shared.get(key(9999), slow).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn questions_are_counted_by_what_became_of_them() {
    let questions = Arc::new(Questions::default());
    let shared = Shared::<u32>::counted(16, Arc::clone(&questions));
    let counted = |answered, kept, failed| {
        let counts = questions.counts();
        assert_eq!(
            (counts.answered, counts.kept, counts.failed),
            (answered, kept, failed)
        );
    };
    let slow = || async {
        sleep(Duration::from_secs(1)).await;
        Ok(found(1, true))
    };
    let (one, other) = tokio::join!(shared.get(key(1), slow), shared.get(key(1), slow));
    assert_eq!((one, other), (Ok(1), Ok(1)));
    counted(1, 0, 0);
    assert_eq!(shared.get(key(1), slow).await, Ok(1));
    counted(1, 1, 0);
    let fails = || async { Err(Fault::Garbage("x")) };
    assert!(shared.get(key(2), fails).await.is_err());
    counted(1, 1, 1);
    let mut asking = JoinSet::new();
    for number in 0..u32::try_from(FLIGHTS_MAX).expect("few") {
        let shared = Arc::clone(&shared);
        asking.spawn(async move { shared.get(key(100 + number), slow).await });
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(shared.get(key(3), slow).await, Err(Fault::Full));
    counted(1, 1, 2);
}
