//! Who was the limit of a measurement: a figure is about the subject only when nobody else was full.
//!
//! Invariant: the verdict looks at shares of CPU time alone; it never looks at the throughput.
//! Not here: reading CPU times (`prove`).

#[cfg(test)]
mod tests;

/// A single-threaded party above this share of one core is full.
const FULL_THREAD: f64 = 0.95;
/// The machine is full above this share of its cores.
const FULL_MACHINE: f64 = 0.97;
/// A quota is used up above this share of it: the kernel hands it out in slices.
const FULL_QUOTA: f64 = 0.9;

/// How busy each party was, in cores (1.0 is one core for the whole time).
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// The load client, one thread.
    pub client: f64,
    /// The upstream, one thread.
    pub upstream: f64,
    /// All of the machine, these two, the subject and everybody else, and what the hypervisor took.
    pub machine: f64,
    /// Cores of the machine.
    pub cores: f64,
    /// The subject, all its processes.
    pub subject: f64,
    /// Cores that the subject may use, where it has a quota.
    pub quota: Option<f64>,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Nothing was full: the schedule or the latency set the pace.
    Open,
    /// The client's thread was full: more could have been asked.
    Client,
    /// The upstream's thread was full: more could not have been answered.
    Upstream,
    /// The subject used up its quota, as is meant.
    Quota,
    /// No core was left idle.
    Machine,
}

impl Limit {
    /// The verdict for one measurement.
    #[must_use]
    pub fn of(busy: Busy) -> Self {
        if busy.client > FULL_THREAD {
            Self::Client
        } else if busy.upstream > FULL_THREAD {
            Self::Upstream
        } else if busy
            .quota
            .is_some_and(|quota| busy.subject > FULL_QUOTA * quota)
        {
            Self::Quota
        } else if busy.machine > FULL_MACHINE * busy.cores {
            Self::Machine
        } else {
            Self::Open
        }
    }

    /// The word for it in tables and files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "none",
            Self::Client => "client",
            Self::Upstream => "upstream",
            Self::Quota => "quota",
            Self::Machine => "machine",
        }
    }

    /// Whether throughput says something about the rig and not about the subject.
    #[must_use]
    pub const fn is_rig(self) -> bool {
        matches!(self, Self::Client | Self::Upstream)
    }
}
