//! What a load run saw since the last report, in the measures of Locust's statistics.
//!
//! An entry is a name and a method. Parts of an answer (TTFT, TPOT) stand as entries of their own, which only the
//! entry's name says: they are no requests, and the total leaves them out.
//! Invariant: two tallies put together are the tally of all that was counted in either; past each bound what comes
//! further is counted under one name that says so, never dropped.
//! Not here: when a tally is sent (`machine`), what became of it (`delivery`), its wire form (`message`).

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pairs of name and method.
pub(crate) const MOST_ENTRIES: usize = 200;
/// Kinds of errors.
pub(crate) const MOST_ERRORS: usize = 200;
/// Seconds that are kept apart.
pub(crate) const MOST_SECONDS: usize = 600;
/// Bytes of a name, a method or an error.
pub(crate) const MOST_TEXT_BYTES: usize = 512;
/// The longest time that is kept apart; longer ones count as this.
const LONGEST_MS: u64 = 3_600_000;
/// What is counted past a bound.
pub(crate) const FURTHER: &str = "(further)";

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Of<'a> {
    pub(crate) method: &'a str,
    pub(crate) name: &'a str,
}

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen<'a> {
    /// When it ended.
    pub(crate) at: SystemTime,
    /// How long it took. A failure that says nothing of the subject's speed has none, and is in no percentile.
    pub(crate) time: Option<Duration>,
    /// Bytes of the answer's body.
    pub(crate) bytes: u64,
    pub(crate) error: Option<&'a str>,
}

/// A part of an answer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// To the first token.
    Ttft,
    /// From the first token to the last, over the tokens after the first.
    Tpot,
    /// To the last byte, from the moment of sending; an entry's own time counts from the intended one.
    E2e,
}

impl Part {
    const ALL: [Self; 3] = [Self::Ttft, Self::Tpot, Self::E2e];

    fn suffix(self) -> &'static str {
        match self {
            Self::Ttft => " TTFT",
            Self::Tpot => " TPOT",
            Self::E2e => " E2E",
        }
    }
}

/// Counts of one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Of these, without a time.
    pub(crate) untimed: u64,
    pub(crate) failures: u64,
    pub(crate) sum_us: u64,
    pub(crate) min_us: Option<u64>,
    pub(crate) max_us: u64,
    pub(crate) bytes: u64,
    /// By [`bucket`].
    pub(crate) times_ms: BTreeMap<u64, u64>,
    /// By seconds since 1970.
    pub(crate) per_second: BTreeMap<u64, u64>,
    pub(crate) failures_per_second: BTreeMap<u64, u64>,
    /// Of the last, since 1970.
    pub(crate) last_us: Option<u64>,
}

/// Which error, and of what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ErrorOf {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) error: String,
}

/// How often an error was seen, and from when to when, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorCount {
    pub(crate) count: u64,
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    whole: Counts,
    parts: BTreeMap<Part, Counts>,
}

/// All that was counted since a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocustStats {
    since_us: u64,
    /// By name, then by method.
    entries: BTreeMap<String, BTreeMap<String, Entry>>,
    total: Counts,
    errors: BTreeMap<ErrorOf, ErrorCount>,
}

impl LocustStats {
    /// An empty one.
    pub(crate) fn new(since: SystemTime) -> Self {
        Self {
            since_us: micros_of(since),
            entries: BTreeMap::new(),
            total: Counts::default(),
            errors: BTreeMap::new(),
        }
    }

    /// Counts a request that has ended.
    pub(crate) fn request(&mut self, of: Of<'_>, seen: &Seen<'_>) {
        self.entry(of).whole.request(seen);
        self.total.request(seen);
        if let Some(error) = seen.error {
            let at = micros_of(seen.at);
            let once = ErrorCount {
                count: 1,
                first_us: at,
                last_us: at,
            };
            let error = ErrorOf {
                name: cut(of.name).into(),
                method: cut(of.method).into(),
                error: cut(error).into(),
            };
            self.error(error, once);
        }
    }

    /// Counts `times` parts of answers that took `each`.
    pub(crate) fn part(
        &mut self,
        of: Of<'_>,
        part: Part,
        at: SystemTime,
        each: Duration,
        times: u64,
    ) {
        if times == 0 {
            return;
        }
        let counts = self.entry(of).parts.entry(part).or_default();
        counts.requests += times;
        counts.time(each, times);
        counts.moment(micros_of(at), times, 0);
    }

    /// Adds all that `other` counted.
    pub(crate) fn merge(&mut self, other: Self) {
        if other.is_empty() {
            return;
        }
        self.since_us = self.since_us.min(other.since_us);
        self.total.merge(&other.total);
        for (name, methods) in other.entries {
            for (method, entry) in methods {
                let (method, name) = (method.as_str(), name.as_str());
                let mine = self.entry(Of { method, name });
                mine.whole.merge(&entry.whole);
                for (part, counts) in entry.parts {
                    mine.parts.entry(part).or_default().merge(&counts);
                }
            }
        }
        for (of, count) in other.errors {
            self.error(of, count);
        }
    }

    /// What was counted until now; what is left is empty.
    pub(crate) fn take(&mut self, now: SystemTime) -> Self {
        std::mem::replace(self, Self::new(now))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Of all requests, without parts.
    pub(crate) fn total(&self) -> &Counts {
        &self.total
    }

    pub(super) fn since_us(&self) -> u64 {
        self.since_us
    }

    /// Name, method and counts of each entry, the parts among them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (String, &str, &Counts)> {
        self.entries.iter().flat_map(|(name, methods)| {
            methods.iter().flat_map(move |(method, entry)| {
                let whole = (entry.whole.requests > 0)
                    .then(|| (name.clone(), method.as_str(), &entry.whole));
                let parts = Part::ALL.iter().filter_map(move |part| {
                    let counts = entry.parts.get(part)?;
                    Some((format!("{name}{}", part.suffix()), method.as_str(), counts))
                });
                whole.into_iter().chain(parts)
            })
        })
    }

    pub(crate) fn errors(&self) -> impl Iterator<Item = (&ErrorOf, &ErrorCount)> {
        self.errors.iter()
    }

    fn entry(&mut self, of: Of<'_>) -> &mut Entry {
        let (mut name, mut method) = (cut(of.name), cut(of.method));
        let is_known = |methods: &BTreeMap<String, Entry>| methods.contains_key(method);
        if !self.entries.get(name).is_some_and(is_known) {
            let count: usize = self.entries.values().map(BTreeMap::len).sum();
            if count >= MOST_ENTRIES {
                (name, method) = (FURTHER, "");
            }
            let methods = self.entries.entry(name.to_owned()).or_default();
            methods.entry(method.to_owned()).or_default();
        }
        let methods = self.entries.get_mut(name);
        methods
            .and_then(|methods| methods.get_mut(method))
            .expect("it was there, or is since the lines above")
    }

    fn error(&mut self, mut of: ErrorOf, count: ErrorCount) {
        if self.errors.len() >= MOST_ERRORS && !self.errors.contains_key(&of) {
            of = ErrorOf {
                name: FURTHER.into(),
                method: String::new(),
                error: FURTHER.into(),
            };
        }
        let mine = self.errors.entry(of).or_insert(ErrorCount {
            count: 0,
            first_us: u64::MAX,
            last_us: 0,
        });
        mine.count += count.count;
        mine.first_us = mine.first_us.min(count.first_us);
        mine.last_us = mine.last_us.max(count.last_us);
    }
}

impl Counts {
    fn request(&mut self, seen: &Seen<'_>) {
        self.requests += 1;
        self.bytes += seen.bytes;
        let failed = u64::from(seen.error.is_some());
        self.failures += failed;
        match seen.time {
            Some(time) => self.time(time, 1),
            None => self.untimed += 1,
        }
        self.moment(micros_of(seen.at), 1, failed);
    }

    fn time(&mut self, each: Duration, times: u64) {
        let us = u64::try_from(each.as_micros()).unwrap_or(u64::MAX);
        self.sum_us = self.sum_us.saturating_add(us.saturating_mul(times));
        self.min_us = Some(self.min_us.map_or(us, |min| min.min(us)));
        self.max_us = self.max_us.max(us);
        *self.times_ms.entry(bucket(us)).or_default() += times;
    }

    fn moment(&mut self, at_us: u64, times: u64, failures: u64) {
        self.last_us = self.last_us.max(Some(at_us));
        add(&mut self.per_second, at_us / 1_000_000, times);
        if failures > 0 {
            add(&mut self.failures_per_second, at_us / 1_000_000, failures);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.untimed += other.untimed;
        self.failures += other.failures;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.min_us = [self.min_us, other.min_us].into_iter().flatten().min();
        self.max_us = self.max_us.max(other.max_us);
        self.bytes += other.bytes;
        for (time, count) in &other.times_ms {
            *self.times_ms.entry(*time).or_default() += count;
        }
        for (second, count) in &other.per_second {
            add(&mut self.per_second, *second, *count);
        }
        for (second, count) in &other.failures_per_second {
            add(&mut self.failures_per_second, *second, *count);
        }
        self.last_us = self.last_us.max(other.last_us);
    }
}

/// The time in milliseconds under which it is counted: exact below a second, three digits above, where Locust's own
/// workers keep two.
pub(crate) fn bucket(us: u64) -> u64 {
    let us = us.min(LONGEST_MS * 1000);
    let mut unit = 1000;
    while us / unit >= 1000 {
        unit *= 10;
    }
    (us + unit / 2) / unit * unit / 1000
}

/// Past the bound, the last second that is there takes what comes.
fn add(seconds: &mut BTreeMap<u64, u64>, second: u64, count: u64) {
    let known = seconds.len() < MOST_SECONDS || seconds.contains_key(&second);
    let last = seconds.last_key_value().map(|(second, _)| *second);
    let second = if known {
        second
    } else {
        last.unwrap_or(second)
    };
    *seconds.entry(second).or_default() += count;
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT_BYTES)]
}

fn micros_of(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
