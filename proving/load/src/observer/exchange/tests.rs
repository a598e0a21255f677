//! Streams whole and cut anywhere, and what they come to.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::event::Finish;
use super::super::{Live, Observations, Window};
use super::{Answers, ExchangeTimes, ObserveOptions, ObserverBuffers};
use crate::client::{Answer, Failure, Listener, Said};

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
    "data: {\"choices\": [{\"delta\": {\"content\": \"a \\\"content\\\":\\\"\\\" b\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}],\"usage\":{\"completion_tokens\":1}}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
    "data: [DONE]\n\n",
);
const EVENTS: Said = Said {
    status: 200,
    is_event_stream: true,
    retry_after_s: None,
};
const JSON: Said = Said {
    status: 200,
    is_event_stream: false,
    retry_after_s: None,
};

/// ObserveOptions pieces, a millisecond apart unless they come at once.
fn hear<'a>(
    said: Said,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    apart: Duration,
) -> (ExchangeTimes, Result<Answer, Failure>, Observations) {
    hear_as(Answers::Any, said, pieces, apart)
}

fn hear_as<'a>(
    answers: Answers,
    said: Said,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    apart: Duration,
) -> (ExchangeTimes, Result<Answer, Failure>, Observations) {
    let begin = Instant::now();
    let window = Window {
        begin,
        end: begin + Duration::from_secs(3600),
    };
    let (seen, live, mut ear) = (
        RefCell::new(Observations::default()),
        Live::default(),
        ObserverBuffers::default(),
    );
    let hears = ObserveOptions {
        answers,
        expects: None,
        usage: true,
        window,
        counts: true,
    };
    // One that was left in the middle must leave nothing behind.
    let mut left = ear.hear(hears, &seen, &live);
    left.on_body(
        begin,
        EVENTS,
        b"data: {\"usage\":{\"prompt_tokens\":1}}\n\ndata: le",
    );
    drop(left);
    assert_eq!(live.open(), 0);
    *seen.borrow_mut() = Observations::default();
    let mut hearing = ear.hear(hears, &seen, &live);
    let mut now = begin;
    for piece in pieces {
        hearing.on_body(now, said, piece);
        now += apart;
    }
    let answer = Answer {
        said,
        last_byte: now,
    };
    let (heard, outcome) = hearing.end(Ok(answer));
    (heard, outcome, seen.into_inner())
}

#[test]
fn a_stream_has_its_first_token_its_first_visible_text_and_the_last_usage() {
    let events = STREAM
        .split_inclusive("\n\n")
        .flat_map(|two| two.split_inclusive("\r\n\r\n"));
    let (heard, outcome, seen) = hear(EVENTS, events.map(str::as_bytes), Duration::from_millis(10));
    assert!(outcome.is_ok());
    assert_eq!((heard.events, heard.outputs, seen.outputs), (9, 4, 4));
    let since = |at: Option<Instant>| {
        at.zip(heard.body)
            .map(|(at, first)| (at - first).as_millis())
    };
    assert_eq!(since(heard.first_token), Some(20));
    assert_eq!(since(heard.first_visible), Some(30));
    assert_eq!(since(heard.last_token), Some(50));
    let usage = heard.usage.expect("usage");
    assert_eq!(
        (usage.prompt, usage.completion, usage.cached()),
        (Some(9), Some(5), Some(4))
    );
    assert_eq!(
        heard.time_per_token(),
        Some(Duration::from_micros(7500)),
        "30 ms over four tokens"
    );
    let gaps = seen.quantiles(super::Measure::BetweenTokens).expect("gaps");
    assert!(
        gaps.p50.abs_diff(10_000) < 50 && gaps.max.abs_diff(10_000) < 50,
        "{gaps:?}"
    );
}

#[test]
fn an_answer_in_one_piece_has_the_usage_at_its_end() {
    let body = format!(
        r#"{{"choices":[{{"message":{{"content":"{}"}}}}],"usage":{{"prompt_tokens":3,"completion_tokens":2}}}}"#,
        "x".repeat(20_000)
    );
    for pieces in [body.len(), 100, 7] {
        let (heard, outcome, _) = hear(JSON, body.as_bytes().chunks(pieces), Duration::ZERO);
        assert!(outcome.is_ok());
        let usage = heard.usage.expect("usage");
        assert_eq!(
            (usage.prompt, usage.completion, heard.events),
            (Some(3), Some(2), 0)
        );
    }
}

#[test]
fn a_stream_that_tells_of_an_error_or_does_not_finish_is_no_good_answer() {
    let outcome = |said, text: &str| hear(said, [text.as_bytes()], Duration::ZERO).1.err();
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let error = format!("{token}data: {{\"error\":{{\"message\":\"no\"}}}}\n\ndata: [DONE]\n\n");
    assert_eq!(outcome(EVENTS, &error), Some(Failure::ErrorEvent));
    assert_eq!(outcome(EVENTS, token), Some(Failure::Unfinished));
    assert_eq!(outcome(EVENTS, ""), Some(Failure::Unfinished));
    assert_eq!(
        outcome(JSON, token),
        None,
        "events without their content type are not judged"
    );
    assert_eq!(outcome(EVENTS, &format!("{token}data: [DONE]\n\n")), None);
    let refused = Said {
        retry_after_s: None,
        status: 429,
        is_event_stream: false,
    };
    assert_eq!(outcome(refused, "{}"), Some(Failure::Status(429)));
}

fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(testing::seed("any_chunking_of_a_stream")),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn any_chunking_of_a_stream_gives_the_same_observation(cuts in prop::collection::vec(0..STREAM.len(), 0..40)) {
        let bytes = STREAM.as_bytes();
        let mut cuts = cuts;
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut from = 0;
        let pieces: Vec<&[u8]> = cuts.iter().map(|to| { let piece = &bytes[from..*to]; from = *to; piece }).collect();
        // All at one moment, so that times cannot tell the cuts.
        let whole = hear(EVENTS, [bytes], Duration::ZERO);
        let cut = hear(EVENTS, pieces, Duration::ZERO);
        let timeless = |heard: ExchangeTimes| ExchangeTimes { sent: None, head: None, body: None, first_token: None, first_visible: None, last_token: None, ..heard };
        prop_assert_eq!(timeless(whole.0), timeless(cut.0));
        prop_assert_eq!(whole.1.is_ok(), cut.1.is_ok());
        let gaps = |seen: &Observations| seen.histogram(super::Measure::BetweenTokens).len();
        prop_assert_eq!(gaps(&whole.2), gaps(&cut.2));
        prop_assert_eq!((whole.2.events, whole.2.body_bytes), (cut.2.events, cut.2.body_bytes));
    }
}

#[test]
fn what_the_first_failure_of_a_kind_said_is_kept_however_it_was_cut() {
    let refused = Said {
        retry_after_s: None,
        status: 404,
        is_event_stream: false,
    };
    let body = format!("{{\"error\":\"no such model\"}}{}", " ".repeat(2000));
    for pieces in [body.len(), 7] {
        let (_, outcome, seen) = hear(refused, body.as_bytes().chunks(pieces), Duration::ZERO);
        assert_eq!(outcome.err(), Some(Failure::Status(404)));
        let said = &seen.said[&Failure::Status(404)];
        assert!(said.starts_with("{\"error\":\"no such model\"}") && said.len() == 512);
    }
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":\"full\"}\n\ndata: [DONE]\n\n";
    let (heard, _, seen) = hear(EVENTS, [stream.as_bytes()], Duration::ZERO);
    assert!(
        seen.said[&Failure::ErrorEvent].contains("\"full\""),
        "{:?}",
        seen.said
    );
    assert!(heard.usage.is_none());
}

#[test]
fn what_is_no_answer_is_no_good_one_whatever_its_status_says() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let outcome = |answers, said, text: &str| {
        hear_as(answers, said, [text.as_bytes()], Duration::ZERO)
            .1
            .err()
    };
    let whole = format!("{token}{finish}data: [DONE]\n\n");
    for said in [EVENTS, JSON] {
        assert_eq!(outcome(Answers::Events, said, &whole), None);
        assert_eq!(
            outcome(Answers::Events, said, token),
            Some(Failure::Unfinished)
        );
        assert_eq!(
            outcome(Answers::Events, said, "data: [DONE]\n\n"),
            Some(Failure::Unfinished)
        );
    }
    for page in [
        "",
        "<html>log in</html>",
        "{\"error\":{\"message\":\"no\"}}",
    ] {
        assert_eq!(
            outcome(Answers::Events, JSON, page),
            Some(Failure::Body),
            "{page}"
        );
    }
    let answer = "{\"id\":\"1\",\"choices\":[{\"message\":{\"content\":\"a\"}}],\"error\":null}";
    assert_eq!(outcome(Answers::Json, JSON, answer), None);
    let late =
        "{\"id\":\"1\",\"error\":{\"code\":500},\"choices\":[{\"finish_reason\":\"error\"}]}";
    assert_eq!(
        outcome(Answers::Json, JSON, late),
        Some(Failure::ErrorEvent)
    );
    for page in ["", "<html></html>", "\u{1f}\u{8b}zip"] {
        assert_eq!(
            outcome(Answers::Json, JSON, page),
            Some(Failure::Body),
            "{page}"
        );
    }
}

#[test]
fn a_report_of_tokens_that_cannot_be_is_none() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for reported in ["0", "1", "18446744073709551615", "4000000000"] {
        let usage = format!("data: {{\"usage\":{{\"completion_tokens\":{reported}}}}}\n\n");
        let (heard, ..) = hear(
            EVENTS,
            [token, token, token, usage.as_str()].map(str::as_bytes),
            Duration::from_millis(10),
        );
        assert_eq!(heard.tokens(), 3, "{reported}");
        assert_eq!(heard.time_per_token(), Some(Duration::from_millis(10)));
    }
}

#[test]
fn a_good_answer_that_says_nothing_is_counted_by_why_it_ended() {
    let empty = |said, text: &str| {
        let (heard, outcome, _) = hear(said, [text.as_bytes()], Duration::ZERO);
        assert!(outcome.is_ok(), "{text}");
        heard.is_empty.then_some(heard.finish)
    };
    let event = |delta: &str, reason: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
        )
    };
    assert_eq!(
        empty(EVENTS, &event("{}", "stop")),
        Some(Some(Finish::Stop))
    );
    let filtered = event("{\"content\":\"\"}", "content_filter");
    assert_eq!(empty(EVENTS, &filtered), Some(Some(Finish::ContentFilter)));
    assert_eq!(empty(EVENTS, &event("{\"content\":\"a\"}", "stop")), None);
    assert_eq!(empty(EVENTS, &event("{\"refusal\":\"no\"}", "stop")), None);
    let whole = |content: &str| {
        format!(
            "{{\"choices\":[{{\"message\":{{\"content\":{content}}},\"finish_reason\":\"stop\"}}]}}"
        )
    };
    assert_eq!(empty(JSON, &whole("\"\"")), Some(Some(Finish::Stop)));
    assert_eq!(empty(JSON, &whole("\"a\"")), None);
    assert_eq!(empty(JSON, "{\"data\":[]}"), None, "no answer of a model");
}

#[test]
fn the_first_bytes_of_answers_that_are_not_what_they_should_be_are_kept() {
    let told = |answers, said, text: &str, failure| {
        let (_, outcome, seen) = hear_as(answers, said, [text.as_bytes()], Duration::ZERO);
        assert_eq!(outcome.err(), Some(failure), "{text}");
        seen.said[&failure].clone()
    };
    let page = format!("<html>{}", "x".repeat(2000));
    assert_eq!(told(Answers::Json, JSON, &page, Failure::Body), page[..512]);
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    assert_eq!(
        told(Answers::Any, EVENTS, token, Failure::Unfinished),
        token
    );
}
