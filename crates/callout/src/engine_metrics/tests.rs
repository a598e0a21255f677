//! An engine in memory that says what it has to do, falls silent, and begins anew; in virtual time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use policy::balancing::{Balancer, By, Prompt, Reported};

use super::*;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, response, status};

/// News of engines, as they came; of one test alone, by its engine's host.
static NEWS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn tell(engine: &str, news: &EngineNews) {
    let news = format!("{engine}: {news:?}");
    NEWS.lock().expect("no panic").push(news);
}

/// The clock of a test that is paused: all that is asked of it is whether an answer is still good.
fn now() -> Mono {
    static BEGAN: Mutex<Option<Instant>> = Mutex::new(None);
    let began = *BEGAN
        .lock()
        .expect("no panic")
        .get_or_insert_with(Instant::now);
    Mono(i64::try_from(began.elapsed().as_nanos()).expect("a short test"))
}

fn page(waiting: u32, began: u64) -> Does {
    Does::Answer(response(
        200,
        "text/plain",
        format!(
            "vllm:num_requests_running 4\nvllm:num_requests_waiting {waiting}\nvllm:kv_cache_usage_perc 0.5\nprocess_start_time_seconds {began}\n"
        ),
    ))
}

#[tokio::test(start_paused = true)]
async fn an_engine_is_asked_again_and_again_and_less_often_while_it_is_silent() {
    static WAITING: AtomicU32 = AtomicU32::new(3);
    static IS_UP: AtomicBool = AtomicBool::new(true);
    static BEGAN: AtomicU32 = AtomicU32::new(100);
    let answering = |seen: &Seen| {
        assert_eq!((&*seen.method, &*seen.target), ("GET", "/metrics?a=b"));
        match IS_UP.load(Ordering::Relaxed) {
            true => page(
                WAITING.load(Ordering::Relaxed),
                BEGAN.load(Ordering::Relaxed).into(),
            ),
            false => status(503),
        }
    };
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let balancer = Balancer::new(By::PrefixCache, 1);
    let shared = Arc::clone(balancer.endpoint(0).expect("one"));
    let questions = Arc::new(Questions::default());
    let asking = EngineMetrics {
        client,
        url: server.url("/metrics?a=b"),
        every: Duration::from_millis(200),
        shared: Arc::clone(&shared),
        questions: Arc::clone(&questions),
        now,
        tell,
    };
    let asked = tokio::spawn(asking.run());
    let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
    wait(1).await;
    let said = |waiting| Reported {
        running: 4,
        waiting,
        kv_millionths: 500_000,
    };
    assert_eq!(shared.load.reported(now()), Some(said(3)));
    WAITING.store(5, Ordering::Relaxed);
    wait(1000).await;
    assert_eq!(shared.load.reported(now()), Some(said(5)));
    assert_eq!(server.asked(), 6, "at 0, 200, 400, 600, 800 and 1000 ms");
    let body = format!(r#"{{"prompt":"{:_<4000}"}}"#, 1);
    let prompt = Prompt::of(&[body.into()]).expect("a prompt");
    shared.prefixes.add(&prompt);
    // Another process in its place, after a silence of 20 s.
    IS_UP.store(false, Ordering::Relaxed);
    BEGAN.store(120, Ordering::Relaxed);
    wait(20_000).await;
    assert_eq!(shared.load.reported(now()), None, "what it said is old");
    let silent = server.asked() - 6;
    assert!((4..=8).contains(&silent), "asked {silent} times in 20 s");
    assert!(shared.prefixes.seen(&prompt) > 0);
    IS_UP.store(true, Ordering::Relaxed);
    wait(10_000).await;
    assert_eq!(shared.load.reported(now()), Some(said(5)));
    assert_eq!(
        shared.prefixes.seen(&prompt),
        0,
        "another process has seen nothing"
    );
    let news = NEWS.lock().expect("no panic").clone();
    let [first, second, third] = news.as_slice() else {
        panic!("{news:?}");
    };
    assert!(first.contains("Silent(Status { status: 503"), "{first}");
    assert!(
        second.ends_with("Heard") && third.ends_with("Anew"),
        "{news:?}"
    );
    let counts = questions.counts();
    assert_eq!(counts.failed, silent as u64);
    asked.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_no_page_of_an_engine_says_nothing() {
    for answer in [
        response(200, "text/plain", "other_metric 3\n"),
        response(200, "text/plain", vec![0xff, 0xfe]),
        response(200, "text/plain", vec![b'#'; PAGE_BYTES_MAX + 1]),
        response(302, "text/plain", "vllm:num_requests_waiting 1\n"),
    ] {
        let answer = Mutex::new(Some(answer));
        let answering = move |_: &Seen| {
            let answer = answer.lock().expect("no panic").take();
            answer.map_or(Does::Hang, Does::Answer)
        };
        let (server, client) = Server::in_memory(Bounds::default(), answering);
        let asking = EngineMetrics {
            client,
            url: server.url("/metrics"),
            every: Duration::from_millis(200),
            shared: Arc::default(),
            questions: Arc::default(),
            now,
            tell: |_, _| {},
        };
        assert!(asking.ask().await.is_err());
    }
}
