//! Where exchanges of one connection begin and end, read beside the bytes as they pass.
//!
//! Invariant: one answer follows one request. What does not fit that (a second request before the answer's end, a change
//! of protocol, an answer without a request) ends the reading of this connection for good.
//! Not here: passing bytes on, clocks.

use load::client::{Parser, Progress};
use load::source::RequestId;

use super::{Arrival, Departure, Ended, Stamp};

#[cfg(test)]
mod tests;

/// Bytes of a request's head that are looked into.
const HEAD_BYTES: usize = 64 << 10;

/// The exchanges of one connection.
pub(super) struct Exchanges {
    /// In small letters.
    id_header: Box<str>,
    state: State,
    /// Of the request, until it is whole.
    head: Vec<u8>,
    answer: Parser,
}

enum State {
    Between,
    Under(InFlight),
    /// Something was not understood.
    Lost,
}

/// An exchange under way.
#[derive(Clone, Copy)]
struct InFlight {
    id: Option<RequestId>,
    in_ns: u64,
    whole_in_ns: u64,
    first_out_ns: Option<u64>,
    delay_ns: u64,
    /// The relay's own time of the request's last bytes, and of the answer's first.
    sent_on_ns: u64,
    went_ns: u64,
    head_is_whole: bool,
}

impl Exchanges {
    /// `id_header` in small letters.
    pub(super) fn new(id_header: &str) -> Self {
        Self {
            id_header: id_header.into(),
            state: State::Between,
            head: Vec::new(),
            answer: Parser::new(),
        }
    }

    /// Whether the next bytes of a request begin another.
    pub(super) const fn is_between(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// Bytes of a request came.
    pub(super) fn request(&mut self, came: Arrival, bytes: &[u8]) {
        let now = came.at_ns;
        if self.is_between() {
            self.head.clear();
            self.answer.reset();
            self.state = State::Under(InFlight {
                id: None,
                in_ns: now,
                whole_in_ns: now,
                first_out_ns: None,
                delay_ns: came.delay_ns,
                sent_on_ns: 0,
                went_ns: 0,
                head_is_whole: false,
            });
        }
        let State::Under(way) = &mut self.state else {
            return;
        };
        if way.first_out_ns.is_none() {
            way.whole_in_ns = now;
        }
        if way.head_is_whole {
            return;
        }
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
        let end = self.head.windows(4).position(|four| four == b"\r\n\r\n");
        way.head_is_whole = end.is_some() || self.head.len() >= HEAD_BYTES;
        let Some(head) = end.and_then(|end| self.head.get(..end)) else {
            return;
        };
        way.id = id(head, &self.id_header);
        // Their answers end elsewhere than others'.
        if head.starts_with(b"HEAD ") || head.starts_with(b"CONNECT ") {
            self.state = State::Lost;
        }
    }

    /// The last bytes of a request that came were sent on, so long after they came.
    pub(super) fn sent_on(&mut self, took_ns: u64) {
        if let State::Under(way) = &mut self.state
            && way.first_out_ns.is_none()
        {
            way.sent_on_ns = took_ns;
        }
    }

    /// Bytes of an answer went.
    pub(super) fn answer(&mut self, went: Departure, bytes: &[u8], mut tell: impl FnMut(Ended)) {
        let now = went.at_ns;
        let mut rest = bytes;
        while !rest.is_empty() {
            let State::Under(way) = &mut self.state else {
                if self.is_between() {
                    self.lose(&mut tell);
                }
                return;
            };
            if way.first_out_ns.is_none() {
                (way.first_out_ns, way.went_ns) = (Some(now), went.took_ns);
            }
            match self.answer.feed(rest, &mut |_: &[u8]| {}) {
                Ok(Progress::More) => {
                    if !self.answer.begun() {
                        // An interim answer, which the parser passes over: not the answer yet.
                        way.first_out_ns = None;
                    }
                    return;
                }
                Ok(Progress::Done { used }) => {
                    rest = rest.get(used..).unwrap_or_default();
                    self.over(now, &mut tell);
                }
                Err(_) => return self.lose(&mut tell),
            }
        }
    }

    /// The upstream closed.
    pub(super) fn closed(&mut self, now: u64, mut tell: impl FnMut(Ended)) {
        if matches!(self.state, State::Under(_))
            && self.answer.begun()
            && self.answer.ends_at_close()
        {
            self.over(now, &mut tell);
        }
    }

    /// The connection is over.
    pub(super) fn ended(&self, mut tell: impl FnMut(Ended)) {
        if matches!(self.state, State::Under(_)) {
            tell(Ended::Cut);
        }
    }

    fn over(&mut self, now: u64, tell: &mut impl FnMut(Ended)) {
        let State::Under(way) = self.state else {
            return;
        };
        self.state = State::Between;
        tell(match (way.id, way.first_out_ns) {
            (Some(id), Some(first_out_ns)) => Ended::Stamp(Stamp {
                id,
                in_ns: way.in_ns,
                whole_in_ns: way.whole_in_ns,
                first_out_ns,
                last_out_ns: now,
                delay_ns: way.delay_ns,
                own_ns: way.sent_on_ns.saturating_add(way.went_ns),
            }),
            _ => Ended::WithoutId,
        });
    }

    fn lose(&mut self, tell: &mut impl FnMut(Ended)) {
        self.state = State::Lost;
        tell(Ended::NotUnderstood);
    }
}

/// The id that a head carries, where it is one of ours.
fn id(head: &[u8], header: &str) -> Option<RequestId> {
    let mut lines = head.split(|byte| *byte == b'\n').skip(1);
    lines.find_map(|line| {
        let at = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = line.split_at_checked(at)?;
        let is_it = name.eq_ignore_ascii_case(header.as_bytes());
        let value = std::str::from_utf8(value.get(1..)?).ok()?;
        is_it.then(|| value.trim().parse().ok()).flatten()
    })
}
