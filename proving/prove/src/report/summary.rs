//! A campaign in one look: the verdict, the sentence, and the few figures that a director asks for.
//!
//! Not here: how it is shown (`html`, `markdown`, `terminal`).

use super::figure::{ABSENT, count, difference, duration, maybe, percent, plain, sum, time};
use crate::report::document::{Document, Evidence, Step, Tokens, Verdict};

/// What stands first.
pub(super) struct Summary<'a> {
    pub(super) word: String,
    pub(super) is_passed: bool,
    pub(super) sentence: &'a str,
    /// What nobody may miss; `None` where everything was real.
    pub(super) simulated: Option<&'static str>,
    pub(super) figures: Vec<Figure>,
}

/// A figure with its name, and what is to be known of it.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) note: String,
}

impl<'a> Summary<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
        let reservations = document.found_reservations();
        let word = match document.verdict {
            Verdict::Passed => "PASS",
            Verdict::GeneratorVoid => "VOID",
            Verdict::Interrupted => "STOPPED",
            Verdict::SloFailed | Verdict::T3Stop | Verdict::Unreachable | Verdict::VerifyFailed => {
                "FAIL"
            }
        };
        Self {
            word: if reservations.is_empty() {
                word.to_owned()
            } else {
                format!("{word}, but {}", reservations.join(", and "))
            },
            is_passed: document.verdict == Verdict::Passed,
            sentence: &document.reason,
            simulated: document.evidence().banner(),
            figures: figures(document),
        }
    }
}

fn figures(document: &Document) -> Vec<Figure> {
    let figure = |name, value: String, note: String| Figure { name, value, note };
    let mut figures = vec![
        figure(
            "Saturation (T2)",
            maybe(document.t2_users, |users| format!("{users} users")),
            saturation(document),
        ),
        soak(document),
        overhead(document),
        errors(document),
        figure(
            "Token drift",
            maybe(drift(&document.tokens), difference),
            match drift(&document.tokens) {
                Some(_) => "reported by the engine over counted by the gateway, less one".into(),
                None => "not measured: no gateway counted tokens".into(),
            },
        ),
        generator(document),
        policies(document),
        figure(
            "Evidence",
            document.evidence().word().into(),
            evidence(document),
        ),
    ];
    // What was not measured is told in its section.
    figures.retain(|figure| figure.value != ABSENT);
    figures
}

fn evidence(document: &Document) -> String {
    let time = duration(document.scenario.seconds);
    match document.evidence() {
        Evidence::Real => format!("{time} of real requests"),
        Evidence::SimulatedEngine => {
            format!("{time} of requests in real time; what answered is a model of an engine")
        }
        Evidence::Virtual => format!("{time} of virtual time"),
    }
}

fn saturation(document: &Document) -> String {
    match (document.t2_users, document.t3) {
        (_, true) => "a gate that stops at once (T3) ended the campaign".into(),
        (Some(_), false) => match gates_at_the_edge(document) {
            Some(says) => format!("a gate stayed open: {says}"),
            None => "a gate stayed open".into(),
        },
        (None, false) => "no saturation point was found".into(),
    }
}

/// What the gates said in the last window before the campaign went back from its edge.
pub(super) fn gates_at_the_edge(document: &Document) -> Option<&str> {
    let users = document.t2_users?;
    let at_the_edge =
        |step: &&Step| step.users == users && !step.is_stable && !step.says.is_empty();
    let step = document.steps.iter().rev().find(at_the_edge)?;
    Some(&step.says)
}

fn soak(document: &Document) -> Figure {
    let soak = document.soak.as_ref();
    Figure {
        name: "Soak TTFT",
        value: maybe(soak.and_then(|soak| soak.ttft_ms), |ms| time(ms / 1e3)),
        note: soak.map_or_else(
            || "not measured: there was no soak".into(),
            |soak| {
                format!(
                    "mean, as the engine says; {} users for {}",
                    soak.users,
                    duration(soak.seconds)
                )
            },
        ),
    }
}

fn overhead(document: &Document) -> Figure {
    let Some(overhead) = &document.overhead else {
        return Figure {
            name: "Gateway overhead",
            value: super::figure::ABSENT.into(),
            note: "not measured: nothing was timed on both sides of the gateway".into(),
        };
    };
    let value = |seconds: f64| match overhead.upstream_s {
        upstream if upstream > 0.0 => {
            format!("{} · {}", time(seconds), percent(seconds / upstream))
        }
        _ => time(seconds),
    };
    let requests = count(overhead.requests);
    // What a gateway takes of a stream is not in its first byte.
    let late = overhead.last_byte.map(|last| {
        format!(
            "; last byte late by {}, p99 {}",
            time(last.mean),
            time(last.p99)
        )
    });
    let late = late.unwrap_or_default();
    let p99 = time(overhead.gate.p99);
    let Some(isolated) = overhead.isolated else {
        return Figure {
            name: "Gateway and loopback",
            value: value(overhead.gate.mean),
            note: format!(
                "mean of {requests} requests, {}; p99 {p99}{late}",
                overhead.method
            ),
        };
    };
    let own = maybe(overhead.own_histogram_s, time);
    Figure {
        name: "Gateway overhead",
        value: value(isolated.own_s),
        note: format!(
            "isolated, median of {requests} requests; its own histogram says {own}; with loopback {}, p99 {p99}{late}",
            time(overhead.gate.p50)
        ),
    }
}

fn errors(document: &Document) -> Figure {
    let named = |name: &str| document.phases.iter().find(|phase| phase.name == name);
    let phase = named("soak").or_else(|| document.phases.last());
    Figure {
        name: "Error rate",
        value: maybe(phase, |phase| percent(phase.error_share)),
        note: maybe(phase, |phase| {
            format!(
                "{} of {} requests in {}",
                count(phase.errors),
                count(phase.requests),
                phase.name
            )
        }),
    }
}

fn generator(document: &Document) -> Figure {
    let generator = document.generator.as_ref();
    Figure {
        name: "Load generator",
        value: maybe(generator, |generator| generator.verdict.clone()),
        note: match generator {
            Some(generator) => {
                let lag = maybe(generator.lag, |lag| time(lag.p99));
                format!(
                    "{} cores; sent late by {lag} at p99",
                    plain(generator.cores)
                )
            }
            None if document.scenario.is_virtual => {
                "none: users of virtual time need no generator".into()
            }
            None => "not measured: nothing was sent".into(),
        },
    }
}

fn policies(document: &Document) -> Figure {
    let verify = document.verify.as_ref();
    Figure {
        name: "Policies",
        value: maybe(verify, |v| {
            format!("{} of {}", v.passed, v.passed.saturating_add(v.failed))
        }),
        note: verify.map_or_else(
            || "not measured: no functional suite was run".into(),
            |v| format!("cases of {} held", v.suite),
        ),
    }
}

/// All that was reported over all that was counted, less one, of rows that have both: those of the same exchanges where
/// there are any.
pub(super) fn drift<'a>(tokens: impl IntoIterator<Item = &'a Tokens>) -> Option<f64> {
    let (same, others): (Vec<&Tokens>, Vec<&Tokens>) =
        tokens.into_iter().partition(|row| row.is_in_others());
    let rows = if same.is_empty() { others } else { same };
    let both = rows.iter().filter_map(|row| {
        let counted = row.input_counted?.saturating_add(row.output_counted?);
        Some((row.input_tokens.saturating_add(row.output_tokens), counted))
    });
    let (reported, counted): (Vec<u64>, Vec<u64>) = both.unzip();
    let (reported, counted) = (sum(reported), sum(counted));
    #[expect(clippy::cast_precision_loss, reason = "shares of tokens")]
    let share = || reported as f64 / counted as f64 - 1.0;
    (counted > 0).then(share)
}
