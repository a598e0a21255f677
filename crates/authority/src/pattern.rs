//! A regular expression, and what it costs to look for it.
//!
//! An expression whose automaton fits is one table: a byte of text is one look into it, whatever the text. Another can
//! take a look at each of its states for each byte, so its cost is bytes times its compiled size.
//! Invariant: what a search costs is known before it begins, and is a matter of the expression and the text alone,
//! never of what was looked for before.

use regex::{Regex, RegexBuilder};
use regex_automata::dfa::{Automaton, dense};
use regex_automata::nfa::thompson;
use regex_automata::{Input, util::syntax};

/// The most that an automaton takes, bytes.
const TABLE_BYTES_MAX: usize = 1 << 20;
/// The most that is worked with while one is made, bytes.
const TABLE_WORK_MAX: usize = 4 << 20;
/// How deep an expression nests.
const NEST_MAX: u32 = 32;
/// What compiling the smallest expression costs, looks.
const COMPILE_LOOKS: usize = 20_000;
/// What a byte of text costs for so many bytes of a compiled expression: one look, as long as a byte of a table takes.
const BYTES_A_LOOK: usize = 2;

/// A compiled regular expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    table: Option<dense::DFA<Vec<u32>>>,
    /// What a byte of text costs, looks.
    looks_a_byte: usize,
}

/// What is wrong with an expression.
#[derive(Debug, Clone)]
pub(crate) enum Unusable {
    /// It takes more when compiled than it may.
    TooLarge,
    /// What is wrong with it, in one line.
    Syntax(String),
}

impl Pattern {
    /// Compiles an expression of a rule, which is read once and asked often.
    pub(crate) fn new(written: &str, bytes_max: usize) -> Result<Self, Unusable> {
        let mut pattern = Self::without_table(written, bytes_max)?;
        let table = dense::Builder::new()
            .syntax(syntax::Config::new().nest_limit(NEST_MAX))
            .configure(
                dense::Config::new()
                    .dfa_size_limit(Some(TABLE_BYTES_MAX))
                    .determinize_size_limit(Some(TABLE_WORK_MAX)),
            )
            .build(written);
        if let Ok(table) = table {
            pattern.table = Some(table);
            pattern.looks_a_byte = 1;
        }
        Ok(pattern)
    }

    /// Compiles an expression that a call brought, and takes what that costs before it does.
    ///
    /// # Errors
    /// That of `take`, which has no room left for so many looks.
    pub(crate) fn brought<E>(
        written: &str,
        bytes_max: usize,
        take: impl Fn(usize) -> Result<(), E>,
    ) -> Result<Result<Self, Unusable>, E> {
        take(COMPILE_LOOKS.saturating_add(syntax_looks(written)))?;
        for divisor in [16, 4, 1] {
            let most = bytes_max / divisor;
            take(most / 2)?;
            if let Some(bytes) = compiled_bytes(written, most) {
                take(bytes.saturating_mul(2))?;
                break;
            }
        }
        Ok(Self::without_table(written, bytes_max))
    }

    fn without_table(written: &str, bytes_max: usize) -> Result<Self, Unusable> {
        let regex = RegexBuilder::new(written)
            .size_limit(bytes_max)
            .nest_limit(NEST_MAX)
            .build();
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Unusable::TooLarge,
            other => Unusable::Syntax(last_line(&other.to_string())),
        })?;
        let bytes = compiled_bytes(written, bytes_max).unwrap_or(bytes_max);
        Ok(Self {
            regex,
            table: None,
            looks_a_byte: 1 + bytes / BYTES_A_LOOK,
        })
    }

    /// What it costs to look through so many bytes once, looks.
    pub(crate) fn looks(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.looks_a_byte)
    }

    /// Each place where it stands, from the start: none over another.
    pub(crate) fn places(&self, text: &str) -> impl Iterator<Item = (usize, usize)> {
        let found = self.regex.find_iter(text);
        found.map(|found| (found.start(), found.end()))
    }

    /// Whether a text has it anywhere.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let found = self
            .table
            .as_ref()
            .map(|table| table.try_search_fwd(&Input::new(text).earliest(true)));
        match found {
            Some(Ok(found)) => found.is_some(),
            Some(Err(_)) | None => self.regex.is_match(text),
        }
    }
}

/// What an expression takes when compiled; `None` where it takes more than `bytes_max`, or is none.
fn compiled_bytes(written: &str, bytes_max: usize) -> Option<usize> {
    let config = thompson::Config::new()
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(bytes_max));
    thompson::Compiler::new()
        .syntax(syntax::Config::new().nest_limit(NEST_MAX))
        .configure(config)
        .build(written)
        .ok()
        .map(|compiled| compiled.memory_usage())
}

/// What reading an expression costs, looks: a class of letters is hundreds of ranges, in any case twice as many.
fn syntax_looks(written: &str) -> usize {
    let a_byte = if written.contains("(?") { 600 } else { 60 };
    let classes = written.matches(['\\', '[']).count();
    let classes = classes.saturating_mul(if a_byte == 600 { 80_000 } else { 8_000 });
    written.len().saturating_mul(a_byte).saturating_add(classes)
}

/// The library draws a picture of what is wrong, and says it below.
fn last_line(drawn: &str) -> String {
    let last = drawn.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
