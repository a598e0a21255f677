//! Reads an answer for its usage while it passes, in whichever form it comes.
//!
//! Invariant: what passes is forwarded as it came, but for a stream's usage event that is withheld. What cannot be
//! decoded makes the rest unread, never the answer bad.
//! Not here: which form an answer has (`policy`), what a usage object means ([`crate::usage`]).

use bytes::Bytes;

use self::id::IdReader;
use self::measured::Measured;
use crate::dialect::USAGE_EVENT;
use crate::encoding::{Coding, Decoder};
use crate::eventstream::{self, Kind};
use crate::sse::{Mode, Scanner};
use crate::usage::{Reading, UnaryUsage};

/// Decoded text of a compressed answer for which the room is kept from chunk to chunk.
const KEPT_TEXT_BYTES: usize = 64 << 10;

/// What is read of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Nothing.
    #[default]
    Unread,
    /// One JSON document.
    Json,
    /// A stream of events.
    Events {
        /// The usage event that the client did not ask for is taken out.
        withhold: bool,
    },
    /// Amazon's stream of binary events.
    Frames,
    /// One JSON document that came under this coding.
    CodedJson(Coding),
    /// A stream of events that came under this coding.
    CodedEvents(Coding),
    /// One JSON document that has an id by which a later call may name it.
    NamedJson,
    /// A stream of events of which the first have such an id.
    NamedEvents,
    /// One JSON document that may tell how many pieces, or how long a sound, it is billed by.
    MeasuredJson,
}

/// What an answer is billed by beside tokens, where it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    /// Pieces in its list `data`: images.
    pub pieces: Option<u32>,
    /// Seconds of sound, begun ones whole.
    pub seconds: Option<u64>,
}

/// What an answer said, as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard<'m> {
    /// Its usage, where it stands: it is large to be moved.
    pub reading: &'m Reading,
    /// The completion of its usage was told where a stream began, and not since.
    pub is_begun_only: bool,
    /// Data events of a stream.
    pub events: Option<u64>,
    /// Tokens of text in them, by their number and length.
    pub text_tokens: u64,
    /// Bytes of its text, where it came compressed.
    pub decoded_bytes: Option<u64>,
    /// A stream told of an error, which no status can after its head.
    pub told_error: bool,
    /// A stream told where its answer ends, or it is not known whether it did.
    pub told_end: bool,
}

impl Heard<'_> {
    /// Of an answer that said nothing.
    pub const NOTHING: Heard<'static> = Heard {
        reading: &Reading::Absent,
        is_begun_only: false,
        events: None,
        text_tokens: 0,
        decoded_bytes: None,
        told_error: false,
        told_end: true,
    };
}

/// Reads one answer.
#[derive(Debug, Default)]
pub struct Meter(Inner);

#[derive(Debug, Default)]
enum Inner {
    #[default]
    Unread,
    Json(UnaryUsage),
    Events {
        scanner: Box<Scanner>,
        withhold: bool,
    },
    Frames(Box<Frames>),
    Coded(Box<Coded>),
    Named(Box<Named>),
    Measured(Box<Measured>),
}

/// An answer with an id, which stands near its beginning.
#[derive(Debug)]
struct Named {
    meter: Meter,
    id: IdReader,
}

/// Binary events, read beside the bytes that pass.
#[derive(Debug, Default)]
struct Frames {
    reader: eventstream::Reader,
    reading: Reading,
    events: u64,
    told_error: bool,
}

/// A compressed answer, decoded beside the bytes that pass.
#[derive(Debug)]
struct Coded {
    decoder: Decoder,
    /// Reads what was decoded.
    meter: Meter,
    /// What the latest chunk decoded to.
    text: Vec<u8>,
    /// Bytes that all chunks decoded to.
    decoded_bytes: u64,
}

impl Meter {
    /// Whether it reads nothing: nobody has said yet what passes, or nothing of it is told.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        matches!(self.0, Inner::Unread)
    }

    /// One that reads answers of this form.
    #[must_use]
    pub fn new(form: Form) -> Self {
        let coded = |coding, form| {
            Inner::Coded(Box::new(Coded {
                decoder: Decoder::new(coding),
                meter: Self::new(form),
                text: Vec::new(),
                decoded_bytes: 0,
            }))
        };
        let named = |form| {
            Inner::Named(Box::new(Named {
                meter: Self::new(form),
                id: IdReader::default(),
            }))
        };
        Self(match form {
            Form::Unread => Inner::Unread,
            Form::Json => Inner::Json(UnaryUsage::default()),
            Form::Events { withhold } => {
                let mode = if withhold {
                    Mode::Withhold
                } else {
                    Mode::Observe
                };
                Inner::Events {
                    scanner: Box::new(Scanner::new(mode)),
                    withhold,
                }
            }
            Form::Frames => Inner::Frames(Box::default()),
            Form::CodedJson(coding) => coded(coding, Form::Json),
            Form::CodedEvents(coding) => coded(coding, Form::Events { withhold: false }),
            Form::NamedJson => named(Form::Json),
            Form::NamedEvents => named(Form::Events { withhold: false }),
            Form::MeasuredJson => Inner::Measured(Box::default()),
        })
    }

    /// Reads a chunk that is forwarded whole. `false` where part of it may be withheld: then it was not read,
    /// and is for [`Meter::sift`].
    #[inline]
    pub fn pass(&mut self, chunk: &[u8], is_over: bool) -> bool {
        if let Inner::Events {
            scanner,
            withhold: true,
        } = &mut self.0
        {
            return scanner.pass(chunk);
        }
        self.observe(chunk);
        if is_over {
            self.finish();
        }
        true
    }

    /// Reads a chunk of a stream from which an event is withheld; what is forwarded of it goes to `out`.
    pub fn sift(&mut self, chunk: &[u8], is_over: bool, out: &mut Vec<Bytes>) {
        let Inner::Events { scanner, .. } = &mut self.0 else {
            out.push(Bytes::copy_from_slice(chunk));
            return;
        };
        if !chunk.is_empty() {
            scanner.push(Bytes::copy_from_slice(chunk), out);
        }
        if is_over {
            scanner.finish(out);
        }
    }

    /// The answer broke off: what was held back of it goes to `out`.
    pub fn release(&mut self, out: &mut Vec<Bytes>) {
        if let Inner::Events {
            scanner,
            withhold: true,
        } = &mut self.0
        {
            scanner.finish(out);
        }
    }

    /// Reads a chunk that is not forwarded, or forwarded whatever is in it.
    #[inline]
    pub fn observe(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Inner::Unread => {}
            Inner::Json(usage) => usage.push(chunk),
            Inner::Events { scanner, .. } => scanner.observe(chunk),
            Inner::Frames(frames) => frames.observe(chunk),
            Inner::Coded(coded) => coded.observe(chunk),
            Inner::Named(named) => {
                named.id.push(chunk);
                named.meter.observe(chunk);
            }
            Inner::Measured(measured) => measured.push(chunk),
        }
    }

    /// The answer came to its end: an event that no empty line ended is read too, as many clients do.
    pub fn finish(&mut self) {
        match &mut self.0 {
            Inner::Events { scanner, .. } => scanner.finish(&mut Vec::new()),
            Inner::Coded(coded) => coded.meter.finish(),
            Inner::Named(named) => named.meter.finish(),
            Inner::Unread | Inner::Json(_) | Inner::Frames(_) | Inner::Measured(_) => {}
        }
    }

    /// What the latest chunk said to a reader: its decoded text, where it came compressed.
    #[inline]
    #[must_use]
    pub fn text<'a>(&'a self, chunk: &'a [u8]) -> &'a [u8] {
        match &self.0 {
            Inner::Coded(coded) => &coded.text,
            Inner::Unread
            | Inner::Json(_)
            | Inner::Events { .. }
            | Inner::Frames(_)
            | Inner::Named(_)
            | Inner::Measured(_) => chunk,
        }
    }

    /// Data events of a stream so far.
    #[must_use]
    pub fn events(&self) -> Option<u64> {
        match &self.0 {
            Inner::Events { scanner, .. } => Some(scanner.stats().data_events),
            Inner::Frames(frames) => Some(frames.events),
            Inner::Coded(coded) => coded.known(coded.meter.events()),
            Inner::Named(named) => named.meter.events(),
            Inner::Unread | Inner::Json(_) | Inner::Measured(_) => None,
        }
    }

    /// What a stream said so far; nothing of other answers, which say it at their end.
    #[must_use]
    pub fn so_far(&self) -> Heard<'_> {
        match &self.0 {
            Inner::Events { scanner, .. } => of_stream(scanner),
            Inner::Frames(frames) => frames.heard(),
            Inner::Coded(coded) => {
                let so_far = coded.meter.so_far();
                let events = coded.known(so_far.events);
                // What the decoder keeps to its end was not read yet.
                let told_end = so_far.told_end || coded.decoder.keeps_text();
                Heard {
                    events,
                    told_end,
                    ..so_far
                }
            }
            Inner::Named(named) => named.meter.so_far(),
            Inner::Unread | Inner::Json(_) | Inner::Measured(_) => Heard::NOTHING,
        }
    }

    /// Whether a stream of events has told its end, `[DONE]`: a client may leave then with all of it.
    #[must_use]
    pub fn has_end_mark(&self) -> bool {
        match &self.0 {
            Inner::Events { scanner, .. } => scanner.stats().done,
            Inner::Named(named) => named.meter.has_end_mark(),
            Inner::Unread
            | Inner::Json(_)
            | Inner::Frames(_)
            | Inner::Coded(_)
            | Inner::Measured(_) => false,
        }
    }

    /// The id of an answer of a form that has one, where it was told.
    #[must_use]
    pub fn id(&self) -> Option<&[u8]> {
        match &self.0 {
            Inner::Named(named) => named.id.told(),
            Inner::Unread
            | Inner::Json(_)
            | Inner::Events { .. }
            | Inner::Frames(_)
            | Inner::Coded(_)
            | Inner::Measured(_) => None,
        }
    }

    /// What an answer of a form that tells it is billed by, once it was [heard](Self::heard).
    #[must_use]
    pub fn measure(&self) -> Measure {
        match &self.0 {
            Inner::Measured(measured) => measured.measure(),
            Inner::Unread
            | Inner::Json(_)
            | Inner::Events { .. }
            | Inner::Frames(_)
            | Inner::Coded(_)
            | Inner::Named(_) => Measure::default(),
        }
    }

    /// What the answer said. One that came whole and does not decode to its end said nothing.
    #[must_use]
    pub fn heard(&mut self, is_whole: bool) -> Heard<'_> {
        match &mut self.0 {
            Inner::Unread => Heard::NOTHING,
            // One that broke off before it began may be running.
            Inner::Json(usage) if is_whole && usage.is_empty() => Heard {
                reading: &Reading::NoAnswer,
                ..Heard::NOTHING
            },
            Inner::Measured(measured) if is_whole && measured.is_empty() => Heard {
                reading: &Reading::NoAnswer,
                ..Heard::NOTHING
            },
            Inner::Json(usage) => Heard {
                reading: usage.finish(),
                ..Heard::NOTHING
            },
            Inner::Events { scanner, .. } => of_stream(scanner),
            Inner::Frames(frames) => frames.heard(),
            Inner::Named(named) => named.meter.heard(is_whole),
            Inner::Measured(measured) => Heard {
                reading: measured.finish(),
                ..Heard::NOTHING
            },
            Inner::Coded(coded) => {
                if is_whole && coded.decoder.finish().is_err() {
                    return Heard {
                        told_error: coded.meter.so_far().told_error,
                        ..Heard::NOTHING
                    };
                }
                let Coded {
                    decoder,
                    meter,
                    decoded_bytes,
                    ..
                } = &mut **coded;
                let heard = meter.heard(is_whole);
                let events = heard.events.filter(|n| *n > 0 || !decoder.keeps_text());
                Heard {
                    events,
                    decoded_bytes: Some(*decoded_bytes),
                    ..heard
                }
            }
        }
    }
}

fn of_stream(scanner: &Scanner) -> Heard<'_> {
    let stats = scanner.stats();
    Heard {
        reading: &stats.usage,
        is_begun_only: stats.is_begun_only,
        events: Some(stats.data_events),
        text_tokens: stats.text_tokens,
        decoded_bytes: None,
        told_error: stats.error,
        told_end: scanner.told_end(),
    }
}

impl Frames {
    fn observe(&mut self, chunk: &[u8]) {
        let Self {
            reader,
            reading,
            events,
            told_error,
        } = self;
        // What follows a broken message is unread.
        let _is_readable = reader.push(chunk, |message| match message.kind {
            Kind::Event(name) => {
                *events += 1;
                if name == USAGE_EVENT {
                    let mut usage = UnaryUsage::new();
                    usage.push(message.payload);
                    *reading = *usage.finish();
                }
            }
            Kind::Exception(_) | Kind::Error { .. } => *told_error = true,
        });
    }

    const fn heard(&self) -> Heard<'_> {
        Heard {
            reading: &self.reading,
            is_begun_only: false,
            events: Some(self.events),
            text_tokens: self.events,
            decoded_bytes: None,
            told_error: self.told_error,
            told_end: true,
        }
    }
}

impl Coded {
    /// The events so far, where they are known: text that the decoder keeps to its end has some that are not.
    fn known(&self, events: Option<u64>) -> Option<u64> {
        events.filter(|n| *n > 0 || !self.decoder.keeps_text())
    }

    fn observe(&mut self, chunk: &[u8]) {
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT_BYTES);
        let Self {
            decoder,
            meter,
            text,
            decoded_bytes,
        } = self;
        let decoded = decoder.push(chunk, |piece| {
            meter.observe(piece);
            text.extend_from_slice(piece);
        });
        *decoded_bytes += text.len() as u64;
        if decoded.is_err() {
            *meter = Meter::default();
            text.clear();
        }
    }
}

mod id;
mod measured;
#[cfg(test)]
mod tests;
