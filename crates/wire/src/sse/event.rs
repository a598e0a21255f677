//! One whole event: its data, and what of interest the data holds.
//!
//! Not here: finding its end (`boundary`), what becomes of it (`scan`).

use std::sync::LazyLock;

use memchr::{memchr2, memmem::Finder};

use super::text::text_bytes;
use crate::dialect::{Name, name, names};
use crate::json::{self, Found, Interest, Interests, Kind, Member, Repeat, Want};
use crate::usage::{Report, USAGE_LIMIT_BYTES};

/// What the names of all usage objects begin with.
static USAGE_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage"));
static ERROR_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));

const fn place(path: &'static str) -> Interest {
    Interest::new(path, Want::Place, Repeat::LastWins)
}

const fn usage(path: &'static str) -> Interest {
    Interest::new(path, Want::Raw(USAGE_LIMIT_BYTES), Repeat::LastWins)
}

const USAGE: [&str; 4] = names(Name::EventUsage);
const BEGINNING_USAGE: &str = name(Name::BeginningUsage);
const ERROR: [&str; 3] = names(Name::EventError);
const END_MARK: &str = name(Name::EndMark);

const CHOICES: usize = 0;
const USAGES: [usize; 5] = [1, 2, 3, 4, BEGINNING];
const BEGINNING: usize = 5;
const ERRORS: [usize; 3] = [6, 7, 8];
const TYPE: usize = 9;

pub(super) static ASKED: Interests = Interests::new(&[
    place(name(Name::EventChoices)),
    usage(USAGE[0]),
    usage(USAGE[1]),
    usage(USAGE[2]),
    usage(USAGE[3]),
    usage(BEGINNING_USAGE),
    place(ERROR[0]),
    place(ERROR[1]),
    place(ERROR[2]),
    Interest::new("type", Want::Raw(64), Repeat::LastWins),
    place("response"),
    place("message"),
    place("delta"),
]);

/// What an event is to the stream's reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Bytes of data, without field names and line ends; the end mark has none.
    pub(super) data_bytes: u64,
    /// Bytes of text in it, where they were looked for.
    pub(super) text_bytes: Option<u64>,
    /// Whether there is data that is not the end mark.
    pub(super) has_data: bool,
    pub(super) is_done: bool,
    pub(super) is_error: bool,
    /// In a box, as most events have none and all are moved.
    pub(super) usage: Option<Box<Report>>,
    /// That usage is of a stream's beginning.
    pub(super) is_beginning: bool,
    /// It holds a usage object beside an empty list of choices: it exists only to report usage.
    pub(super) only_usage: bool,
}

impl Event {
    /// Reads an event; `only_line` is its one line, where that is known. With more bytes of data than `plain_bytes` its text is measured.
    pub(super) fn read(bytes: &[u8], only_line: Option<&[u8]>, plain_bytes: u64) -> Self {
        let mut event = Self::default();
        let mut lines = 0_u32;
        let mut last: &[u8] = b"";
        let mut take = |data: &'_ [u8]| {
            lines += 1;
            event.data_bytes += data.len() as u64;
        };
        match only_line {
            Some(line) => {
                if let Some(data) = data_of(line) {
                    take(data);
                    last = data;
                }
            }
            None => {
                for data in DataLines(bytes) {
                    take(data);
                    last = data;
                }
            }
        }
        if lines == 0 {
            return event;
        }
        if lines == 1 && last.trim_ascii() == END_MARK.as_bytes() {
            return Self {
                is_done: true,
                ..Self::default()
            };
        }
        event.has_data = true;
        if event.data_bytes > plain_bytes {
            event.measure(bytes);
        }
        if ERROR_KEY.find(bytes).is_some() || tells_usage(bytes) {
            event.decode(bytes);
        }
        event
    }

    /// Few events are this long.
    #[cold]
    fn measure(&mut self, event: &[u8]) {
        self.text_bytes = Some(DataLines(event).map(text_bytes).sum());
    }

    /// Reads the data, if it is JSON. Few events have usage, and what is rare is no part of what reads each.
    #[cold]
    #[inline(never)]
    fn decode(&mut self, event: &[u8]) {
        let mut scanner = json::Scanner::new(&ASKED);
        let mut is_read = true;
        for (line, data) in DataLines(event).enumerate() {
            let line_end: &[u8] = if line > 0 { b"\n" } else { b"" };
            if scanner
                .push(line_end)
                .and_then(|()| scanner.push(data))
                .is_err()
            {
                is_read = false;
                break;
            }
        }
        match scanner.finish() {
            Ok(found) if is_read => self.take(found),
            // Only what stands in one may be more than a text that has the name.
            _ if begins_object(event) && tells_usage(event) => {
                self.usage = Some(Box::new(Report::UNREAD));
            }
            _ => {}
        }
    }

    pub(super) fn take(&mut self, found: &Found) {
        let present = |&at: &usize| found.member(at).filter(|m| m.kind != Kind::Null);
        // Some engines have the member in every event, with nothing in it.
        let says = |m: &Member| match m.kind {
            Kind::Object => !m.empty,
            Kind::String => m.value.len() > 2,
            _ => false,
        };
        self.is_error = ERRORS.iter().filter_map(present).any(says)
            || present(&TYPE).is_some_and(|kind| found.text(kind).as_deref() == Some("error"));
        let mut usages = USAGES.iter();
        let Some((at, usage)) = usages.find_map(|at| Some((*at, present(at)?))) else {
            return;
        };
        self.is_beginning = at == BEGINNING;
        self.usage = Some(Box::new(if usage.cut {
            Report::UNREAD
        } else {
            Report::read(found.raw(usage))
        }));
        let is_empty_list = |m: &Member| m.kind == Kind::Array && m.empty;
        self.only_usage =
            usage.kind == Kind::Object && found.member(CHOICES).is_some_and(is_empty_list);
    }
}

/// Whether its data is to be an object.
fn begins_object(event: &[u8]) -> bool {
    let data = DataLines(event).next();
    data.is_some_and(|data| data.trim_ascii_start().starts_with(b"{"))
}

/// Whether an event has usage. Some engines tell in every event that it has none.
#[inline]
fn tells_usage(event: &[u8]) -> bool {
    let mut places = USAGE_KEY.find_iter(event);
    places.any(|at| !is_untold(event.get(at..).unwrap_or_default()))
}

/// Whether here begins a member that says that no usage is told.
#[inline]
pub(super) fn is_untold(from: &[u8]) -> bool {
    from.starts_with(b"\"usage\":null") || from.starts_with(b"\"usage\": null")
}

/// The values of an event's `data` fields.
pub(super) struct DataLines<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for DataLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.0.is_empty() {
            let end = memchr2(b'\n', b'\r', self.0).unwrap_or(self.0.len());
            let (line, rest) = self.0.split_at_checked(end)?;
            self.0 = rest.split_first().map_or(rest, |(_, after)| after);
            if let Some(data) = data_of(line) {
                return Some(data);
            }
        }
        None
    }
}

/// The value of a `data` field.
#[inline]
pub(super) fn data_of(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [b':', b' ', data @ ..] | [b':', data @ ..] => Some(data),
        [] => Some(b""),
        _ => None,
    }
}
