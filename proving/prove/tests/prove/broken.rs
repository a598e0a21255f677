//! The white paper's suite against gateways that are each wrong in one way: every one fails in its case, and in no other
//! that it does not concern; one that is right passes.
//!
//! Invariant: the table has a gateway for each case of the suite as it is shipped.
//! Not here: limits that are wrong by the clock, real gateways (the end-to-end tests).

mod gateway;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use super::{PROVE, ports};
use gateway::{FRONTIER, KEYS, ON_PREM, Wrong};

const SUITE: &str = include_str!("../../../../scenarios/white-paper/verify.toml");
/// Suites at once: they mostly wait.
const AT_ONCE: usize = 16;

/// A gateway that is wrong.
struct Broken {
    wrong: Wrong,
    /// The case that it is for.
    case: &'static str,
    /// Others that it concerns.
    also: &'static [&'static str],
    /// What the case has to say.
    says: &'static str,
}

const fn broken(wrong: Wrong, case: &'static str, says: &'static str) -> Broken {
    Broken {
        wrong,
        case,
        also: &[],
        says,
    }
}

impl Broken {
    const fn and(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }
}

const LIMIT: &str = "Local rate limiting";
const TRUST: &str = "Zero-trust security";
const ROUTING: &str = "Identity-based routing";
const TWENTY: &str = "Twenty seconds later";
const NOBODY: &str = "Nobody in particular";
const WORKLOADS: &str = "Workloads of the corpus";
const STREAMS: &str = "Streams flow";
const USAGE: &str = "Usage is what the upstream said";
const BREAKS: &str = "Broken streams are shown broken";
const FAILS: &str = "An upstream that fails";
const DOWN: &str = "An upstream that is down";
const BACK: &str = "An upstream that is back";
const MINUTE: &str = "A minute later";

fn table() -> Vec<Broken> {
    vec![
        broken(
            Wrong::AdmitsThree,
            LIMIT,
            "3 x 200, 3 x 429; expected 2 x 200, 4 x 429",
        ),
        broken(
            Wrong::SendsRefusedUpstream,
            LIMIT,
            "on-prem had 3 calls; expected 2",
        ),
        broken(
            Wrong::RefusesWithoutRetryAfter,
            LIMIT,
            "no header retry-after",
        )
        .and(&[TWENTY]),
        broken(Wrong::RefusesWithoutReason, LIMIT, "its body is no JSON"),
        broken(
            Wrong::CountsRefusedTwice,
            LIMIT,
            "refused_total grew by 8; expected 4",
        )
        .and(&[MINUTE]),
        broken(Wrong::AdmitsEarly, TWENTY, "200; expected 429"),
        broken(
            Wrong::NeverAdmitsAgain,
            MINUTE,
            "3 x 429; expected 2 x 200, 429",
        ),
        broken(
            Wrong::AdmitsThirdAgain,
            MINUTE,
            "3 x 200; expected 2 x 200, 429",
        ),
        broken(
            Wrong::Keeps("authorization"),
            TRUST,
            "arrived at frontier in header authorization",
        )
        .and(&[STREAMS]),
        broken(
            Wrong::Keeps("x-api-key"),
            TRUST,
            "arrived at frontier in header x-api-key",
        ),
        broken(
            Wrong::Keeps("api-key"),
            TRUST,
            "arrived at frontier in header api-key",
        ),
        broken(
            Wrong::Keeps("x-goog-api-key"),
            TRUST,
            "arrived at frontier in header x-goog-api-key",
        ),
        broken(
            Wrong::Keeps("cookie"),
            TRUST,
            "arrived at frontier in header cookie",
        ),
        broken(
            Wrong::Keeps("proxy-authorization"),
            TRUST,
            "arrived at frontier in header proxy-authorization",
        ),
        broken(
            Wrong::ComparesLetters,
            TRUST,
            "arrived at frontier in header x-api-key",
        ),
        broken(
            Wrong::SendsBase64,
            TRUST,
            "arrived at frontier in the bytes of a connection, base64",
        ),
        broken(
            Wrong::SendsHexadecimal,
            TRUST,
            "arrived at frontier in the bytes of a connection, hexadecimal",
        ),
        broken(
            Wrong::SendsPercentEncoded,
            TRUST,
            "arrived at frontier in the bytes of a connection, percent-encoded",
        ),
        broken(
            Wrong::SendsWithoutHttp,
            TRUST,
            "arrived at frontier in the bytes of a connection, plain",
        ),
        broken(
            Wrong::SendsUnfinishedHead,
            TRUST,
            "arrived at frontier in the bytes of a connection, plain",
        ),
        broken(
            Wrong::RepeatsOwnKey("x-goog-api-key"),
            TRUST,
            "frontier saw a header x-goog-api-key",
        ),
        broken(Wrong::Mirrors, TRUST, "on-prem had 8 calls; expected 0")
            .and(&[ROUTING, STREAMS, DOWN]),
        broken(
            Wrong::EchoesKey,
            TRUST,
            "(never_downstream 1) came back in header x-debug",
        ),
        broken(
            Wrong::HintsKey,
            TRUST,
            "(never_downstream 1) came back in the bytes of a connection, plain",
        ),
        broken(
            Wrong::ExtendsChunksByKey,
            TRUST,
            "(never_downstream 1) came back in the bytes of a connection, plain",
        ),
        broken(
            Wrong::EndsBehindWithKey,
            TRUST,
            "(never_downstream 1) came back in the bytes of a connection, plain",
        ),
        broken(
            Wrong::FallsOver,
            ROUTING,
            "(x-workload-app: swe-rebench-ide): 200; expected 429",
        ),
        broken(
            Wrong::AdmitsUnknown,
            ROUTING,
            "(x-workload-app: unknown-guest): 200; expected 404",
        ),
        broken(
            Wrong::ChangesBodies(FRONTIER),
            ROUTING,
            "frontier had 1 bodies that were not sent so",
        ),
        broken(
            Wrong::AdmitsAnonymous,
            NOBODY,
            "200; expected 400|401|403|404",
        ),
        broken(
            Wrong::ComparesBeginnings,
            NOBODY,
            "(x-workload-app: terminal-bench-ci2): 200; expected 400|401|403|404",
        ),
        broken(Wrong::RejectsWithoutReason, NOBODY, "its body is no JSON").and(&[ROUTING]),
        broken(
            Wrong::Forgets("ui-navigation"),
            WORKLOADS,
            "(x-workload-app: ui-navigation): 2 x 404; expected 2 x 200",
        ),
        broken(
            Wrong::ChangesBodies(ON_PREM),
            WORKLOADS,
            "on-prem had 10 bodies that were not sent so",
        ),
        broken(Wrong::HoldsBack, STREAMS, "it is held back"),
        broken(Wrong::DropsDone, STREAMS, "differ from byte"),
        broken(Wrong::CountsTokensTwice, USAGE, "tokens_total grew by"),
        broken(Wrong::ChangesUsage, USAGE, "tokens; the upstream said").and(&[STREAMS]),
        broken(Wrong::EndsCleanly, BREAKS, "the client saw a clean end"),
        broken(Wrong::SaysDone, BREAKS, "the client was told [DONE]"),
        broken(Wrong::AsksAgain, BREAKS, "on-prem had 2 calls; expected 1"),
        broken(Wrong::AnswersFailure, FAILS, "200; expected 5xx"),
        broken(
            Wrong::ExplainsByKey,
            FAILS,
            "(never_downstream 1) came back in its body",
        ),
        broken(Wrong::AnswersForDown, DOWN, "200; expected 502|503|504"),
        broken(
            Wrong::SendsElsewhereWhenDown,
            DOWN,
            "on-prem had 2 calls; expected 1",
        ),
        broken(Wrong::StaysAway, BACK, "503; expected 200"),
    ]
}

/// Whether metrics are looked at, which takes seconds.
fn counts(wrong: Wrong) -> bool {
    matches!(
        wrong,
        Wrong::Nothing | Wrong::CountsRefusedTwice | Wrong::CountsTokensTwice
    )
}

/// The shipped suite against such a gateway; the waits are short, since it knows no clock.
fn verify(wrong: Wrong) -> Output {
    let mut suite = replaced(SUITE, "wait = \"20s\"", "wait = \"20ms\"");
    suite = replaced(&suite, "wait = \"61s\"", "wait = \"61ms\"");
    let upstreams = ports::two_free().expect("ports").map(ports::loopback);
    let address = gateway::start(upstreams, wrong);
    let mut command = Command::new(PROVE);
    command.args(["verify", "--json", "--target", &format!("http://{address}")]);
    for (name, at) in ["on-prem", "frontier"].iter().zip(upstreams) {
        command.args(["--upstream", &format!("{name}={at}")]);
    }
    if counts(wrong) {
        for (name, series) in [("limited", "refused_total"), ("tokens", "tokens_total")] {
            let place = format!("{name}=http://{address}/metrics#{series}");
            command.args(["--metrics", &place]);
        }
    } else {
        let metric = |line: &&str| !line.starts_with("metric = [{ name = \"limited\"");
        suite = suite.lines().filter(metric).collect::<Vec<_>>().join("\n");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), suite).expect("a suite");
    command.arg("--suite").arg(file.path());
    command.output().expect("prove runs")
}

/// The text with one part of it replaced; asserts that it is there.
fn replaced(text: &str, part: &str, by: &str) -> String {
    assert!(text.contains(part), "{part} is not in the suite");
    text.replace(part, by)
}

/// The suite's cases: their names, whether each failed, what was found.
fn cases(output: &Output) -> Vec<(String, bool, String)> {
    let said = String::from_utf8_lossy(&output.stderr);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let text = |case: &Value, name: &str| case[name].as_str().expect("text").to_owned();
    let each = result["cases"].as_array().expect("cases").iter();
    each.map(|case| {
        let outcome = text(case, "outcome");
        assert_ne!(outcome, "error", "{said}");
        (text(case, "name"), outcome == "failed", text(case, "got"))
    })
    .collect()
}

/// What is not as the table says.
fn differs(broken: &Broken) -> Option<String> {
    let output = verify(broken.wrong);
    let said = String::from_utf8_lossy(&output.stderr);
    let cases = cases(&output);
    let failed: BTreeSet<&str> = cases
        .iter()
        .filter(|case| case.1)
        .map(|case| &*case.0)
        .collect();
    let wanted: BTreeSet<&str> = broken.also.iter().chain([&broken.case]).copied().collect();
    let own = cases.iter().find(|case| case.0 == broken.case);
    let is_told = own.is_some_and(|case| case.2.contains(broken.says));
    let tells = KEYS
        .iter()
        .chain(&["malicious-token"])
        .find(|text| said.contains(**text));
    let is_right =
        failed == wanted && output.status.code() == Some(1) && is_told && tells.is_none();
    (!is_right).then(|| {
        let Broken { wrong, says, .. } = broken;
        format!("{wrong:?} has to fail in {wanted:?} with {says:?}, failed in {failed:?}, told {tells:?}:\n{said}")
    })
}

#[test]
fn each_broken_gateway_fails_in_its_case_and_in_no_other_that_it_does_not_concern() {
    let table = table();
    let left = Mutex::new(table.iter());
    let next = || left.lock().expect("no panic").next();
    let work = || {
        std::iter::from_fn(next)
            .filter_map(differs)
            .collect::<Vec<_>>()
    };
    let differences = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ended = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        ended.flatten().collect::<Vec<_>>()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_gateway_that_nothing_is_wrong_with_passes_and_every_case_has_a_broken_one() {
    let output = verify(Wrong::Nothing);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let cases = cases(&output);
    let of_suite: BTreeSet<&str> = cases.iter().map(|case| &*case.0).collect();
    let of_table: BTreeSet<&str> = table().iter().map(|broken| broken.case).collect();
    assert_eq!(of_suite, of_table);
}
