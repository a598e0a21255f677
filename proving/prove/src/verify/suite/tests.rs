//! Suites good and bad: every fault has its path, and all are told at once.

use std::path::Path;

use http::Method;

use super::form::parse;
use super::{Behaviour, By, Code, Statuses, StreamEnd, Suite, To, in_short, selector, shown};
use crate::subject::Subject;

/// Faults as they are told.
fn faults(text: &str) -> Vec<String> {
    let faults = parse(text).expect_err("faults");
    faults.iter().map(ToString::to_string).collect()
}

const UPSTREAM: &str = "name = 'x'\n[[upstream]]\nname = 'up'\ncredential = 'Bearer k'\n";

#[test]
fn the_suite_that_is_shipped_is_read() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/white-paper/verify.toml");
    let suite = Suite::read(&path).expect("a suite");
    let first = &suite.cases[0];
    assert_eq!(first.name, "Local rate limiting");
    assert_eq!(first.calls[0].count, 6);
    assert_eq!(first.calls[0].statuses.to_string(), "2 x 200, 4 x 429");
    assert_eq!(
        (first.upstreams[0].calls, first.upstreams[1].calls),
        (Some(2), Some(0))
    );
    assert_eq!(first.metrics[0].by, By::Count(4));
    assert!(
        suite
            .cases
            .iter()
            .all(|case| case.never_upstream.len() == 2)
    );
    // The limit is tried at three moments, two of which count from its first call.
    let limit: Vec<(u64, &str)> = (suite.cases.iter())
        .filter(|case| case.since == Some(0))
        .map(|case| (case.wait.as_secs(), &*case.name))
        .collect();
    assert_eq!(
        limit,
        [(20, "Twenty seconds later"), (61, "A minute later")]
    );
    let broken = suite
        .cases
        .iter()
        .find(|case| case.upstreams[0].does == Behaviour::Break(3));
    let broken = broken.expect("a case with a broken stream");
    assert_eq!(broken.calls[0].answers[0].stream, Some(StreamEnd::Broken));
}

#[test]
fn a_wait_counts_from_an_earlier_case_or_it_is_a_fault() {
    let case = |name: &str, more: &str| {
        format!("[[case]]\nname = '{name}'\nsays = 'x'\n{more}[[case.call]]\n")
    };
    let suite = |second: &str| {
        format!(
            "name = 'x'\n{}{}",
            case("first", ""),
            case("second", second)
        )
    };
    let read = parse(&suite("since = 'first'\nwait = '20s'\n")).expect("a suite");
    assert_eq!((read.cases[0].since, read.cases[1].since), (None, Some(0)));
    for (second, says) in [
        (
            "since = 'third'\nwait = '20s'\n",
            "case[1].since: no earlier case \"third\"",
        ),
        (
            "since = 'second'\nwait = '20s'\n",
            "case[1].since: no earlier case \"second\"",
        ),
        (
            "since = 'first'\n",
            "case[1]: `since` says from when `wait` counts",
        ),
    ] {
        let found = faults(&suite(second));
        assert!(found.iter().any(|fault| fault.contains(says)), "{found:?}");
    }
}

#[test]
fn the_gateways_that_are_shipped_say_where_the_limits_metric_is() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/white-paper/gateways");
    for name in ["tollgate", "envoy"] {
        let subject = Subject::of(&base.join(name)).expect("a subject");
        assert_eq!(subject.name, name);
        let metrics = &subject.manifest.metrics;
        assert!(metrics.contains_key("limited"), "{name}");
        for metric in metrics.values() {
            selector(&metric.series).expect("a series");
        }
    }
}

#[test]
fn all_faults_are_told_at_once_each_with_its_path() {
    let text = format!(
        "{UPSTREAM}never = 1\n[[upstream]]\nname = 'up'\ncredential = \"a\\nb\"\nrefuses = 200\n"
    );
    let told = faults(&text);
    for part in [
        "upstream[0].never: unknown field `never`",
        "upstream[1].credential: is no value of a header",
        "upstream[1].refuses: a status from 400 to 499",
        "case: a suite has from 1 to 1000 cases",
    ] {
        assert!(
            told.iter().any(|told| told.starts_with(part)),
            "{part}: {told:?}"
        );
    }
    let text = format!(
        "{UPSTREAM}[metric.limited]\n\
         [[case]]\nname = 'a'\nsays = 'x'\nwiat = '1s'\n\
         [[case]]\nname = 'b'\nsays = 'x'\nwait = 'soon'\nnever_upstream = ['']\n\
         metric = [{{ name = 'limted', grows_by = 1 }}, {{ name = 'limited', grows_by = 'much' }}]\n\
         [case.upstream.donw]\ncalls = 1\n\
         [case.upstream.up]\nhangs = true\ndown = true\n\
         [[case.call]]\nheaders = {{ 'x y' = 'a', x-z = \"a\\r\\nb: c\", content-length = '1' }}\npath = 'v1'\nto = 'nobody'\n\
         [[case.call]]\nstatuses = '2 x 200'\ncount = 3\n\
         [[case.call]]\nstatuses = '2 x 20'\n\
         [[case.call]]\nanswer = [{{ status = '429' }}, {{ stream_ends = 'open' }}, {{ json = ['error'] }}]\n\
         [[case]]\nname = 'b'\nsays = 'x'\n"
    );
    let told = faults(&text);
    for part in [
        "case[0].wiat: unknown field `wiat`, expected one of",
        "case[1].wait: \"soon\" is no time",
        "case[1].never_upstream: each text has at least 4 bytes",
        "case[1].metric[0].name: no metric \"limted\"; there are [\"limited\"]",
        "case[1].metric[1].grows_by: \"much\" is neither",
        "case[1].upstream.donw: no upstream \"donw\"; there are [\"up\"]",
        "case[1].upstream.up: one of breaks_after, fails, hangs and down",
        "case[1].call[0].to: no upstream \"nobody\"",
        "case[1].call[0].path: begins with /",
        "case[1].call[0].headers.x y: is no name of a header",
        "case[1].call[0].headers.x-z: the value holds control characters",
        "case[1].call[0].headers.content-length: follows from the call itself",
        "case[1].call[1].statuses: speaks of 2 answers, and count is 3",
        "case[1].call[2].statuses: \"20\" is no status",
        "case[1].call[3].answer[0].status: 429 is none of the statuses 200",
        "case[1].call[3].answer[1].stream_ends: unknown variant `open`",
        "case[1].call[3].answer[2].json: \"error\" is no JSON pointer",
        "case[2].name: \"b\" is the name of another case",
        "case[2].call: a case makes at least one call",
    ] {
        assert!(
            told.iter().any(|told| told.starts_with(part)),
            "{part}: {told:#?}"
        );
    }
}

#[test]
fn a_file_that_is_no_toml_is_told_with_its_line() {
    let told = faults("name = 'x'\n[[case]\n");
    assert!(told[0].contains("line 2"), "{told:?}");
}

#[test]
fn a_call_is_a_chat_of_the_suites_model_unless_it_says_otherwise() {
    let text = UPSTREAM.replace("name = 'x'\n", "name = 'x'\nmodel = 'm'\n");
    let text = format!(
        "{text}[[case]]\nname = 'a'\nsays = 'x'\n[[case.call]]\nstream = true\n\
         [[case.call]]\nmethod = 'GET'\npath = '/v1/models'\n\
         [[case.call]]\nbody = '{{\"model\":\"{{model}}\"}}'\nto = 'up'\n"
    );
    let suite = parse(&text).expect("a suite");
    let [chat, get, own] = &suite.cases[0].calls[..] else {
        panic!("three calls")
    };
    let body: serde_json::Value = serde_json::from_slice(&chat.body).expect("JSON");
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&"m".into(), &true.into())
    );
    assert_eq!(chat.statuses.to_string(), "200");
    assert_eq!((&get.method, get.body.len()), (&Method::GET, 0));
    assert_eq!(own.body, b"{\"model\":\"m\"}");
    assert_eq!((chat.to, own.to), (To::Gateway, To::Upstream(0)));
}

#[test]
fn statuses_are_read_in_order_and_give_themselves_back() {
    let read = |text: &str| text.parse::<Statuses>();
    let some = read("2 x 200, then 4 x 429").expect("statuses");
    assert_eq!(
        (some.count(), some.to_string().as_str()),
        (6, "2 x 200, 4 x 429")
    );
    assert!(some.are(&[200, 200, 429, 429, 429, 429]));
    assert!(!some.are(&[200, 200, 200, 429, 429, 429]));
    assert!(!some.are(&[429, 200, 200, 429, 429, 429]));
    assert!(!some.are(&[200, 200, 429, 429, 429]));
    assert!(!some.are(&[]));
    assert!(read("502|503").expect("statuses").are(&[503]));
    let class = read("3 x 5xx").expect("statuses");
    assert!(
        class.are(&[500, 502, 599]) && !class.are(&[500, 502, 600]) && !class.are(&[499, 500, 500])
    );
    for wrong in [
        "",
        "0 x 200",
        "x 200",
        "2 x",
        "two x 200",
        "20",
        "6xx",
        "200;429",
        "99999 x 200",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    assert_eq!(in_short(&[200, 200, 429, 200]), "2 x 200, 429, 200");
    assert!("4xx".parse::<Code>().expect("a code").takes(429));
}

#[test]
fn a_series_is_a_name_with_labels() {
    let series = selector("refused_total{workload=\"a\", kind=\"b\"}").expect("a series");
    assert_eq!(shown(&series), "refused_total{workload=\"a\", kind=\"b\"}");
    for wrong in ["", "a b", "a{b}", "a{b=\"c\""] {
        assert!(selector(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_suite_of_the_documentation_is_read() {
    for (page, text) in crate::pages::pieces("suite") {
        let suite = parse(&text).unwrap_or_else(|faults| panic!("{page}: {faults:?}"));
        assert_eq!(suite.cases.len(), 1, "{page}");
    }
}
