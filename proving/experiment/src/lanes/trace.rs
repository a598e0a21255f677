//! One recorded session of an agent, with its sub-agents beside it.
//!
//! Invariant: streams and what they wait for are in order: a stream's parent stands before it, and what waits for a stream comes after what began it.
//! Not here: its file form (`prove`), when things are due in a replay (`lane`).

use std::time::Duration;

/// A session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// As its file names it.
    pub id: String,
    /// Tokens that a name in [`Ask::blocks`] stands for.
    pub block: u32,
    /// Whether names of blocks mean the same in all traces.
    pub is_global: bool,
    /// The agent's own, and behind it those of sub-agents.
    pub streams: Vec<Stream>,
}

/// Requests one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stream {
    /// Names it in a corpus.
    pub id: String,
    /// Whose sub-agent it is; `None` of the agent itself.
    pub parent: Option<Parent>,
    /// At least one.
    pub requests: Vec<Ask>,
}

/// Where a stream belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The stream of which it is a sub-agent.
    pub stream: usize,
    /// The parent's request after whose answer it begins; `None`: it begins with the parent.
    pub after: Option<usize>,
    /// The parent's request that waits for its end; `None`: nobody does.
    pub before: Option<usize>,
}

/// One request, as it was recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ask {
    /// When it was sent, since the trace's beginning.
    pub at: Duration,
    /// How long its answer took.
    pub took: Duration,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub output: u32,
    /// Names of the prompt's blocks.
    pub blocks: Vec<u64>,
    /// From the end of what it waited for, of its own stream and of sub-agents, to when it was sent; of a stream's first request from the
    /// end of the request after which it began.
    pub pause: Duration,
}

/// What is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("trace {id}: {says}")]
pub struct TraceFault {
    /// Which.
    pub id: String,
    /// Why.
    pub says: &'static str,
}

impl Trace {
    /// Of streams whose requests have their recorded times: where sub-agents belong is settled by these, and so is each pause; one that the
    /// recording `says` itself (by stream and request) goes before.
    ///
    /// A sub-agent begins after the last answer that its parent had until then, and the parent's first request after its last answer waits for
    /// it.
    ///
    /// # Errors
    /// There is no stream, or one without a request.
    pub fn new(
        id: String,
        block: u32,
        streams: Vec<(String, Option<usize>, Vec<Ask>)>,
        says: impl Fn(usize, usize) -> Option<Duration>,
    ) -> Result<Self, TraceFault> {
        let fault = |says| TraceFault {
            id: id.clone(),
            says,
        };
        if streams.is_empty() {
            return Err(fault("has no request"));
        }
        if streams.iter().any(|(_, _, requests)| requests.is_empty()) {
            return Err(fault("has a stream without a request"));
        }
        let mut streams = streams;
        for (_, _, requests) in &mut streams {
            let mut last = Duration::ZERO;
            for ask in requests {
                // Who asks in parallel has asked in the order of the file.
                last = last.max(ask.at);
                ask.at = last;
            }
        }
        let of = |streams: &[(String, Option<usize>, Vec<Ask>)], at: usize| {
            let parent = streams.get(at).and_then(|(_, parent, _)| *parent)?;
            let own = streams
                .get(at)
                .map(|(_, _, requests)| requests.as_slice())?;
            let (_, _, of_parent) = streams.get(parent).filter(|_| parent < at)?;
            let (begins, ends) = (own.first()?.at, ended(own));
            let after = of_parent
                .iter()
                .rposition(|ask| ask.at + ask.took <= begins);
            let before = of_parent.iter().position(|ask| ask.at >= ends);
            Some(Parent {
                stream: parent,
                after,
                // Nobody waits for what waits for it.
                before: before.filter(|before| after.is_none_or(|after| after < *before)),
            })
        };
        let parents: Vec<Option<Parent>> = (0..streams.len()).map(|at| of(&streams, at)).collect();
        let pauses: Vec<Vec<Duration>> = (0..streams.len())
            .map(|stream| {
                let own = streams
                    .get(stream)
                    .map_or(&[][..], |(_, _, requests)| requests);
                let pause = |request| pause(&streams, &parents, (stream, request));
                let each = 0..own.len();
                each.map(|request| says(stream, request).unwrap_or_else(|| pause(request)))
                    .collect()
            })
            .collect();
        let streams = streams.into_iter().zip(parents).zip(pauses);
        let streams = streams.map(|(((id, _, requests), parent), pauses)| Stream {
            id,
            parent,
            requests: requests
                .into_iter()
                .zip(pauses)
                .map(|(ask, pause)| Ask { pause, ..ask })
                .collect(),
        });
        Ok(Self {
            streams: streams.collect(),
            id,
            block: block.max(1),
            is_global: false,
        })
    }

    /// From its first request to its last, by when they were sent.
    #[must_use]
    pub fn length(&self) -> Duration {
        let all = self.streams.iter().flat_map(|stream| &stream.requests);
        all.map(|ask| ask.at).max().unwrap_or_default()
    }

    /// How many requests it has.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.streams
            .iter()
            .map(|stream| stream.requests.len())
            .sum()
    }
}

/// When the last answer of a stream had come.
fn ended(requests: &[Ask]) -> Duration {
    let ends = requests.iter().map(|ask| ask.at + ask.took);
    ends.max().unwrap_or_default()
}

/// What was recorded between what a request waited for and itself.
fn pause(
    streams: &[(String, Option<usize>, Vec<Ask>)],
    parents: &[Option<Parent>],
    (stream, request): (usize, usize),
) -> Duration {
    let ask_of = |stream: usize, request: usize| streams.get(stream)?.2.get(request);
    let Some(own) = ask_of(stream, request) else {
        return Duration::ZERO;
    };
    let before = match request.checked_sub(1) {
        Some(before) => ask_of(stream, before),
        None => {
            let parent = parents.get(stream).copied().flatten();
            parent.and_then(|parent| ask_of(parent.stream, parent.after?))
        }
    };
    let joined = parents
        .iter()
        .zip(streams)
        .filter_map(|(parent, (_, _, own))| {
            let parent = parent.as_ref()?;
            let waits = parent.stream == stream && parent.before == Some(request);
            waits.then(|| ended(own))
        });
    let with_parent = parents
        .get(stream)
        .copied()
        .flatten()
        .filter(|_| request == 0);
    let with_parent = with_parent.and_then(|parent| ask_of(parent.stream, 0));
    let begins = before.map_or_else(
        || with_parent.map(|ask| ask.at),
        |ask| Some(ask.at + ask.took),
    );
    let from = begins.into_iter().chain(joined).max();
    own.at.saturating_sub(from.unwrap_or(own.at))
}
