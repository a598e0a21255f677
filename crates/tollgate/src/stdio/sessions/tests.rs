//! How many processes there are, and for whom, on real processes.

use std::future::{Future, poll_fn};
use std::task::Poll;

use config::{Program, ToolCommand};
use policy::id::EndpointId;

use super::*;
use crate::stdio::session::Message;

/// Runs what needs tasks of one thread.
fn run(checks: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(tokio::task::LocalSet::new().run_until(checks));
}

fn sessions(command: &str, args: &[&str]) -> Rc<Sessions> {
    let command = ToolCommand {
        server: "s".into(),
        endpoint: EndpointId(0),
        program: Program {
            command: command.into(),
            args: args.iter().map(|&arg| arg.into()).collect(),
            environment: Vec::new(),
            directory: None,
        },
    };
    let bridge = Bridge::new(&command).expect("a port");
    Sessions::new(Arc::new(bridge), Room::new())
}

fn begin<'a>(sessions: &'a Sessions, caller: &str, place: Held) -> (Rc<Session>, Begun<'a>) {
    let unread = Rc::clone(&sessions.room.unread);
    let program = &sessions.bridge.program;
    let session = Session::begin("s", program, caller.into(), (Some(place), unread));
    let session = session.expect("a process");
    let id = crate::stdio::chance().expect("chance");
    let begun = Begun::new(id, Rc::clone(&session), sessions);
    (session, begun)
}

/// A session whose client knows it.
async fn known(sessions: &Sessions, caller: &str) -> Result<Rc<Session>, Full> {
    let place = sessions.place(&caller.into()).await?;
    let (session, begun) = begin(sessions, caller, place);
    begun.answered(true);
    Ok(session)
}

/// Ends all, and sees them gone.
async fn gone(sessions: &Sessions) {
    sessions.end_all();
    loop {
        let freed = sessions.processes.freed();
        if sessions.processes.taken(Full::Whole, "") == 0 {
            return;
        }
        freed.await;
    }
}

fn message(text: &str) -> Message {
    Message::new(text.into(), None).expect("a text")
}

#[test]
fn a_process_whose_client_did_not_wait_ends_and_a_call_that_nobody_waits_for_keeps_none() {
    run(async {
        let sessions = sessions("cat", &[]);
        let session = known(&sessions, "a").await.expect("a place");
        let asks = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
        let waits = session.call(&asks.read().expect("a message"));
        assert!(session.is_busy());
        drop(waits);
        assert!(!session.is_busy());
        assert_eq!(sessions.open.borrow().len(), 1);
        let place = sessions.place(&"a".into()).await.expect("a place");
        let (left, begun) = begin(&sessions, "a", place);
        drop(begun);
        assert_eq!(sessions.open.borrow().len(), 1);
        assert!(left.is_ending() && !session.is_ending());
    });
}

#[test]
fn one_caller_leaves_processes_to_others() {
    run(async {
        let sessions = sessions("cat", &[]);
        for _ in 0..EACH_MAX {
            assert!(known(&sessions, "a").await.is_ok());
        }
        assert_eq!(known(&sessions, "a").await.err(), Some(Full::Caller));
        for _ in 0..SESSIONS_MAX - EACH_MAX {
            assert!(known(&sessions, "b").await.is_ok());
        }
        assert_eq!(known(&sessions, "b").await.err(), Some(Full::Whole));
        assert_eq!(known(&sessions, "a").await.err(), Some(Full::Caller));
        gone(&sessions).await;
    });
}

#[test]
fn a_process_that_nobody_knows_any_more_counts_until_it_has_ended() {
    run(async {
        // It does not see that its input has ended.
        let sessions = sessions("sleep", &["60"]);
        for _ in 0..EACH_MAX {
            let place = sessions.place(&"a".into()).await.expect("a place");
            drop(begin(&sessions, "a", place));
        }
        assert!(sessions.open.borrow().is_empty());
        assert_eq!(sessions.processes.taken(Full::Caller, "a"), EACH_MAX);
        let caller: Rc<str> = "a".into();
        let mut waits = std::pin::pin!(sessions.place(&caller));
        let is_there = poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_ready())).await;
        assert!(!is_there, "as many as one caller may have are there");
        // Others are not held up by it.
        assert!(known(&sessions, "b").await.is_ok());
        // The first of those that end leaves its place to whoever waits.
        assert!(waits.await.is_ok());
        gone(&sessions).await;
    });
}

#[test]
fn messages_that_a_process_does_not_take_wait_within_a_bound() {
    run(async {
        let sessions = sessions("sleep", &["60"]);
        let session = known(&sessions, "a").await.expect("a place");
        let (caller, long) = (Rc::clone(&session.caller), 4 << 20);
        let mut sends = Vec::new();
        while let Some(held) = sessions.waits(&caller, Some(&session), long) {
            let message = Message::new(vec![b' '; long], Some(held)).expect("a text");
            let session = Rc::clone(&session);
            sends.push(tokio::task::spawn_local(async move {
                session.send(message).await
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(sends.len(), 4);
        // Whoever leaves while it waits leaves nothing; the one that has begun is written to its end.
        for sending in &sends {
            sending.abort();
        }
        for sending in sends {
            assert!(sending.await.is_err());
        }
        assert_eq!(session.waiting.taken(Full::Whole, "a"), long);
        assert_eq!(sessions.room.waiting.taken(Full::Whole, "a"), long);
        gone(&sessions).await;
    });
}
