//! What a campaign is to do.
//!
//! Invariant: a plan that passes [`Plan::check`] ends by itself, whatever is scraped.
//! Not here: its file form (`prove`).

use std::fmt;
use std::time::Duration;

use crate::telemetry::Query;
use crate::workload::MOST_USERS;

/// Longer phases are refused: a month.
const LONGEST: Duration = Duration::from_secs(31 * 86_400);
/// Gates at most.
const MOST_GATES: usize = 64;

/// A campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What later windows are compared with.
    pub baseline: Baseline,
    /// Users that come with each step.
    pub step: u32,
    /// How long a step lasts, and over what its gates are asked.
    pub window: Duration,
    /// Users at most.
    pub max_users: u32,
    /// Consecutive windows in which no users come; then the campaign ends.
    pub max_held: u32,
    /// The share of T2 with which the soak goes on.
    pub retract: f64,
    /// The soak.
    pub soak: Soak,
    /// What is looked at.
    pub gates: Vec<Gate>,
    /// A target that has said nothing for so long is silent.
    pub silence: Duration,
    /// A target that a gate needs may be silent for so long, and a gate of the soak without an answer; then the campaign
    /// ends.
    pub patience: Duration,
}

/// The first users' time alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// How many there are.
    pub users: u32,
    /// From the start, what does not count.
    pub warm_up: Duration,
    /// How long it is at least, after that.
    pub min: Duration,
    /// How many requests the answers of relative gates rest on at least, where they rest on any; of one gate, where none
    /// is relative.
    pub requests: u64,
    /// It may take so long; then the campaign ends.
    pub max: Duration,
}

/// The soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Soak {
    /// After the retraction, what does not count.
    pub settle: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// Something that is looked at, and what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// As reports call it.
    pub name: String,
    /// What is asked.
    pub query: Query,
    /// When it is open.
    pub threshold: Threshold,
    /// Consecutive windows for which it has to be, for [`Then::Retract`].
    pub windows: u32,
    /// Over how long it is asked, for [`Then::Abort`].
    pub over: Duration,
    /// What follows.
    pub then: Then,
}

/// When a gate is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// Above this.
    Above(f64),
    /// Above so many times what it was in the baseline.
    TimesBaseline(f64),
}

/// What follows when a gate is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// No users come.
    Hold,
    /// No users come; after so many windows, the saturation point is found.
    Retract,
    /// The campaign ends at once.
    Abort,
}

/// A member of a plan that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFault {
    /// Which, such as `baseline.min`.
    pub member: String,
    /// What is wrong.
    pub says: String,
}

impl Default for Plan {
    /// The published method: eight users a minute, T2 where mean TTFT passes 3 times its baseline in two windows, T3 where
    /// preemptions pass 5 % of finished requests, a soak of three hours with 85 % of T2.
    fn default() -> Self {
        let query = |text: &str| text.parse::<Query>().expect("a query that is written here");
        Self {
            baseline: Baseline {
                users: 8,
                warm_up: Duration::from_secs(30),
                min: Duration::from_secs(60),
                requests: 200,
                max: Duration::from_secs(1800),
            },
            step: 8,
            window: Duration::from_secs(60),
            max_users: 1000,
            max_held: 30,
            retract: 0.85,
            soak: Soak {
                settle: Duration::from_secs(60),
                length: Duration::from_secs(10_800),
            },
            gates: vec![
                Gate {
                    name: "T2".into(),
                    query: query("mean(engine:vllm:time_to_first_token_seconds)"),
                    threshold: Threshold::TimesBaseline(3.0),
                    windows: 2,
                    over: Duration::from_secs(60),
                    then: Then::Retract,
                },
                Gate {
                    name: "T3".into(),
                    query: query(
                        "ratio(engine:vllm:num_preemptions_total, engine:vllm:request_success_total)",
                    ),
                    threshold: Threshold::Above(0.05),
                    windows: 1,
                    over: Duration::from_secs(60),
                    then: Then::Abort,
                },
            ],
            silence: Duration::from_secs(5),
            patience: Duration::from_secs(120),
        }
    }
}

impl Gate {
    /// Whether it is compared with the baseline.
    #[must_use]
    pub const fn is_relative(&self) -> bool {
        matches!(self.threshold, Threshold::TimesBaseline(_))
    }

    /// Above which it is open: of a relative one once its answer in the baseline is known.
    pub(super) fn limit(&self, baseline: Option<f64>) -> Option<f64> {
        match self.threshold {
            Threshold::Above(limit) => Some(limit),
            Threshold::TimesBaseline(factor) => Some(factor * baseline?),
        }
    }
}

impl Plan {
    /// No campaign takes longer: each phase by what it may last, and a second for each window that ends late.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let steps = self.max_users.div_ceil(self.step.max(1)).saturating_add(1);
        let windows = steps.saturating_mul(self.max_held.max(1));
        let late = Duration::from_secs(1);
        let ramp = (self.window + late).saturating_mul(windows);
        let baseline = self.baseline.warm_up + self.baseline.max;
        // A soak waits for a gate that has no answer.
        let soak = self.soak.settle + self.soak.length + self.patience + self.window;
        ramp.saturating_add(baseline + soak + late * 5)
    }

    /// The gate that finds the saturation point, T2: the first that retracts.
    #[must_use]
    pub fn saturation_gate(&self) -> Option<(usize, &Gate)> {
        let mut gates = self.gates.iter().enumerate();
        gates.find(|(_, gate)| gate.then == Then::Retract)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.gates.iter().map(|gate| gate.name.clone())
    }

    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// Every member that makes no sense.
    pub fn check(&self) -> Result<(), Vec<PlanFault>> {
        let mut faults = Faults(Vec::new());
        self.check_times(&mut faults);
        self.check_users(&mut faults);
        self.check_gates(&mut faults);
        match faults.0 {
            faults if faults.is_empty() => Ok(()),
            faults => Err(faults),
        }
    }

    fn check_times(&self, faults: &mut Faults) {
        let second = Duration::from_secs(1);
        for (member, time, least) in [
            ("baseline.warm_up", self.baseline.warm_up, Duration::ZERO),
            ("baseline.min", self.baseline.min, second),
            ("baseline.max", self.baseline.max, self.baseline.min),
            ("ramp.window", self.window, second),
            ("soak.settle", self.soak.settle, Duration::ZERO),
            ("soak.length", self.soak.length, second),
            ("scrape.silence", self.silence, second),
            ("scrape.patience", self.patience, self.silence),
        ] {
            if time < least || time > LONGEST {
                let least = least.as_secs();
                faults.add(member, format!("has to be from {least} s to a month"));
            }
        }
    }

    fn check_users(&self, faults: &mut Faults) {
        for (member, users) in [
            ("baseline.users", self.baseline.users),
            ("ramp.step", self.step),
            ("ramp.max_users", self.max_users),
        ] {
            if !(1..=MOST_USERS).contains(&users) {
                faults.add(member, format!("has to be from 1 to {MOST_USERS}"));
            }
        }
        if self.max_held == 0 {
            faults.add("ramp.max_held", "has to be at least 1");
        }
        if self.baseline.users > self.max_users {
            faults.add("baseline.users", "are more than ramp.max_users");
        }
        if !(self.retract > 0.0 && self.retract <= 1.0) {
            faults.add("ramp.retract", "has to be above 0 and at most 1");
        }
    }

    fn check_gates(&self, faults: &mut Faults) {
        if self.gates.len() > MOST_GATES {
            faults.add("gate", format!("there are at most {MOST_GATES}"));
        }
        for (at, gate) in self.gates.iter().enumerate() {
            let mut fault = |member: &str, says: &str| {
                faults.add(&format!("gate[{at}]{member}"), says);
            };
            let number = match gate.threshold {
                Threshold::Above(number) | Threshold::TimesBaseline(number) => number,
            };
            if !number.is_finite() || gate.is_relative() && number <= 0.0 {
                fault("", "has a limit that is no number above 0");
            }
            if gate.windows == 0 {
                fault(".windows", "has to be at least 1");
            }
            if gate.then == Then::Retract && gate.windows > self.max_held.max(1) {
                let says = "are more than ramp.max_held: the ramp would always end before";
                fault(".windows", says);
            }
            if gate.over < Duration::from_secs(1) || gate.over > LONGEST {
                fault(".over", "has to be from 1 s to a month");
            }
            let mut before = self.gates.iter().take(at);
            if before.any(|other| other.name == gate.name) {
                fault(".name", "is that of another gate");
            }
        }
    }
}

/// Members that make no sense.
struct Faults(Vec<PlanFault>);

impl Faults {
    fn add(&mut self, member: &str, says: impl Into<String>) {
        self.0.push(PlanFault {
            member: member.to_owned(),
            says: says.into(),
        });
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Above(limit) => write!(f, "open above {limit}"),
            Self::TimesBaseline(factor) => write!(f, "open above {factor} times that"),
        }
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.member, self.says)
    }
}
