//! What was sent, as far as a certificate needs it.
//!
//! Invariant: memory has a bound. What is beyond it is a tail of the run, by the moments from which gaps count: a gap
//! is kept or not before it is drawn, so that what is kept has the law.
//! Not here: the verdict (its parent), latencies (`load`).

use std::time::Duration;

use super::gaps::Gaps;
use super::lag::{Lag, Lateness};
use super::{Certificate, ProfileCertificate, chain, checks};
use crate::arrivals::{Due, Process};
use crate::workload::{Load, Part, Profile, SEQUENCE, Workload};

/// Sends that are kept, those of all profiles and parts together: 32 bytes each.
pub const MOST_KEPT: usize = 2_000_000;

/// What became of a request that was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Its first byte left at this moment, since the start of the run.
    At(Duration),
    /// It was due, or would have been, and had not left when the run ended.
    Never,
    /// It was not to leave any more: whoever steers the run sent its user away, or had enough requests.
    Withdrawn,
}

/// Takes what is sent, and gives the certificate.
#[derive(Debug, Clone)]
pub struct Certifier {
    workload: Workload,
    most: usize,
    profiles: Vec<Sends>,
    stalled: Duration,
}

/// The sends of one profile.
#[derive(Debug, Clone)]
pub(super) struct Sends {
    pub(super) kept: Vec<Send>,
    /// Of those that left: pauses that a run's end cut are drawn, and nothing was sent after them.
    pub(super) count: u64,
    /// Of all sends, kept or not.
    pub(super) lateness: Lateness,
    /// From here on gaps are missing.
    pub(super) horizon_ns: u64,
}

/// One send; times in nanoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Send {
    pub(super) from_ns: u64,
    pub(super) due_ns: u64,
    /// [`NEVER`] or [`WITHDRAWN`] where it was not sent.
    pub(super) sent_ns: u64,
    pub(super) actor: u32,
    pub(super) drawn: bool,
}

/// Not sent when the run ended.
pub(super) const NEVER: u64 = u64::MAX;
/// Not to be sent any more.
pub(super) const WITHDRAWN: u64 = u64::MAX - 1;

impl Certifier {
    /// For the sends of one part of a workload.
    #[must_use]
    pub fn new(workload: &Workload, part: Part) -> Self {
        let profiles = &workload.profiles;
        let none = |profile: &Profile| Sends {
            kept: Vec::new(),
            count: 0,
            lateness: Lateness::new(profile.process()),
            horizon_ns: u64::MAX,
        };
        Self {
            workload: workload.clone(),
            most: MOST_KEPT / part.of.max(1) as usize / profiles.len().max(1),
            profiles: profiles.iter().map(none).collect(),
            stalled: Duration::ZERO,
        }
    }

    /// Takes a request that [`crate::workload`] drew, and what became of it.
    ///
    /// `actor` is the user's number in a closed profile, and [`SEQUENCE`] for an arrival of an open one; later turns of
    /// an open profile's sessions have the number of their arrival, and count for the lag alone. Every turn that was
    /// drawn has to be recorded, the last of each user with it: without those that are still pausing when the run ends
    /// or when their user is sent away, long pauses are missing.
    pub fn record(&mut self, profile: usize, actor: u64, due: Due, sent: Sent) {
        let open = self.is_open(profile);
        let Some(sends) = self.profiles.get_mut(profile) else {
            return;
        };
        let send = Send {
            from_ns: nanos(due.from),
            due_ns: nanos(due.at),
            sent_ns: match sent {
                Sent::At(at) => nanos(at),
                Sent::Never => NEVER,
                Sent::Withdrawn => WITHDRAWN,
            },
            actor: actor as u32,
            drawn: due.drawn && (!open || actor == SEQUENCE),
        };
        sends.count += u64::from(matches!(sent, Sent::At(_)));
        sends.lateness.count(&send);
        if sends.kept.len() < self.most {
            sends.kept.push(send);
        } else {
            sends.horizon_ns = sends.horizon_ns.min(send.from_ns);
        }
    }

    /// So long, all in all, this part's sender did not come to its turn: answers that it read late in that time moved
    /// what users of a closed profile sent next, which no lag shows.
    pub fn stalled(&mut self, time: Duration) {
        self.stalled += time;
    }

    /// Takes over what another part has.
    pub fn absorb(&mut self, other: Self) {
        self.stalled = self.stalled.max(other.stalled);
        for (sends, others) in self.profiles.iter_mut().zip(other.profiles) {
            sends.kept.extend(others.kept);
            sends.count += others.count;
            sends.lateness.absorb(others.lateness);
            sends.horizon_ns = sends.horizon_ns.min(others.horizon_ns);
        }
    }

    /// The certificate of a run that ended at `end`: what was due long before and has not been sent is late.
    #[must_use]
    pub fn certify(mut self, end: Duration) -> Certificate {
        for sends in &mut self.profiles {
            let horizon_ns = sends.horizon_ns;
            sends.kept.retain(|send| send.from_ns < horizon_ns);
        }
        let profiles = (0..self.profiles.len())
            .filter_map(|profile| self.profile(profile, end))
            .collect();
        Certificate::of(profiles, (self.stalled, end))
    }

    fn profile(&mut self, number: usize, end: Duration) -> Option<ProfileCertificate> {
        let sends = self.profiles.get_mut(number)?;
        let profile = self.workload.profiles.get(number)?;
        let process = profile.process();
        let lag = Lag::of(&sends.kept, &sends.lateness, nanos(end));
        let mut gaps = Gaps::new(&self.workload, number, &mut sends.kept, nanos(end), &lag)?;
        let mut found = checks::intended(&gaps);
        found.checks.extend(checks::achieved(&gaps, &lag));
        found.checks.extend(chain::checks(&mut gaps));
        Some(ProfileCertificate {
            name: profile.name.clone(),
            process: process.to_string(),
            is_recorded: matches!(process, Process::Recorded),
            open: gaps.open,
            verdict: super::Verdict::Unproven,
            sends: sends.count,
            tested: gaps.intended.pairs.len(),
            lag,
            checks: found.checks,
            correlations: found.correlations,
        })
    }

    fn is_open(&self, profile: usize) -> bool {
        let load = self.workload.profiles.get(profile).map(|p| &p.load);
        matches!(load, Some(Load::Open { .. }))
    }
}

fn nanos(at: Duration) -> u64 {
    u64::try_from(at.as_nanos()).unwrap_or(WITHDRAWN - 1)
}
