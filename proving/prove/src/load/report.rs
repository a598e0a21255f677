//! What a run came to: a document for machines, a page for people.
//!
//! Invariant: names are a contract; a figure that there is not is left out, and never 0.
//! Not here: measuring (`load`), the law of what was sent (`experiment::certificate`).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use experiment::certificate::{Certificate, Verdict};
use experiment::slo::Goodput;
use experiment::workload::SessionCounts;
use hdrhistogram::Histogram;
use load::observer::{Finish, Measure, Observations};
use load::run::Outcome;
use load::source::Secret;
use serde::Serialize;

use super::Ended;
use super::live::micros;
use super::rows::{Summed, Sums, Tokens};
use crate::report::content::{Section, Table};
use crate::report::plain::{self, Paper};

/// The version of the document.
const VERSION: u32 = 1;

/// The whole of it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    /// How the run ended: `good`, `failed`, `unproven` or `void`, as the certificate; `errors`, `slo_missed`, `few_sessions`.
    pub(super) verdict: &'static str,
    pub(super) run: Run,
    /// Whether it was ended from outside: what was under way then is nobody's fault.
    interrupted: bool,
    /// Requests that were due in the measured interval, by what became of them.
    #[serde(flatten)]
    pub(super) all: Figures,
    profiles: BTreeMap<String, Figures>,
    pub(super) generator: Generator,
    pub(super) certificate: Certificate,
}

/// How it was run.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Run {
    pub(super) tool: String,
    pub(super) corpus: String,
    pub(super) corpus_model: String,
    pub(super) predicted_hit_rate: f64,
    pub(super) targets: Vec<String>,
    pub(super) protocol: &'static str,
    pub(super) seed: u64,
    /// Milliseconds since 1970 at which it began; rows count from then.
    pub(super) started_unix_ms: u64,
    pub(super) warm_up_s: f64,
    /// As it was asked for; `seconds` says how long it was.
    pub(super) duration_s: f64,
    /// By profile, of a closed loop.
    pub(super) users: BTreeMap<String, u32>,
    pub(super) threads: usize,
    pub(super) profiles_left_out: Vec<String>,
    /// Whether the sums of the corpus were not looked at.
    pub(super) unchecked: bool,
    /// The share of requests that might fail.
    pub(super) error_share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) slo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) slo_share: Option<f64>,
}

/// The figures of a profile, or of all.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Figures {
    /// Due in the measured interval, answered or failed, whenever they ended.
    pub(super) requests: u64,
    pub(super) answered: u64,
    /// Failed.
    pub(super) errors: u64,
    pub(super) errors_by_kind: BTreeMap<String, u64>,
    /// Good answers that say nothing, by why they ended.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    empty_answers: BTreeMap<&'static str, u64>,
    /// Of requests that were due in the warm-up.
    warm_up_errors: u64,
    /// What the first answer of a kind of errors said.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) errors_said: BTreeMap<String, String>,
    /// Due, and not sent when the time was over.
    unsent: u64,
    /// Sent, and left without an answer when the run was over.
    left: u64,
    reopened_connections: u64,
    /// Sent again, as late as a refusal said.
    sent_again: u64,
    seconds: f64,
    /// Good answers that ended in the measured interval.
    requests_per_s: f64,
    events: u64,
    events_per_s: f64,
    /// As good answers report them, of what came in the measured interval.
    output_tokens_per_s: f64,
    bytes_received: u64,
    sessions: Sessions,
    tokens: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    goodput: Option<Share>,
    /// From the intended moment to the last byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    e2e_ms: Option<Times>,
    /// From the actual send to the last byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    service_ms: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_ms: Option<Times>,
    /// To the first visible text.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_visible_ms: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_ms: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    itl_ms: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tpot_ms: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lag_ms: Option<Times>,
}

#[derive(Debug, Clone, Serialize)]
struct Sessions {
    started: u64,
    repeated: u64,
    abandoned: u64,
    turns_skipped: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Share {
    #[serde(flatten)]
    counts: Goodput,
    share: Option<f64>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Times {
    mean: f64,
    p50: f64,
    p90: f64,
    p95: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// What sending cost.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Generator {
    cpu_seconds: f64,
    /// Of the threads that send.
    cores: f64,
    /// Of those that ended in the measured interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_us_per_request: Option<f64>,
    rows: u64,
    rows_lost: u64,
}

impl Report {
    pub(super) fn new(
        run: Run,
        names: &[String],
        outcome: &Outcome,
        summed: &Summed,
        certificate: Certificate,
    ) -> Self {
        let seconds = outcome.measured.as_secs_f64();
        let (mut all, mut sums, mut tally) = (
            Observations::default(),
            Sums::default(),
            SessionCounts::default(),
        );
        let mut profiles = BTreeMap::new();
        for ((name, profile), one) in names.iter().zip(&outcome.profiles).zip(&summed.profiles) {
            all.absorb(&profile.observations);
            sums.absorb(one);
            tally.absorb(profile.sessions);
            let figures = Figures::new(&profile.observations, one, profile.sessions, seconds)
                .without_an_end(outcome.is_cut, 0);
            profiles.insert(name.clone(), figures);
        }
        let completed = all.completed;
        let all = Figures::new(&all, &sums, tally, seconds)
            .without_an_end(outcome.is_cut, outcome.records_lost);
        let cpu_seconds = outcome.client_cpu.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "requests below 2^53")]
        let generator = Generator {
            cpu_seconds,
            cores: cpu_seconds / seconds.max(1e-9),
            cpu_us_per_request: (completed > 0).then(|| cpu_seconds * 1e6 / completed as f64),
            rows: summed.rows,
            rows_lost: outcome.records_lost,
        };
        let mut report = Self {
            version: VERSION,
            verdict: certificate.verdict.word(),
            run,
            interrupted: outcome.is_cut,
            all,
            profiles,
            generator,
            certificate,
        };
        if report.certificate.verdict <= Verdict::Unproven {
            if report.has_too_many_errors() {
                report.verdict = "errors";
            } else if report.misses_slo() {
                report.verdict = "slo_missed";
            }
        }
        report
    }

    /// Judged by how many of its sessions are no repetition, where that is asked for.
    pub(super) fn strictly(mut self, least: Option<f64>) -> Self {
        let of = self.certificate.cardinality.zip(least);
        let is_few = of.is_some_and(|(cardinality, least)| cardinality.is_few(least));
        if is_few && self.ended() == Ended::Good {
            self.verdict = "few_sessions";
        }
        self
    }

    /// Without these, wherever a target said one back.
    pub(super) fn without(mut self, secrets: &[Secret]) -> Self {
        let figures = self.profiles.values_mut().chain([&mut self.all]);
        for said in figures.flat_map(|figures| figures.errors_said.values_mut()) {
            for secret in secrets {
                *said = secret.hidden_in(said);
            }
        }
        self
    }

    /// As an exit code tells it.
    pub(super) fn ended(&self) -> Ended {
        match (self.certificate.verdict, self.verdict) {
            (Verdict::Void, _) => Ended::Void,
            (Verdict::Failed, _) | (_, "errors" | "slo_missed" | "few_sessions") => Ended::Failed,
            (Verdict::Good | Verdict::Unproven, _) => Ended::Good,
        }
    }

    /// Whether more requests than allowed have no good answer, or none has one. What a run that was ended from outside
    /// left under way is no error.
    #[expect(clippy::cast_precision_loss, reason = "requests below 2^53")]
    fn has_too_many_errors(&self) -> bool {
        let all = &self.all;
        let without = if self.interrupted {
            0
        } else {
            all.unsent + all.left
        };
        let (bad, count) = (all.errors + without, all.requests + without);
        let none_is_good = all.answered == 0 && !(self.interrupted && bad == 0);
        none_is_good || bad as f64 > count as f64 * self.run.error_share
    }

    /// Whether fewer exchanges than asked for kept the service levels.
    fn misses_slo(&self) -> bool {
        let share = self.all.goodput.as_ref().and_then(|goodput| goodput.share);
        match (share, self.run.slo_share) {
            (Some(share), Some(least)) => share < least,
            _ => false,
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps with text keys and numbers")
    }

    pub(super) fn to_json_line(&self) -> String {
        serde_json::to_string(self).expect("maps with text keys and numbers")
    }

    /// The page for people.
    pub(super) fn page(&self, paper: Paper) -> String {
        let (run, all, generator) = (&self.run, &self.all, &self.generator);
        let mut page = Section::new(
            "run",
            format!(
                "{}: {} requests due in {:.1} s, {:.1}/s answered in them, {} errors",
                self.verdict, all.requests, all.seconds, all.requests_per_s, all.errors
            ),
        );
        let cpu = generator.cpu_us_per_request;
        let cpu = cpu.map(|us| format!(", {us:.1} us of CPU a request"));
        page.text(format!(
            "{} to {} over {}, seed {}",
            run.corpus,
            run.targets.join(" "),
            run.protocol,
            run.seed,
        ));
        // Of the client alone: nothing here is the gateway's or the engine's.
        page.text(format!(
            "the generator itself, not what it asked: {} threads, {:.2} cores{}",
            run.threads,
            generator.cores,
            cpu.unwrap_or_default()
        ));
        for name in &run.profiles_left_out {
            page.text(format!("profile {name} of the corpus got no traffic"));
        }
        page.table(self.table(), "no profile");
        for (kind, count) in &all.errors_by_kind {
            page.text(format!("error {kind}: {count}"));
            if let Some(said) = all.errors_said.get(kind) {
                let line: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
                let line: String = line.chars().take(200).collect();
                page.text(format!("  the first said: {line}"));
            }
        }
        for (finish, count) in &all.empty_answers {
            page.text(format!(
                "{count} good answers say nothing (finish_reason {finish})"
            ));
        }
        for (count, what) in [
            (
                all.warm_up_errors,
                "errors of the warm-up, which count for nothing else",
            ),
            (all.unsent, "requests were due and never sent"),
            (
                all.left,
                "requests had no whole answer when the run was over",
            ),
            (
                all.sent_again,
                "requests were sent again after the time that a refusal said",
            ),
        ] {
            if count > 0 {
                page.text(format!("{count} {what}"));
            }
        }
        let tokens = all.tokens;
        if tokens.prompt > 0 {
            page.text(format!(
                "tokens reported by {} answers: {} of prompts, {} of completions; {:.0} of completions came a second",
                tokens.reported, tokens.prompt, tokens.completion, all.output_tokens_per_s
            ));
        }
        if tokens.cached_of > 0 {
            #[expect(clippy::cast_precision_loss, reason = "tokens below 2^53")]
            let share = tokens.cached as f64 / tokens.cached_of as f64 * 100.0;
            page.text(format!(
                "prefix cache: {share:.1} % of {} tokens were cached; the corpus predicts {:.1} %",
                tokens.cached_of,
                run.predicted_hit_rate * 100.0
            ));
        }
        let sessions = &all.sessions;
        page.text(format!(
            "sessions: {} started ({} for another time), {} abandoned with {} turns",
            sessions.started, sessions.repeated, sessions.abandoned, sessions.turns_skipped
        ));
        if let (Some(goodput), Some(slo)) = (&all.goodput, &run.slo) {
            let share = goodput.share.unwrap_or(0.0) * 100.0;
            let of = goodput.counts.exchanges;
            page.text(format!("goodput: {share:.2} % of {of} kept {slo}"));
        }
        if generator.rows_lost > 0 {
            page.text(format!(
                "rows lost for want of room: {}",
                generator.rows_lost
            ));
        }
        format!("{}\n{}", plain::text(&[page], paper), self.certificate)
    }

    fn table(&self) -> Table {
        let line = |(name, figures): (&String, &Figures)| -> Vec<String> {
            let ms = |times: &Option<Times>, of: fn(&Times) -> f64| {
                times.as_ref().map_or_else(
                    || "-".into(),
                    |times| {
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "milliseconds of a histogram"
                        )]
                        micros((of(times) * 1e3).round() as u64)
                    },
                )
            };
            let first = figures.ttft_ms.or(figures.first_byte_ms);
            let times = [&first, &figures.itl_ms, &figures.tpot_ms, &figures.e2e_ms];
            let times = times.map(|times| [ms(times, |t| t.p50), ms(times, |t| t.p99)]);
            let counts = [
                name.clone(),
                figures.requests.to_string(),
                format!("{:.1}", figures.requests_per_s),
            ];
            counts.into_iter().chain(times.concat()).collect()
        };
        let head = [
            "profile", "requests", "req/s", "TTFT p50", "p99", "ITL p50", "p99", "TPOT p50", "p99",
            "E2E p50", "p99",
        ];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        lines.extend(self.profiles.iter().map(line));
        if self.profiles.len() > 1 {
            lines.push(line((&"all".to_owned(), &self.all)));
        }
        Table::of_lines("", lines)
    }
}

impl Figures {
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn new(seen: &Observations, sums: &Sums, tally: SessionCounts, seconds: f64) -> Self {
        let times = |measure| Times::of(seen.histogram(measure));
        let per_second = |count: u64| count as f64 / seconds.max(1e-9);
        let kinds = seen.failures.iter();
        let errors = seen.failures.values().sum();
        let empty = seen.empty.iter();
        let empty = empty.map(|(finish, count)| (finish.map_or("none", Finish::word), *count));
        Self {
            requests: seen.answered + errors,
            answered: seen.answered,
            errors,
            empty_answers: empty.collect(),
            warm_up_errors: seen.warm_up_failures.values().sum(),
            errors_by_kind: kinds
                .map(|(kind, count)| (kind.to_string(), *count))
                .collect(),
            errors_said: seen
                .said
                .iter()
                .map(|(kind, said)| (kind.to_string(), said.clone()))
                .collect(),
            unsent: seen.unsent,
            left: seen.left,
            reopened_connections: seen.reopened,
            sent_again: seen.sent_again,
            seconds,
            requests_per_s: per_second(seen.completed),
            events: seen.events,
            events_per_s: per_second(seen.events),
            output_tokens_per_s: seen.tokens / seconds.max(1e-9),
            bytes_received: seen.body_bytes,
            sessions: Sessions {
                started: tally.sessions,
                repeated: tally.repeated,
                abandoned: tally.abandoned,
                turns_skipped: tally.skipped_turns,
            },
            tokens: sums.tokens,
            goodput: sums.has_levels.then(|| Share {
                share: sums.goodput.share(),
                counts: sums.goodput.clone(),
            }),
            e2e_ms: times(Measure::Latency),
            service_ms: times(Measure::Service),
            ttft_ms: times(Measure::FirstToken),
            ttft_visible_ms: times(Measure::FirstVisible),
            first_byte_ms: times(Measure::FirstByte),
            itl_ms: times(Measure::BetweenTokens),
            tpot_ms: times(Measure::TimePerToken),
            lag_ms: times(Measure::Lag),
        }
    }
}

impl Figures {
    /// Exchanges without an end kept no service level, unless the run was ended from outside; nor did those whose rows
    /// were lost.
    fn without_an_end(mut self, is_cut: bool, rows_lost: u64) -> Self {
        let without = if is_cut { 0 } else { self.unsent + self.left };
        if let Some(Share { counts, share }) = &mut self.goodput {
            counts.exchanges += without + rows_lost;
            counts.failed += without + rows_lost;
            *share = counts.share();
        }
        self
    }
}

impl Times {
    /// Milliseconds; `None` of none.
    #[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
    fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let at = |share| histogram.value_at_quantile(share) as f64 / 1e3;
        (!histogram.is_empty()).then(|| Self {
            mean: histogram.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
        })
    }
}
