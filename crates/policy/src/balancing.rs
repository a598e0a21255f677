//! Which endpoint of a backend takes a call, where its configuration says more than weights: in turn, by the fewest calls, by the least
//! load, or by load and by the beginning of the prompt that each endpoint has computed before.
//!
//! All is estimated in bytes of prompt that an engine has yet to read: what it has not seen of this call's prompt, what it was sent and
//! has not begun to answer, and what the calls that run, those that wait and a full KV cache there cost the next one.
//! Invariant: an endpoint that may not be tried is never chosen; every call that is counted in at an endpoint is counted out; memory is
//! bounded for each endpoint. Workers share what is known, which is atomics alone.
//! Not here: which endpoints may be tried ([`crate::attempt`]), asking engines for their metrics (`callout`), what a page of metrics says
//! ([`report`]).

mod load;
mod prefixes;
mod prompt;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::load::{Load, Reported, Standing};
pub use self::prefixes::Prefixes;
pub use self::prompt::Prompt;
pub use self::report::{PAGE_BYTES_MAX, Report};
use crate::clock::Mono;

/// How a backend's endpoints share its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// One after the other, each as often as its weight says.
    RoundRobin,
    /// The one with the fewest calls of this gate.
    LeastRequest,
    /// The one with the least to do, by its own metrics too.
    LeastLoad,
    /// The one that has the least to do with this call, by what it has seen of its prompt.
    PrefixCache,
}

impl By {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::LeastRequest => "least_request",
            Self::LeastLoad => "least_load",
            Self::PrefixCache => "prefix_cache",
        }
    }
}

/// Why an endpoint was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was its turn.
    Turn,
    /// It has the fewest calls.
    Requests,
    /// It has the least to do, and none that has seen more of the prompt is worth the wait.
    Load,
    /// It has seen the most of the prompt.
    Prefix,
    /// No other one could be tried.
    Only,
    /// An endpoint picker named it.
    Picker,
}

impl Why {
    /// All of them, for metric tables.
    pub const ALL: [Self; 6] = [
        Self::Turn,
        Self::Requests,
        Self::Load,
        Self::Prefix,
        Self::Only,
        Self::Picker,
    ];

    /// The word used in labels and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Requests => "requests",
            Self::Load => "load",
            Self::Prefix => "prefix",
            Self::Only => "only",
            Self::Picker => "picker",
        }
    }
}

/// What was chosen, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The endpoint's place among its backend's.
    pub place: usize,
    /// Why.
    pub why: Why,
    /// Bytes of the prompt that it had seen.
    pub seen: u64,
    /// Bytes of the prompt that are looked at.
    pub prompt: u64,
}

/// An endpoint that may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its place among its backend's.
    pub place: usize,
    /// Its share of the traffic; at least 1.
    pub weight: u32,
}

/// What is known of one endpoint, by all workers.
#[derive(Debug, Default)]
pub struct Shared {
    /// What it has to do.
    pub load: Load,
    /// The beginnings of prompts that it has seen.
    pub prefixes: Prefixes,
    /// How often it was chosen, by why.
    chosen: [AtomicU64; Why::ALL.len()],
    /// Bytes of the prompts that went there, and of them those that it had seen.
    prompt_bytes: AtomicU64,
    seen_bytes: AtomicU64,
}

impl Shared {
    /// How often it was chosen for this reason.
    #[must_use]
    pub fn chosen(&self, why: Why) -> u64 {
        let count = self.chosen.get(why as usize);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Bytes of the prompts that went there, and of them those that it had seen.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (
            self.prompt_bytes.load(Ordering::Relaxed),
            self.seen_bytes.load(Ordering::Relaxed),
        )
    }
}

/// How one backend's endpoints are chosen, and what is known of them.
#[derive(Debug)]
pub struct Balancer {
    by: By,
    /// By place among the backend's endpoints.
    endpoints: Vec<Arc<Shared>>,
    turn: AtomicU64,
}

impl Balancer {
    /// One that knows nothing yet of so many endpoints.
    #[must_use]
    pub fn new(by: By, endpoints: usize) -> Self {
        Self {
            by,
            endpoints: (0..endpoints).map(|_| Arc::default()).collect(),
            turn: AtomicU64::new(0),
        }
    }

    /// How it chooses.
    #[must_use]
    pub const fn by(&self) -> By {
        self.by
    }

    /// Whether it looks at what a call asks.
    #[must_use]
    pub const fn reads_prompts(&self) -> bool {
        matches!(self.by, By::PrefixCache)
    }

    /// What is known of the endpoint at a place.
    #[must_use]
    pub fn endpoint(&self, place: usize) -> Option<&Arc<Shared>> {
        self.endpoints.get(place)
    }

    /// Takes what another one knows of an endpoint that both have.
    pub fn take(&mut self, place: usize, known: &Arc<Shared>) {
        if let Some(endpoint) = self.endpoints.get_mut(place) {
            *endpoint = Arc::clone(known);
        }
    }

    /// The one of the candidates that takes the call. Where several are as good, `chance` decides.
    #[must_use]
    pub fn choose(
        &self,
        candidates: &mut dyn Iterator<Item = Candidate>,
        prompt: Option<&Prompt>,
        chance: u64,
        now: Mono,
    ) -> Option<Choice> {
        let candidates: Vec<Candidate> = candidates.collect();
        let only = match candidates.as_slice() {
            [] => return None,
            [only] => Some(*only),
            _ => None,
        };
        let seen = |place: usize| match (prompt, self.endpoints.get(place)) {
            (Some(prompt), Some(endpoint)) if self.reads_prompts() => {
                prompt.bytes_of(endpoint.prefixes.seen(prompt))
            }
            _ => 0,
        };
        let of = |candidate: Candidate, why| Choice {
            place: candidate.place,
            why,
            seen: seen(candidate.place),
            prompt: prompt.map_or(0, Prompt::bytes),
        };
        if let Some(only) = only {
            return Some(of(only, Why::Only));
        }
        match self.by {
            By::RoundRobin => self
                .in_turn(&candidates)
                .map(|candidate| of(candidate, Why::Turn)),
            By::LeastRequest => {
                let cost = |at: &Candidate| {
                    let endpoint = self.endpoints.get(at.place);
                    endpoint.map_or(0, |endpoint| u64::from(endpoint.load.in_flight()))
                };
                least(&candidates, cost, chance).map(|candidate| of(candidate, Why::Requests))
            }
            By::LeastLoad | By::PrefixCache => {
                let weighed: Vec<(Candidate, u64, u64)> = candidates
                    .into_iter()
                    .map(|at| {
                        let seen = seen(at.place);
                        let endpoint = self.endpoints.get(at.place);
                        let busy = endpoint.map_or(0, |endpoint| endpoint.load.cost(now));
                        let unseen = prompt.map_or(0, Prompt::bytes).saturating_sub(seen);
                        (at, seen, busy.saturating_add(unseen))
                    })
                    .collect();
                by_cost(&weighed, chance).map(|(candidate, seen)| {
                    let most = weighed.iter().map(|(_, seen, _)| *seen).max();
                    let is_for_prefix = seen > 0 && Some(seen) == most;
                    let why = if is_for_prefix {
                        Why::Prefix
                    } else {
                        Why::Load
                    };
                    Choice {
                        seen,
                        ..of(candidate, why)
                    }
                })
            }
        }
    }

    /// Counts a call in at an endpoint, which has seen its prompt from now on.
    #[must_use]
    pub fn count_in(&self, choice: &Choice, prompt: Option<&Prompt>) -> Option<InFlight> {
        let endpoint = Arc::clone(self.endpoints.get(choice.place)?);
        let one = endpoint.chosen.get(choice.why as usize);
        if let Some(count) = one {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let (prompt_bytes, seen) = (&endpoint.prompt_bytes, &endpoint.seen_bytes);
        prompt_bytes.fetch_add(choice.prompt, Ordering::Relaxed);
        seen.fetch_add(choice.seen, Ordering::Relaxed);
        if let Some(prompt) = prompt
            && self.reads_prompts()
        {
            endpoint.prefixes.add(prompt);
        }
        let unread = choice.prompt.saturating_sub(choice.seen);
        endpoint.load.begin(unread);
        Some(InFlight { endpoint, unread })
    }

    /// The next in turn: of so many turns as all candidates' weights, each has as many as its own. Round by round, so that a heavy one has
    /// its turns between those of others: in a round is whoever weighs more than there were rounds.
    fn in_turn(&self, candidates: &[Candidate]) -> Option<Candidate> {
        let weights = || candidates.iter().map(|at| u64::from(at.weight));
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let turn = turn.checked_rem(weights().sum())?;
        // How many turns there are before a round, and the last round before which there are no more than this one.
        let before = |round: u64| weights().map(|weight| weight.min(round)).sum::<u64>();
        let (mut round, mut most) = (0, weights().max()?);
        while round < most {
            let middle = (round + most).div_ceil(2);
            match before(middle) <= turn {
                true => round = middle,
                false => most = middle - 1,
            }
        }
        let nth = usize::try_from(turn - before(round)).ok()?;
        let mut in_round = candidates.iter().filter(|at| u64::from(at.weight) > round);
        in_round.nth(nth).copied()
    }
}

/// A call at an endpoint, counted out when it is dropped.
#[derive(Debug)]
pub struct InFlight {
    endpoint: Arc<Shared>,
    /// Bytes of its prompt that the endpoint has yet to read.
    unread: u64,
}

impl InFlight {
    /// The endpoint has begun to answer: it has read the prompt.
    pub fn answers(&mut self) {
        self.endpoint.load.read(std::mem::take(&mut self.unread));
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.answers();
        self.endpoint.load.end();
    }
}

/// One of those that cost the least for their weight.
fn least(
    candidates: &[Candidate],
    cost: impl Fn(&Candidate) -> u64,
    chance: u64,
) -> Option<Candidate> {
    let weighed: Vec<_> = candidates.iter().map(|at| (*at, 0, cost(at))).collect();
    by_cost(&weighed, chance).map(|(candidate, _)| candidate)
}

/// One of those whose cost, the last member, is the least for their weight: with its second member.
fn by_cost(weighed: &[(Candidate, u64, u64)], chance: u64) -> Option<(Candidate, u64)> {
    // As fractions: cost / weight, compared without dividing.
    let is_less = |one: &(Candidate, u64, u64), other: &(Candidate, u64, u64)| {
        u128::from(one.2) * u128::from(other.0.weight.max(1))
            < u128::from(other.2) * u128::from(one.0.weight.max(1))
    };
    let mut best = weighed.first()?;
    for one in weighed {
        if is_less(one, best) {
            best = one;
        }
    }
    let ties: Vec<_> = weighed.iter().filter(|one| !is_less(best, one)).collect();
    let nth = usize::try_from(chance).unwrap_or(usize::MAX);
    let chosen = ties.get(nth.checked_rem(ties.len())?)?;
    Some((chosen.0, chosen.1))
}

#[cfg(test)]
mod tests;
