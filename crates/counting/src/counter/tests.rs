//! What an exchange holds while its answer streams, and what its end brings along.

use tokens::BuiltIn;

use super::*;
use crate::memory::{MemoryBudget, Reach};
use crate::reconciler::{Inbox, inbox};

const KEY: u64 = 7;
const REQUEST: &[u8] = br#"{"messages":[{"role":"user","content":"hello there"}]}"#;
const ANSWER: &[u8] = br#"{"choices":[{"finish_reason":"stop","message":{"content":"hello"}}]}"#;

fn counter() -> (Counter<()>, Inbox<()>) {
    let cache = TokenizerCache::default();
    cache.put([(KEY, Arc::new(Tokenizer::without_template(BuiltIn::O200k)))].into());
    let (reconciler, inbox) = inbox();
    let counter = Counter {
        cache: Arc::new(cache),
        reconciler,
        metrics: Arc::default(),
        calibrations: Arc::new(Calibrations::new(Arc::default())),
        longest: 1 << 20,
        is_hurried: Arc::default(),
    };
    (counter, inbox)
}

fn begin(permit: Permit) -> CountEvent {
    CountEvent::Begin(Box::new(Begun {
        key: KEY,
        operation: Operation::Chat,
        clock_s: 0,
        streamed: false,
        request: Some(vec![Bytes::from_static(REQUEST)]),
        permit,
    }))
}

fn end(last: Option<(Vec<u8>, Permit)>) -> CountEvent {
    CountEvent::End(Box::new(Ended {
        model: "m".into(),
        backend: None,
        tokens: Tokens::default(),
        is_whole: true,
        is_broken: false,
        has_answer: true,
        last,
        rest: None,
    }))
}

fn turn(events: Vec<CountEvent>, kept: Option<Open>) -> Turn<CountEvent, Open> {
    Turn {
        id: 2,
        events,
        kept,
    }
}

#[test]
fn an_answer_that_streams_holds_no_room_for_its_request() {
    let (counter, _inbox) = counter();
    let budget = MemoryBudget::new(1 << 20);
    let mut open = Vec::new();
    for nth in 0..100 {
        let permit = budget.take(EXCHANGE_BYTES + (500 << 10), Reach::All);
        let permit = permit.unwrap_or_else(|| panic!("{nth} open exchanges used up the queue"));
        open.push(counter.guarded_turn(turn(vec![begin(permit)], None)));
    }
    assert_eq!(budget.taken(), 100 * EXCHANGE_BYTES);
    drop(open);
    assert_eq!(budget.taken(), 0);
}

#[test]
fn an_answer_that_begins_with_its_prompt_or_hides_its_reasoning_is_not_counted() {
    let (counter, inbox) = counter();
    let budget = MemoryBudget::new(1 << 20);
    let permit = |bytes| budget.take(bytes, Reach::All).expect("there is room");
    for (operation, request, word) in [
        (Operation::Completions, r#"{"prompt":"hello there"}"#, None),
        (Operation::Completions, r#"{"prompt":"say \"echo\""}"#, None),
        (
            Operation::Completions,
            r#"{"prompt":"hello there","echo":false}"#,
            None,
        ),
        (
            Operation::Completions,
            r#"{"prompt":"hello there","echo":true}"#,
            Some("echo"),
        ),
        (
            Operation::Completions,
            r#"{"prompt":"hello there","echo":"on"}"#,
            Some("echo"),
        ),
        (
            Operation::Chat,
            r#"{"messages":[{"role":"assistant","content":"so"}],"echo":1}"#,
            Some("echo"),
        ),
        (Operation::Messages, r#"{"messages":[],"echo":true}"#, None),
        (
            Operation::Chat,
            r#"{"messages":[],"include_reasoning":false}"#,
            Some("hidden"),
        ),
        (
            Operation::Chat,
            r#"{"messages":[],"include_reasoning":true}"#,
            None,
        ),
        (
            Operation::Chat,
            r#"{"messages":[],"reasoning":{"exclude":true}}"#,
            Some("hidden"),
        ),
    ] {
        let mut begun = begin(permit(EXCHANGE_BYTES));
        if let CountEvent::Begin(begun) = &mut begun {
            begun.operation = operation;
            // In two pieces, as a body may arrive.
            let (first, last) = request.split_at(9);
            begun.request = Some(vec![Bytes::from(first), Bytes::from(last)]);
        }
        let answer = Some((ANSWER.to_vec(), permit(ANSWER.len())));
        let told = counter.guarded_turn(turn(vec![begun, end(answer)], None));
        assert!(told.is_none(), "{request}");
        let counted = inbox.next_count().expect("it was told");
        let why = counted.output.and_then(Result::err).map(Missed::as_str);
        assert_eq!(why, word, "{request}");
    }
}

#[test]
fn what_its_end_brings_is_the_last_of_the_answer() {
    let (counter, inbox) = counter();
    let budget = MemoryBudget::new(1 << 20);
    let permit = |bytes| budget.take(bytes, Reach::All).expect("there is room");
    let (first, last) = ANSWER.split_at(30);
    let events = vec![
        begin(permit(EXCHANGE_BYTES)),
        CountEvent::More(first.to_vec(), permit(first.len())),
        end(Some((last.to_vec(), permit(last.len())))),
    ];
    assert!(counter.guarded_turn(turn(events, None)).is_none());
    let counted = inbox.next_count().expect("it was told");
    let held = EXCHANGE_BYTES + ANSWER.len();
    assert_eq!(budget.taken(), held, "until it is settled");
    assert_eq!(counted.output.map(|count| count.is_ok()), Some(true));
    assert_eq!(counted.prompt.map(|count| count.is_ok()), Some(true));
    drop(counted);
    assert_eq!(budget.taken(), 0);
}

#[test]
fn a_panic_and_a_tokenizer_that_is_gone_are_failures_of_the_gate() {
    let panics = guarded::<()>(|| panic!("as a tokenizer would"));
    assert_eq!(panics.map_err(Missed::as_str), Err("failed"));

    let (counter, inbox) = counter();
    let budget = MemoryBudget::new(1 << 20);
    let permit = || budget.take(EXCHANGE_BYTES, Reach::All);
    let mut begun = begin(permit().expect("there is room"));
    if let CountEvent::Begin(begun) = &mut begun {
        begun.key = KEY + 1;
    }
    let told = counter.guarded_turn(turn(vec![begun, end(None)], None));
    assert!(told.is_none());
    let counted = inbox.next_count().expect("it was told");
    let why = counted.prompt.and_then(Result::err).map(Missed::as_str);
    assert_eq!(why, Some("failed"));
}
