//! What was under test, and whether the test was one: policies, corpus, arrivals.
//!
//! Not here: what was measured under load.

use serde::Deserialize;

use super::soak::law;
use crate::report::content::{Block, Cell, Section, Table};
use crate::report::document::Document;
use crate::report::figure::{ABSENT, count, difference, duration, maybe, percent, plain, time};

pub(super) fn under_test(document: &Document) -> Section {
    let scenario = &document.scenario;
    let mut section = Section::new("under-test", "What was under test");
    let began = engine::date_utc(scenario.started_unix_ms / 1_000);
    let of_day = scenario.started_unix_ms / 1_000 % 86_400;
    section.text(format!(
        "{}. Begun {began} at {:02}:{:02} UTC; {} of {} time.",
        scenario.title,
        of_day / 3_600,
        of_day % 3_600 / 60,
        duration(scenario.seconds),
        if scenario.is_virtual {
            "virtual"
        } else {
            "real"
        },
    ));
    let table = Table::pairs(
        "The system",
        ["Part", "What is known of it"],
        &scenario.under_test,
    );
    section.table(
        table,
        "not told: the scenario names no gateway, engine or hardware",
    );
    section
}

pub(super) fn policies(document: &Document) -> Section {
    let mut section = Section::new("policies", "Policies hold");
    let Some(verify) = &document.verify else {
        section.absent("not measured: no functional suite was run before the load");
        return section;
    };
    section.text(format!(
        "{} of {} cases of the suite {} held, before any load was sent.",
        verify.passed,
        verify.passed.saturating_add(verify.failed),
        verify.suite
    ));
    let table = Table::each(
        "Functional suite: what has to hold, and what was found",
        &verify.cases,
        &[
            ("Case", |c| c.name.as_str().into()),
            ("Outcome", |c| Cell::held(c.passed, "held", "broken")),
            ("Expected", |c| c.expected.as_str().into()),
            ("Got", |c| c.got.as_str().into()),
            ("#Time", |c| time(c.seconds).into()),
        ],
    );
    section.table(table, "not measured: the suite has no case");
    let evidence = verify.cases.iter().filter(|case| !case.evidence.is_empty());
    let lines: Vec<String> = evidence
        .map(|case| format!("{}\n  {}", case.name, case.evidence.join("\n  ")))
        .collect();
    if !lines.is_empty() {
        section.blocks.push(Block::Folded {
            title: format!("Evidence of {} cases", lines.len()),
            text: lines.join("\n"),
        });
    }
    section
}

pub(super) fn corpus(document: &Document) -> Section {
    let mut section = Section::new("corpus", "Corpus and prefix cache");
    let cache = &document.prefix_cache;
    if cache.predicted.is_none() && cache.measured.is_none() && cache.sessions.is_none() {
        section.absent("not measured: the traffic was of no corpus, and the engine told nothing of its prefix cache");
        return section;
    }
    let foretold = cache.expected.or(cache.predicted);
    let apart = foretold.zip(cache.measured_throughout);
    let apart = apart.map(|(foretold, measured)| measured - foretold);
    let rows = [
        ("sessions of the corpus", maybe(cache.sessions, count)),
        (
            "of them, such as say what no other says",
            maybe(cache.corpus_unique_sessions, count),
        ),
        (
            "sessions that were begun",
            maybe(cache.begun_sessions, count),
        ),
        (
            "of them, different ones",
            maybe(cache.unique_sessions, count),
        ),
        ("hit rate, foretold", maybe(cache.predicted, percent)),
        (
            "hit rate, foretold of what was sent",
            maybe(cache.expected, percent),
        ),
        (
            "hit rate, measured throughout",
            maybe(cache.measured_throughout, percent),
        ),
        (
            "measured throughout less foretold, percentage points",
            maybe(apart, |apart| difference(apart).replace(" %", "")),
        ),
        (
            "hit rate, measured in the soak alone",
            maybe(cache.measured, percent),
        ),
    ];
    if let Some(says) = document.few_sessions() {
        section.text(format!("WARNING: {says}."));
    }
    let caption = "Shares of prompt tokens that the engine had in its prefix cache: foretold by the corpus of all that is sent, \
                   as if nothing were ever evicted, and measured";
    section.table(Table::figures(caption, ["Figure", "#Value"], rows), "");
    section
}

/// What is shown of a certificate, as `experiment::certificate` writes it; a figure that is no number is `null` there.
#[derive(Deserialize)]
struct Certificate {
    verdict: String,
    significance: Option<f64>,
    judged: Option<u64>,
    stalled_s: Option<f64>,
    profiles: Vec<Certified>,
}

#[derive(Deserialize)]
struct Certified {
    name: String,
    process: String,
    verdict: String,
    sends: u64,
    tested: Option<u64>,
    lag: Lag,
    checks: Vec<Check>,
}

#[derive(Deserialize)]
struct Lag {
    p50_s: Option<f64>,
    p99_s: Option<f64>,
    max_s: Option<f64>,
    late: Option<u64>,
}

#[derive(Deserialize)]
struct Check {
    name: String,
    of: String,
    found: Option<f64>,
    expected: Option<f64>,
    p: Option<f64>,
    outcome: String,
}

pub(super) fn arrivals(document: &Document) -> Section {
    let mut section = Section::new("arrivals", "Arrivals: asked for and sent");
    let Some(value) = &document.certificate else {
        section.absent(if document.scenario.is_virtual {
            "not measured: in virtual time every request leaves when it is due"
        } else {
            "not measured: there is no certificate of what was sent"
        });
        return section;
    };
    let certificate = match Certificate::deserialize(value) {
        Ok(certificate) => certificate,
        Err(error) => {
            section.absent(format!(
                "not readable: the certificate is not as this version writes it ({error})"
            ));
            return section;
        }
    };
    section.text(format!(
        "Verdict of the certificate: {}. {} checks have a probability, and a correct generator fails one at p below {}. \
         The worst of the senders was kept from its turn for {} in all, added up over the run.",
        certificate.verdict,
        maybe(certificate.judged, count),
        maybe(certificate.significance, plain),
        maybe(certificate.stalled_s, time),
    ));
    section.table(lags(&certificate), "not measured: no profile sent anything");
    section.table(checks(&certificate), "not measured: no check was made");
    section
}

fn lags(certificate: &Certificate) -> Table {
    Table::each(
        "What was sent, and how long after it was due",
        &certificate.profiles,
        &[
            ("Profile", |p| p.name.as_str().into()),
            ("Law", |p| law(&p.process).into()),
            ("Verdict", |p| verdict(&p.verdict)),
            ("#Sent", |p| count(p.sends).into()),
            ("#Gaps tested", |p| maybe(p.tested, count).into()),
            ("#Lag p50", |p| maybe(p.lag.p50_s, time).into()),
            ("#Lag p99", |p| maybe(p.lag.p99_s, time).into()),
            ("#Lag max", |p| maybe(p.lag.max_s, time).into()),
            ("#Late", |p| maybe(p.lag.late, count).into()),
        ],
    )
}

fn checks(certificate: &Certificate) -> Table {
    let profiles = certificate.profiles.iter();
    Table::each(
        "Each check: what the law has, what was produced, and how likely a correct generator is as far from it",
        profiles.flat_map(|profile| profile.checks.iter().map(move |check| (profile, check))),
        &[
            ("Profile", |(profile, _)| profile.name.as_str().into()),
            ("Check", |(_, check)| check.name.as_str().into()),
            ("Times", |(_, check)| check.of.as_str().into()),
            ("#Asked", |(_, check)| maybe(check.expected, plain).into()),
            ("#Produced", |(_, check)| maybe(check.found, plain).into()),
            ("#p", |(_, check)| maybe(check.p, plain).into()),
            ("Outcome", |(_, check)| verdict(&check.outcome)),
        ],
    )
}

fn verdict(word: &str) -> Cell {
    match word {
        "good" | "passed" => Cell::held(true, word, ""),
        "failed" | "void" => Cell::held(false, "", word),
        "" => ABSENT.into(),
        other => other.into(),
    }
}
