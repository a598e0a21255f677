//! Recorded sessions to sessions that engines take.
//!
//! | case | paper | strict |
//! |---|---|---|
//! | role `function` | role `user` | role `tool`, its call in `tool_calls` |
//! | `functions` | dropped | `tools`, without members that are no JSON Schema; `Finish` is added where it is called |
//! | content `null` | empty | `null` stays beside `tool_calls`, else empty |
//! | a call without its answer | left | the session is cut at its last whole turn |
//! | ids of calls that are missing or occur twice | left | `call_<digest of the session>_<turn>_<k>` |
//! | content in parts | flattened to text | kept; images are dropped for models that see none |
//! | neighbours of one role | left | left, or merged |
//! | arguments as an object | left | text in JSON; what is no object is wrapped in one |
//! | long observations | left | left, or capped |
//!
//! Beyond that table, strict also renames functions and participants whose names the API refuses, drops tools that it
//! refuses, and drops answers that no call waits for (or makes them the user's, where none waits at all).
//! Invariant: repair is idempotent; every prompt of a strictly repaired session satisfies what strict engines check.
//! Every change is counted under a name that stays.
//! Not here: reading (`reader`), the bytes of requests (`unroll`).

mod merge;
mod messages;
mod observation;
mod paper;
mod prompts;
mod tools;

use std::collections::BTreeMap;

use crate::conversation::Conversation;

pub use observation::Cap;

/// How much is repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// So that strict engines take every request.
    #[default]
    Strict,
    /// As the paper did: what engines of that time took.
    Paper,
}

/// What happens to images, sounds and files in content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// They are dropped: the target reads only text.
    #[default]
    Drop,
    /// They are kept.
    Keep,
}

/// What to do; all but `mode` is for [`Mode::Strict`] alone.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// How much is repaired.
    pub mode: Mode,
    /// What happens to images.
    pub media: Media,
    /// Whether neighbours of one role become one message, for templates that want roles in turn.
    pub merge: bool,
    /// The most that one observation may hold.
    pub cap: Option<Cap<'a>>,
}

/// How often each kind of repair was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs(BTreeMap<&'static str, u64>);

impl Repairs {
    /// How often this kind was made.
    #[must_use]
    pub fn of(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// All kinds that were made, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }

    /// Whether nothing was changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the counts of another session.
    pub fn absorb(&mut self, other: &Self) {
        other.iter().for_each(|(kind, count)| self.add(kind, count));
    }

    fn count(&mut self, kind: &'static str) {
        self.add(kind, 1);
    }

    fn add(&mut self, kind: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(kind).or_default() += times;
        }
    }
}

/// Repairs one session. One that has no decisions afterwards has nothing to replay.
#[must_use]
pub fn repair(session: Conversation, options: &Options<'_>) -> (Conversation, Repairs) {
    let mut repairs = Repairs::default();
    let session = match options.mode {
        Mode::Paper => paper::repair(session, &mut repairs),
        Mode::Strict => strict(session, options, &mut repairs),
    };
    (session, repairs)
}

fn strict(mut session: Conversation, options: &Options<'_>, repairs: &mut Repairs) -> Conversation {
    messages::repair(&mut session, options.media, repairs);
    tools::repair(&mut session, repairs);
    session = prompts::repair(session, repairs);
    if options.merge {
        session = merge::repair(session, repairs);
    }
    if let Some(cap) = &options.cap {
        observation::cap(&mut session, cap, repairs);
    }
    session
}

#[cfg(test)]
mod tests;
