//! What every run of a corpus has in common, and one such run.
//!
//! Invariant: a run is summed up once its last row was taken.
//! Not here: what is to be sent (`traffic`), who says when a run begins and ends (`load`, `fleet`).

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corpus::manifest::Manifest;
use experiment::certificate::{Cardinality, Certificate};
use experiment::slo::Slo;
use experiment::workload::Load;
use load::observer::Record;
use load::run::{Outcome, Plan, Running, start};
use load::source::{Head, Secret};

use super::ReplayError;
use super::records::{Records, RecordsError};
use super::report::{Report, Run};
use super::rows::Rows;
use crate::text::printable;

/// Hears rows as they come.
pub(crate) type OnRows = Box<dyn FnMut(&[Record]) + Send>;

/// All that is needed to run, as often as is asked for.
pub(super) struct Rig {
    plan: Plan,
    run: Run,
    slo: Option<Slo>,
    /// What is sent, and the least share of its sessions that is to be no repetition.
    corpus: Manifest,
    strict: Option<f64>,
}

/// How one run differs from others.
#[derive(Default)]
pub(super) struct RunOverrides<'a> {
    /// Where its rows go.
    pub(super) records: Option<&'a Path>,
    /// Who hears its rows.
    pub(super) on_rows: Option<OnRows>,
    /// In the place of the seed that was asked for.
    pub(super) seed: Option<u64>,
}

/// A run that goes on.
pub(super) struct ActiveRun<'a> {
    rig: &'a Rig,
    seed: u64,
    started: SystemTime,
    pub(super) running: Running,
    rows: Rows,
}

impl Rig {
    pub(super) fn new(plan: Plan, run: Run, slo: Option<Slo>) -> Self {
        Self {
            plan,
            run,
            slo,
            corpus: Manifest::default(),
            strict: None,
        }
    }

    /// With what is known of the corpus.
    pub(super) fn of_corpus(self, corpus: Manifest, strict: Option<f64>) -> Self {
        Self {
            corpus,
            strict,
            ..self
        }
    }

    /// Of the profiles that get traffic.
    pub(super) fn names(&self) -> Vec<String> {
        let profiles = self.plan.workload.profiles.iter();
        profiles.map(|profile| profile.name.clone()).collect()
    }

    pub(super) const fn run(&self) -> &Run {
        &self.run
    }

    /// Whether every profile has users, and none arrivals.
    pub(super) fn is_closed(&self) -> bool {
        let mut profiles = self.plan.workload.profiles.iter();
        profiles.all(|profile| matches!(profile.load, Load::Closed { .. }))
    }

    /// What is about to be sent: a line for each profile.
    pub(super) fn summary(&self) -> String {
        let mut lines = String::new();
        for profile in &self.plan.workload.profiles {
            let name = printable(&profile.name);
            let _ = match &profile.load {
                Load::Closed { users, think, .. } => {
                    writeln!(lines, "{name}: {users} users, pauses {think}")
                }
                Load::Open { arrivals, think } => {
                    writeln!(lines, "{name}: session starts {arrivals}, pauses {think}")
                }
            };
        }
        lines
    }

    /// How long a run lasts at most, but for its last answers.
    pub(super) fn planned_time(&self) -> Duration {
        self.plan.warm_up + self.plan.measure
    }

    /// Begins a run.
    pub(super) fn begin(&self, wanted: RunOverrides<'_>) -> Result<ActiveRun<'_>, ReplayError> {
        let seed = wanted.seed.unwrap_or(self.plan.workload.seed);
        let started = SystemTime::now();
        let (running, rows) = begin(&self.plan, self.names(), self.slo.clone(), wanted)?;
        Ok(ActiveRun {
            rig: self,
            seed,
            started,
            running,
            rows,
        })
    }
}

/// Begins what is planned for profiles of these names.
pub(super) fn begin(
    plan: &Plan,
    names: Vec<String>,
    slo: Option<Slo>,
    wanted: RunOverrides<'_>,
) -> Result<(Running, Rows), ReplayError> {
    let count = names.len();
    let create = |path| Records::create(path, names);
    let file = wanted.records.map(create).transpose()?;
    let (rows, sender) = Rows::start(count, slo, plan.warm_up, (file, wanted.on_rows))?;
    let mut plan = plan.clone();
    plan.records = Some(sender);
    plan.workload.seed = wanted.seed.unwrap_or(plan.workload.seed);
    Ok((start(plan)?, rows))
}

/// How often the same sessions came in a run.
fn cardinality(corpus: &Manifest, outcome: &Outcome, certificate: &Certificate) -> Cardinality {
    let (mut sessions, mut first) = (0, 0);
    for profile in &outcome.profiles {
        sessions += profile.sessions.sessions;
        first += profile
            .sessions
            .sessions
            .saturating_sub(profile.sessions.repeated);
    }
    let sends = certificate.profiles.iter().map(|profile| profile.sends);
    let mut found = Cardinality {
        sends: sends.sum(),
        sessions,
        unique_sessions: first.min(corpus.unique_sessions),
        expected_hits: None,
    };
    found.expected_hits = found
        .unique_share()
        .map(|share| corpus.expected_hits(share));
    found
}

/// The credentials that are sent.
pub(super) fn secrets(plan: &Plan) -> Vec<Secret> {
    let heads = plan.traffic.iter().map(|traffic| &traffic.head);
    heads.flat_map(Head::secrets).collect()
}

impl ActiveRun<'_> {
    /// Waits for the end, and sums up. What went wrong with the file of rows stands beside the result, which is whole.
    pub(super) fn finish(self) -> Result<(Report, Option<RecordsError>), ReplayError> {
        let outcome = self.running.finish()?;
        let mut summed = self.rows.finish().map_err(ReplayError::Bug)?;
        let fault = summed.fault.take();
        let certificate = outcome.certificate();
        let certificate = certificate.ok_or(ReplayError::Bug("bug: a run was not certified"))?;
        let run = Run {
            seed: self.seed,
            started_unix_ms: self.started.duration_since(UNIX_EPOCH).map_or(0, |since| {
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
            ..self.rig.run.clone()
        };
        let names = self.rig.names();
        let certificate = {
            let cardinality = cardinality(&self.rig.corpus, &outcome, &certificate);
            certificate.with_cardinality(cardinality)
        };
        let report =
            Report::new(run, &names, &outcome, &summed, certificate).strictly(self.rig.strict);
        Ok((report.without(&secrets(&self.rig.plan)), fault))
    }
}
