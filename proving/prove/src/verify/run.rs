//! Runs a suite: case by case, call by call, one after the other.
//!
//! Invariant: every case has an outcome. Once somebody did not answer, nothing more is asked, and what was not asked is an
//! error, never a pass.
//! Not here: what answers have to be (`check`), starting a gateway (`gateway`).

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::check::{self, Exchange, Found, Moved, Observed};
use super::client::{Asked, Target, Unanswered, ask};
use super::metric::{Reading, Scrape};
use super::result::{CaseOutcome, Outcome, Report};
use super::suite::{Behaviour, Call, Case, Growth, Suite, To, in_short};
use super::upstream::{Recorder, Seen};
use crate::interrupt;
use crate::report::document;

/// For what arrives upstream after the client has its answer.
const STRAY: Duration = Duration::from_millis(50);
/// How long a metric may take to tell of an exchange that has ended.
const METRIC_PATIENCE: Duration = Duration::from_secs(2);
/// How long it may not move any more after that: a gateway that counts twice, or what it should not, may count late.
const METRIC_SETTLES: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// Whom a suite is run against.
pub(crate) struct Rig {
    pub(crate) target: Target,
    /// One for each upstream of the suite, in its order.
    pub(crate) upstreams: Vec<Recorder>,
    /// Where metrics are, by the suite's names.
    pub(crate) metrics: BTreeMap<String, Scrape>,
}

/// What keeps a case from an outcome of its own.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error("an upstream could not be told what to do: {0}")]
    Upstream(#[from] io::Error),
    #[error("upstream {0} has no room for further calls")]
    Full(String),
    #[error("interrupted")]
    Interrupted,
}

/// Runs every case, and reports all of them.
pub(crate) fn run(suite: &Suite, rig: &Rig) -> io::Result<Report> {
    let runtime = crate::runtime::make()?;
    let mut report = Report::new(suite, &rig.target.to_string());
    let mut begun: Vec<Instant> = Vec::new();
    for case in &suite.cases {
        if let Some(says) = &report.unreachable {
            let says = format!("not asked: {says}");
            report.cases.push(CaseOutcome::error(case, says, 0.0));
            continue;
        }
        let began = Instant::now();
        let found = Cases {
            suite,
            rig,
            runtime: &runtime,
        }
        .run(case, &mut begun);
        let seconds = began.elapsed().as_secs_f64();
        match found {
            Ok((observed, found)) => report.cases.push(told(case, &observed, found, seconds)),
            Err(stopped) => {
                report
                    .cases
                    .push(CaseOutcome::error(case, stopped.to_string(), seconds));
                report.unreachable = Some(stopped.to_string());
            }
        }
    }
    Ok(report)
}

fn told(case: &Case, observed: &Observed, found: Found, seconds: f64) -> CaseOutcome {
    let passed = found.faults.is_empty();
    let got = if passed {
        let statuses = observed.exchanges.iter().map(|exchanges| {
            let statuses: Vec<u16> = exchanges
                .iter()
                .map(|exchange| exchange.answer.status)
                .collect();
            in_short(&statuses)
        });
        format!("as expected: {}", statuses.collect::<Vec<_>>().join("; "))
    } else {
        found.faults.join("; ")
    };
    CaseOutcome {
        outcome: if passed {
            Outcome::Passed
        } else {
            Outcome::Failed
        },
        case: document::Case {
            name: case.name.clone(),
            passed,
            seconds,
            expected: case.says.clone(),
            got,
            evidence: found.evidence,
        },
    }
}

struct Cases<'a> {
    suite: &'a Suite,
    rig: &'a Rig,
    runtime: &'a Runtime,
}

impl Cases<'_> {
    /// `begun` is when the cases before it made their first calls.
    fn run(&self, case: &Case, begun: &mut Vec<Instant>) -> Result<(Observed, Found), Stopped> {
        // What comes while nobody asks is searched, too.
        let heard = self.rig.upstreams.iter().map(Recorder::wires).collect();
        let since = case.since.and_then(|at| begun.get(at).copied());
        let passed = since.map_or(Duration::ZERO, |since| since.elapsed());
        interrupt::sleep(case.wait.saturating_sub(passed));
        begun.push(Instant::now());
        let after = since.map(|since| since.elapsed());
        for (recorder, at) in self.rig.upstreams.iter().zip(&case.upstreams) {
            recorder.set(at.does)?;
        }
        let observed = self.observe(case, heard);
        for recorder in &self.rig.upstreams {
            recorder.set(Behaviour::Answer)?;
        }
        let observed = observed?;
        let mut found = check::check(self.suite, case, &observed);
        if let (Some(after), Some(of)) = (after, case.since.and_then(|at| self.suite.cases.get(at)))
        {
            // What was tried is a moment, and the case claims no other.
            let says = format!(
                "asked {:.1} s after the first call of {:?}",
                after.as_secs_f64(),
                of.name
            );
            found.evidence.insert(0, says);
        }
        Ok((observed, found))
    }

    /// `heard` is how much of each connection was searched before.
    fn observe(&self, case: &Case, heard: Vec<Vec<usize>>) -> Result<Observed, Stopped> {
        let before = self.readings(&case.metrics)?;
        let marks = self.marks();
        let (mut exchanges, mut direct) = (Vec::new(), Vec::new());
        for call in &case.calls {
            let made = self.make(call)?;
            if call.to != To::Gateway {
                direct.extend(made.iter().map(|exchange| exchange.answer.from));
            }
            exchanges.push(made);
        }
        thread::sleep(STRAY);
        for (recorder, upstream) in self.rig.upstreams.iter().zip(&self.suite.upstreams) {
            if recorder.is_full() {
                return Err(Stopped::Full(upstream.name.clone()));
            }
        }
        let is_through = |seen: &Seen| !direct.contains(&seen.peer);
        let arrived: Vec<Vec<Seen>> = (self.rig.upstreams.iter().zip(&marks))
            .map(|(recorder, &mark)| {
                recorder
                    .since(mark)
                    .into_iter()
                    .filter(is_through)
                    .collect()
            })
            .collect();
        let wires = self
            .rig
            .upstreams
            .iter()
            .zip(&heard)
            .map(|(recorder, before)| {
                let all = recorder.wires_since(before).into_iter();
                let through = all.filter(|(peer, _)| !direct.contains(peer));
                through.map(|(_, bytes)| bytes).collect()
            });
        let wires = wires.collect();
        let metrics = self.moved(&case.metrics, before, &arrived)?;
        Ok(Observed {
            exchanges,
            arrived,
            wires,
            metrics,
        })
    }

    fn marks(&self) -> Vec<usize> {
        self.rig.upstreams.iter().map(Recorder::count).collect()
    }

    fn make(&self, call: &Call) -> Result<Vec<Exchange>, Stopped> {
        let target = match call.to {
            To::Gateway => self.rig.target.clone(),
            To::Upstream(at) => {
                let recorder = self.rig.upstreams.get(at);
                let address = recorder.map(Recorder::address);
                Target::at(address.ok_or_else(|| io::Error::other("bug: no such upstream"))?)
            }
        };
        let asked = Asked {
            method: &call.method,
            path: &call.path,
            headers: &call.headers,
            body: &call.body,
            spelled: &call.spelled,
        };
        let mut made = Vec::new();
        for _ in 0..call.count {
            let marks = self.marks();
            let answer = self.runtime.block_on(async {
                tokio::select! {
                    answer = ask(&target, asked, self.suite.timeout) => Ok(answer?),
                    () = interrupt::heard() => Err(Stopped::Interrupted),
                }
            })?;
            let seen = self.rig.upstreams.iter().zip(marks);
            let arrived = seen
                .flat_map(|(recorder, mark)| recorder.since(mark))
                .collect();
            made.push(Exchange { answer, arrived });
        }
        Ok(made)
    }

    fn readings(&self, growths: &[Growth]) -> Result<Vec<Option<Reading>>, Unanswered> {
        let read = |growth: &Growth| {
            let scrape = self.rig.metrics.get(&growth.metric);
            scrape
                .map(|scrape| self.runtime.block_on(scrape.read(self.suite.timeout)))
                .transpose()
        };
        growths.iter().map(read).collect()
    }

    /// Metrics are read until they say what is wanted, or long enough; and once more after they had time to say too much.
    fn moved(
        &self,
        growths: &[Growth],
        before: Vec<Option<Reading>>,
        arrived: &[Vec<Seen>],
    ) -> Result<Vec<Moved>, Unanswered> {
        if before.iter().all(Option::is_none) {
            return Ok(vec![Moved::Unknown; growths.len()]);
        }
        let is_enough = |after: &[Option<Reading>]| {
            let all = growths.iter().zip(&before).zip(after);
            all.into_iter().all(|((growth, before), after)| {
                let (Some(before), Some(after)) = (before, after) else {
                    return true;
                };
                let grown = after.value.map(|value| value - before.value.unwrap_or(0.0));
                grown.is_some_and(|grown| grown >= check::wanted(growth.by, arrived))
            })
        };
        let began = Instant::now();
        while !is_enough(&self.readings(growths)?) && began.elapsed() < METRIC_PATIENCE {
            thread::sleep(POLL);
        }
        thread::sleep(METRIC_SETTLES);
        let after = self.readings(growths)?;
        let each = growths.iter().zip(before).zip(after);
        let moved = each.map(|((growth, before), after)| {
            let scrape = self.rig.metrics.get(&growth.metric);
            match (scrape, before, after) {
                (Some(scrape), Some(before), Some(after)) => Moved::Read {
                    selector: scrape.selector.clone(),
                    before,
                    after,
                },
                _ => Moved::Unknown,
            }
        });
        Ok(moved.collect())
    }
}
