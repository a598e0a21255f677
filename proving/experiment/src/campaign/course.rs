//! What happened in a campaign.
//!
//! Invariant: events, steps and phases stand in the order of their times.
//! Not here: what was measured meanwhile (`prove`).

use std::fmt;
use std::time::Duration;

/// Everything that was decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// Phases that are over.
    pub phases: Vec<PhaseSpan>,
    /// Windows of the ramp.
    pub steps: Vec<Step>,
    /// Decisions, each with its reason.
    pub events: Vec<Event>,
    /// Gates by name, and the answers of relative ones in the baseline.
    pub baselines: Vec<(String, Option<f64>)>,
    /// Gates by name, and of each [`Then::Retract`](super::Then::Retract) gate the most that it said in as many
    /// consecutive windows of the soak as it has to be open for: it opened again where that is above its limit.
    pub soak: Vec<(String, Option<f64>)>,
    /// Users at the saturation point, if it was found.
    pub t2_users: Option<u32>,
    /// How it ended, once it has.
    pub ending: Option<Ending>,
}

/// A phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Few users.
    Baseline,
    /// More and more of them.
    Ramp,
    /// Fewer again; what is under way ends.
    Retract,
    /// As many as can be held.
    Soak,
    /// Nobody.
    Over,
}

/// A phase that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Which.
    pub phase: Phase,
    /// Its beginning.
    pub from: Duration,
    /// Its end.
    pub to: Duration,
}

/// A window of the ramp.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Users at work.
    pub users: u32,
    /// Its beginning.
    pub from: Duration,
    /// Its end.
    pub to: Duration,
    /// Whether every gate was quiet.
    pub is_stable: bool,
    /// Which were not, and by how much.
    pub says: String,
}

/// A decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub at: Duration,
    /// Of what kind.
    pub kind: EventKind,
    /// Users at work then.
    pub users: u32,
    /// Why.
    pub says: String,
}

/// Kinds of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A phase began.
    Phase,
    /// The baseline is known.
    Baseline,
    /// Users came.
    Advanced,
    /// No users came.
    Held,
    /// T2.
    Saturated,
    /// The most users that were asked for did not saturate.
    Unsaturated,
    /// Users left.
    Retracted,
    /// A gate that had found the saturation point was open again in the soak.
    Reopened,
    /// T3.
    Aborted,
    /// A target said nothing.
    Silent,
    /// It is back.
    Heard,
    /// A gate of the soak had no answer, though its targets were heard.
    Unanswered,
    /// It has one again.
    Answered,
    /// The end.
    Ended,
}

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// With the whole soak.
    Completed,
    /// A gate ended it.
    Aborted(Limit),
    /// The baseline could not be had.
    NoBaseline,
    /// A target that a gate needs was silent for too long.
    Unreachable,
    /// In the soak this gate had no answer for too long, though its targets were heard.
    Unanswered(String),
    /// No users came for too many windows.
    Held,
    /// Nothing was looked at for so long: the host slept, or its clock jumped.
    Lapsed(Duration),
    /// Somebody ended it.
    Interrupted,
    /// A part of what is under test has ended.
    Failed(String),
    /// Who measures could not go on: no figure counts.
    Broken(String),
}

/// A limit that was passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Of which gate.
    pub gate: String,
    /// What was measured.
    pub value: f64,
    /// What it may be.
    pub limit: f64,
    /// With how many users.
    pub users: u32,
}

impl Course {
    pub(super) const MOST_EVENTS: usize = 20_000;

    /// When a phase was.
    #[must_use]
    pub fn span(&self, phase: Phase) -> Option<PhaseSpan> {
        self.phases.iter().find(|span| span.phase == phase).copied()
    }
}

impl Phase {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Ramp => "ramp",
            Self::Retract => "retract",
            Self::Soak => "soak",
            Self::Over => "over",
        }
    }
}

impl EventKind {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Baseline => "baseline",
            Self::Advanced => "advanced",
            Self::Held => "held",
            Self::Saturated => "saturated",
            Self::Unsaturated => "unsaturated",
            Self::Retracted => "retracted",
            Self::Reopened => "reopened",
            Self::Aborted => "aborted",
            Self::Silent => "silent",
            Self::Heard => "heard",
            Self::Unanswered => "unanswered",
            Self::Answered => "answered",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("the soak is complete"),
            Self::Aborted(limit) => write!(f, "{} ended it at {} users", limit.gate, limit.users),
            Self::NoBaseline => f.write_str("the baseline could not be had in its time"),
            Self::Unreachable => f.write_str("a target that a gate needs was silent for too long"),
            Self::Unanswered(gate) => write!(
                f,
                "{gate} had no answer for too long: its metric is gone from the page, or nothing in it moves"
            ),
            Self::Held => f.write_str("gates held the ramp for too long"),
            Self::Lapsed(gap) => write!(
                f,
                "nothing was looked at for {} s: the host slept, or its clock jumped",
                gap.as_secs()
            ),
            Self::Interrupted => f.write_str("it was interrupted"),
            Self::Failed(why) | Self::Broken(why) => f.write_str(why),
        }
    }
}
