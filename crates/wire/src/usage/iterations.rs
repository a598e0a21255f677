//! Usage of a message that was made in several goes, each told of apart. The sums above them leave out what was made to shorten the
//! conversation, and what another model advised (<https://platform.claude.com/docs/en/build-with-claude/compaction>).
//!
//! Not here: what of the sums can be true (`judge`), the sums that they take the place of (`read`).

use super::count::Count;
use super::read::{
    CACHE_READ, CACHE_STORED, CACHE_WRITES, COMPLETION_TOKENS, PROMPT_TOKENS, WRITES, details_of,
};
use crate::json::{Kind, Reader};

/// What all of them come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Iterations {
    pub(super) input: Count,
    pub(super) output: Count,
    pub(super) cache_read: Count,
    pub(super) cache_stored: Count,
    pub(super) cache_writes: [Count; 2],
    /// One was made by a model that it names: it is not known at what price.
    pub(super) is_of_another: bool,
}

const INPUT: &[u8] = PROMPT_TOKENS[1].as_bytes();
const OUTPUT: &[u8] = COMPLETION_TOKENS[1].as_bytes();
const READ: &[u8] = CACHE_READ[0].as_bytes();
const STORED: &[u8] = CACHE_STORED[0].as_bytes();
const WRITTEN: &[u8] = CACHE_WRITES.as_bytes();

/// Adds up a list of them; `None` where it has none, or cannot be read.
#[cold]
pub(super) fn iterations(list: &[u8]) -> Option<Iterations> {
    let mut all = Iterations {
        input: Count::ABSENT,
        output: Count::ABSENT,
        cache_read: Count::ABSENT,
        cache_stored: Count::ABSENT,
        cache_writes: [Count::ABSENT; 2],
        is_of_another: false,
    };
    let mut rest = list.strip_prefix(b"[")?.trim_ascii_start();
    while rest.first() == Some(&b'{') {
        rest = all.take_first(rest)?;
    }
    let has_any = all.input != Count::ABSENT && all.output != Count::ABSENT;
    has_any.then_some(all)
}

impl Iterations {
    /// Adds the first of the list; what is behind it.
    fn take_first<'l>(&mut self, list: &'l [u8]) -> Option<&'l [u8]> {
        let mut item = Reader::new(list);
        let (mut names_model, mut is_own) = (false, false);
        let mut more = item.open()?;
        while more {
            let name = item.name()?;
            match &*name {
                INPUT => add(&mut self.input, Count::read(&mut item)?),
                OUTPUT => add(&mut self.output, Count::read(&mut item)?),
                READ => add(&mut self.cache_read, Count::read(&mut item)?),
                STORED => add(&mut self.cache_stored, Count::read(&mut item)?),
                WRITTEN => {
                    let [first, second, _] = details_of(&mut item, WRITES)?;
                    let [five_minutes, hour] = &mut self.cache_writes;
                    add(five_minutes, first);
                    add(hour, second);
                }
                b"model" => names_model = item.value()?.0 == Kind::String,
                b"type" => {
                    is_own = matches!(item.value()?.1, br#""message""# | br#""compaction""#);
                }
                _ => item.pass()?,
            }
            more = item.more()?;
        }
        self.is_of_another |= names_model && !is_own;
        let after = list.get(item.place()..)?.trim_ascii_start();
        Some(
            after
                .strip_prefix(b",")
                .unwrap_or_default()
                .trim_ascii_start(),
        )
    }
}

fn add(sum: &mut Count, more: Count) {
    *sum = match (*sum, more) {
        (sum, Count::ABSENT) => sum,
        (Count::ABSENT, more) => more,
        (Count(sum), Count(more)) if Count(sum).is_readable() && Count(more).is_readable() => {
            Count(sum + more)
        }
        _ => Count::IMPOSSIBLE,
    };
}
