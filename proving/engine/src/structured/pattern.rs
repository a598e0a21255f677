//! Strings that a regular expression matches, and the expressions behind `format`.
//!
//! Classes are made of printable ASCII where they hold any, so that what other engines of expressions think of `\d`
//! beyond ASCII does not matter.
//! Invariant: what [`Pattern::make`] returns is matched. Look-around and references are not read: they are refused.
//! Reading, making and matching are paid for in steps, of which the most are known before.
//! Not here: where a schema has patterns (`node`).

use std::fmt;

use experiment::random::Rng;
use regex::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::work::Work;

/// Steps of reading a byte of an expression, and of each state.
const COST_OF_BYTE: usize = 100;
const COST_OF_STATE: usize = 30;
/// Further repetitions than the fewest, where more are allowed.
const MORE: u64 = 4;
/// Longest text that is made.
const MAX_BYTES: usize = 1 << 16;
/// Longest expression, in bytes.
const MAX_EXPRESSION: usize = 1 << 12;
/// Largest expression once its repetitions are written out, in states (see [`states`]).
const MAX_STATES: u64 = 40_000;
/// Largest program that an expression may become.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

pub(crate) struct Pattern {
    hir: Hir,
    /// Decides whether a text is matched.
    check: Regex,
    states: u64,
}

impl Pattern {
    /// Matches texts as a whole.
    pub(super) fn whole(pattern: &str, work: &Work) -> Result<Self, String> {
        Self::new(pattern, &format!("^(?:{pattern})$"), work)
    }

    /// Matches texts of which some part matches, as a schema's `pattern` does.
    pub(super) fn search(pattern: &str, work: &Work) -> Result<Self, String> {
        Self::new(pattern, pattern, work)
    }

    fn new(pattern: &str, check: &str, work: &Work) -> Result<Self, String> {
        if pattern.len() > MAX_EXPRESSION {
            return Err(format!("must not be longer than {MAX_EXPRESSION} bytes"));
        }
        work.spend(COST_OF_BYTE * (1 + pattern.len()))
            .ok_or_else(Work::refusal)?;
        if pattern.contains('\0') {
            return Err("must not contain a NUL character".to_owned());
        }
        let hir = ParserBuilder::new().nest_limit(100).build().parse(pattern);
        let hir = hir.map_err(|why| last_line(&why.to_string()))?;
        let states = states(&hir);
        if states > MAX_STATES {
            return Err(format!(
                "must not have more than {MAX_STATES} states with its repetitions written out"
            ));
        }
        work.spend(COST_OF_STATE * states as usize)
            .ok_or_else(Work::refusal)?;
        let check = regex::RegexBuilder::new(check)
            .size_limit(MAX_PROGRAM_BYTES)
            .build()
            .map_err(|why| last_line(&why.to_string()))?;
        Ok(Self { hir, check, states })
    }

    /// Whether a text is matched; none is where no steps are left.
    pub(super) fn matches(&self, text: &str, work: &Work) -> bool {
        // Where its automaton does not fit into memory, every state may be looked at for every byte, quickly.
        let steps = text.len() as u64 * (16 + self.states) / 16;
        work.spend(20 + steps as usize).is_some() && self.check.is_match(text)
    }

    /// A text that is matched, or `None` where an assertion within the expression is not met this time.
    pub(super) fn make(&self, rng: &mut Rng, work: &Work) -> Option<String> {
        self.make_longer(rng, 0, work)
    }

    /// The same, longer where it may be the more often it was `tried`.
    pub(super) fn make_longer(&self, rng: &mut Rng, tried: usize, work: &Work) -> Option<String> {
        let mut writer = Writer {
            more: MORE << (tried / 8).min(6),
            text: String::new(),
            work,
        };
        writer.write(&self.hir, rng)?;
        Some(writer.text).filter(|text| self.matches(text, work))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.check.as_str())
    }
}

/// What the library says after it has shown the place.
fn last_line(why: &str) -> String {
    why.lines().last().unwrap_or_default().trim().to_owned()
}

struct Writer<'a> {
    /// Further repetitions than the fewest, at most.
    more: u64,
    text: String,
    work: &'a Work,
}

impl Writer<'_> {
    fn write(&mut self, hir: &Hir, rng: &mut Rng) -> Option<()> {
        self.work.spend(2)?;
        if self.text.len() > MAX_BYTES {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                self.text.push_str(std::str::from_utf8(&literal.0).ok()?);
            }
            HirKind::Class(class) => {
                self.work.spend(10 + 4 * ranges(class))?;
                self.text.push(one_of(class, rng)?);
            }
            HirKind::Repetition(repetition) => {
                let least = u64::from(repetition.min);
                let most = repetition.max.map_or(u64::MAX, u64::from);
                let more = most.saturating_sub(least).min(self.more);
                for _ in 0..least + rng.below(more + 1) {
                    self.write(&repetition.sub, rng)?;
                }
            }
            HirKind::Capture(capture) => self.write(&capture.sub, rng)?,
            HirKind::Concat(all) => all.iter().try_for_each(|one| self.write(one, rng))?,
            HirKind::Alternation(all) => {
                self.write(all.get(rng.below(all.len() as u64) as usize)?, rng)?;
            }
        }
        Some(())
    }
}

/// The states that an expression has with its repetitions written out, about: one for each byte of a text, and for each
/// range of a class.
fn states(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(class) => ranges(class) as u64,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            (1 + states(&repetition.sub)).saturating_mul(u64::from(times).max(1))
        }
        HirKind::Capture(capture) => 1 + states(&capture.sub),
        HirKind::Concat(all) | HirKind::Alternation(all) => {
            let each = all.iter().map(states);
            each.fold(1, u64::saturating_add)
        }
    }
}

fn ranges(class: &Class) -> usize {
    match class {
        Class::Unicode(class) => class.ranges().len(),
        Class::Bytes(class) => class.ranges().len(),
    }
}

/// A character of the class: of letters and digits if it has any, else of printable ASCII, else any.
fn one_of(class: &Class, rng: &mut Rng) -> Option<char> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class
            .ranges()
            .iter()
            .map(|range| (u32::from(range.start()), u32::from(range.end())))
            .collect(),
        Class::Bytes(class) => class
            .ranges()
            .iter()
            .map(|range| (u32::from(range.start()), u32::from(range.end())))
            .collect(),
    };
    let within = |low: char, high: char| -> Vec<(u32, u32)> {
        let (low, high) = (u32::from(low), u32::from(high));
        let cut = ranges.iter().map(|(a, b)| ((*a).max(low), (*b).min(high)));
        cut.filter(|(a, b)| a <= b).collect()
    };
    let letters = [('0', '9'), ('A', 'Z'), ('a', 'z')].map(|(low, high)| within(low, high));
    let letters = letters.concat();
    let kept = if !letters.is_empty() {
        letters
    } else {
        match within(' ', '~') {
            printable if !printable.is_empty() => printable,
            _ => ranges,
        }
    };
    let (low, high) = *kept.get(rng.below(kept.len() as u64) as usize)?;
    let chosen = low + u32::try_from(rng.below(u64::from(high - low) + 1)).ok()?;
    char::from_u32(chosen).or_else(|| char::from_u32(low))
}

/// Of a format: an expression by which texts are made, and a wider one by which they are known.
pub(super) fn of_format(format: &str) -> Option<(&'static str, &'static str)> {
    const TIME: &str = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+-](0[0-9]|1[0-2]):(00|30))";
    const DAY: &str = "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])";
    const DATE_TIME: &str = "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+-](0[0-9]|1[0-2]):(00|30))";
    const BYTE: &str = r"((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    Some(match format {
        "date" => (DAY, r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"),
        "time" => (
            TIME,
            r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$",
        ),
        "date-time" => (
            DATE_TIME,
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[tT ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$",
        ),
        "duration" => (
            "P([1-9][0-9]?D)?T([1-9]|1[0-9])H[1-9][0-9]?M|P[1-9]W",
            r"^P([0-9]+[YMWD]|T[0-9]+[HMS])[0-9YMWDTHS]*$",
        ),
        "email" => (
            r"[a-z]{3,8}(\.[a-z]{3,8})?@[a-z]{3,8}\.(com|org|net)",
            r"^[^@\s]+@[^@\s]+$",
        ),
        "ipv4" => (BYTE, r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$"),
        "ipv6" => (
            "([1-9a-f][0-9a-f]{0,3}:){7}[1-9a-f][0-9a-f]{0,3}",
            r"^[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$",
        ),
        "hostname" => (
            r"[a-z]{3,8}(\.[a-z]{3,8}){0,2}\.(com|org|net)",
            r"^[A-Za-z0-9.-]+$",
        ),
        "uuid" => (
            "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
            r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        ),
        "uri" => (
            r"https://[a-z]{3,8}\.(com|org|net)(/[a-z0-9]{1,8}){0,3}",
            r"^[A-Za-z][A-Za-z0-9+.-]*:\S*$",
        ),
        "uri-reference" => (r"(/[a-z0-9]{1,8}){1,3}", r"^\S*$"),
        "uri-template" => (
            r"https://[a-z]{3,8}\.(com|org|net)/\{[a-z]{1,8}\}",
            r"^\S*$",
        ),
        "json-pointer" => (r"(/[a-z0-9]{1,8}){1,3}", r"^(/.*)?$"),
        "relative-json-pointer" => (
            r"[0-9](/[a-z0-9]{1,8}){0,2}",
            r"^(0|[1-9][0-9]*)(#|(/.*)?)$",
        ),
        _ => return None,
    })
}
