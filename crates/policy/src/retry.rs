//! What a route says of retries, and a backend of endpoints that keep failing.
//!
//! Invariant: an exchange has one try at least, and at most [`MAX_ATTEMPTS`].
//! Not here: what follows from it while calls come ([`crate::attempt`]), how it is written (`config`).

use std::time::Duration;

/// Most tries of one exchange that a route can ask for.
pub const MAX_ATTEMPTS: usize = 8;

/// When an exchange of a route is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Most tries of one exchange, the first included.
    pub attempts: usize,
    /// After which statuses another endpoint may do better.
    pub statuses: Statuses,
    /// A call whose tokens count goes elsewhere after 401 to 404, too: the gate's credential, its credit or the model is missing there.
    pub after_unserved: bool,
    /// Retries that each first try earns, in millionths.
    pub share_millionths: u32,
    /// Retries in hand at the start, and the most that can be saved up.
    pub burst: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 4,
            statuses: Statuses::default(),
            after_unserved: true,
            share_millionths: 100_000,
            burst: 10,
        }
    }
}

impl Retries {
    /// Whether another endpoint may do better after this status; `is_metered`: the call's tokens count.
    #[must_use]
    pub fn is_after(&self, status: u16, is_metered: bool) -> bool {
        self.statuses.contains(status) || self.after_unserved && is_metered && is_unserved(status)
    }
}

/// Whether it says that the call is not served there: no credential or credit of the gate's is good for it, or no such model is there.
#[must_use]
pub fn is_unserved(status: u16) -> bool {
    matches!(status, 401..=404)
}

/// Whether another try follows one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// None: nothing calls for it, or there is nowhere to go.
    No,
    /// One does.
    Granted,
    /// One would, and the retry budget of the route has none left.
    Refused,
}

/// A set of statuses from 400 to 599.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statuses([u64; 4]);

impl Statuses {
    /// None.
    pub const NONE: Self = Self([0; 4]);
    const FIRST: u16 = 400;
    const LAST: u16 = 599;

    /// The same with `status`; another one than from 400 to 599 is left out.
    #[must_use]
    pub fn with(mut self, status: u16) -> Self {
        if let Some((word, bit)) = Self::place(status)
            && let Some(word) = self.0.get_mut(word)
        {
            *word |= bit;
        }
        self
    }

    /// Whether `status` is in it.
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        let place = Self::place(status);
        place.is_some_and(|(word, bit)| self.0.get(word).is_some_and(|word| word & bit != 0))
    }

    /// All that are in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (Self::FIRST..=Self::LAST).filter(|status| self.contains(*status))
    }

    fn place(status: u16) -> Option<(usize, u64)> {
        let nth = status.checked_sub(Self::FIRST)?;
        (status <= Self::LAST).then(|| (usize::from(nth / 64), 1 << (nth % 64)))
    }
}

/// Statuses of an endpoint that is overloaded, or that another one may stand in for.
impl Default for Statuses {
    fn default() -> Self {
        let all = [408, 425, 429, 500, 502, 503, 504, 529];
        all.into_iter().fold(Self::NONE, Self::with)
    }
}

/// When an endpoint that keeps failing is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    /// Failures in a row before it is.
    pub failures: u32,
    /// How long the first time; doubles with each further one.
    pub time: Duration,
    /// How long at most.
    pub max_time: Duration,
}

impl Default for Ejection {
    fn default() -> Self {
        Self {
            failures: 5,
            time: Duration::from_secs(5),
            max_time: Duration::from_secs(300),
        }
    }
}

#[cfg(test)]
mod tests;
