//! The text that a tool takes, out of the one argument of the function that a backend knows it as, while it comes.
//!
//! Invariant: what is told does not depend on where the pieces are cut. What is no such argument is told as it came, at its end.

use crate::raw::Raw;

/// No beginning is longer.
const BEGINS_BYTES: usize = 64;

/// Reads `{"input":"…"}`.
#[derive(Debug, Default)]
pub(super) struct Freeform {
    state: State,
    /// What has come and is not told: the beginning, an escape, or all of it.
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the text.
    #[default]
    Begins,
    Text,
    /// In an escape of the text.
    Escape,
    /// Behind the text.
    Ends,
    Over,
    /// It is something else, read when all of it is there.
    Other,
}

impl Freeform {
    /// Reads a piece; what it says of the text is put behind `told`.
    pub(super) fn push(&mut self, piece: &str, told: &mut String) {
        let mut chars = piece.chars();
        while let Some(c) = chars.next() {
            match self.state {
                State::Other => {
                    self.held.push(c);
                    self.held.push_str(chars.as_str());
                    return;
                }
                State::Begins => {
                    self.held.push(c);
                    self.state = begins(&self.held);
                    if self.state == State::Text {
                        self.held.clear();
                    }
                }
                State::Text => match c {
                    '"' => self.state = State::Ends,
                    '\\' => {
                        self.held.push(c);
                        self.state = State::Escape;
                    }
                    c => told.push(c),
                },
                State::Escape => self.escape(c, told),
                State::Ends if c == '}' => self.state = State::Over,
                // A second argument, which nobody asked for.
                State::Ends | State::Over => {}
            }
        }
    }

    /// One more of an escape. Two of them that are one character are one.
    fn escape(&mut self, c: char, told: &mut String) {
        self.held.push(c);
        let escape = self.held.as_bytes();
        let is_open = match escape {
            [b'\\', b'u', digits @ ..] if digits.len() < 4 => true,
            // The first half of a pair.
            [
                b'\\',
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a' | b'A' | b'b' | b'B',
                _,
                _,
            ] => true,
            [_, _, _, _, _, _, rest @ ..] if !rest.is_empty() && rest.len() < 6 => {
                r"\u".as_bytes().starts_with(rest.get(..2).unwrap_or(rest))
            }
            _ => false,
        };
        if is_open && c != '"' {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.state = State::Text;
        let read: Result<String, _> = serde_json::from_str(&format!("\"{held}\""));
        match (read, held.split_at_checked(6)) {
            (Ok(text), _) => told.push_str(&text),
            // Half of a pair, and what follows it.
            (Err(_), Some((_, rest))) => {
                told.push(char::REPLACEMENT_CHARACTER);
                self.push(rest, told);
            }
            // No escape of JSON's: as it came.
            (Err(_), None) => match held.strip_suffix('"') {
                Some(held) => {
                    told.push_str(held);
                    self.state = State::Ends;
                }
                None => told.push_str(&held),
            },
        }
    }

    /// All has come, or no more will.
    pub(super) fn end(&mut self, told: &mut String) {
        let held = std::mem::take(&mut self.held);
        if !matches!(self.state, State::Begins | State::Other) {
            return;
        }
        let read = || {
            let mut members = Raw::read(held.as_bytes())?.object().ok()?;
            members.text("input").ok()?
        };
        match read() {
            Some(input) => told.push_str(&input),
            None => told.push_str(&held),
        }
    }

    /// Whether nothing of it is missing.
    pub(super) fn is_whole(&self) -> bool {
        match self.state {
            State::Over => true,
            State::Other => Raw::read(self.held.as_bytes()).is_some(),
            _ => false,
        }
    }

    /// Bytes that have come and are not told.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }
}

/// How far the beginning of an argument is.
fn begins(held: &str) -> State {
    if held.len() > BEGINS_BYTES {
        return State::Other;
    }
    let mut rest = held.trim_start();
    for token in ["{", "\"input\"", ":", "\""] {
        if let Some(behind) = rest.strip_prefix(token) {
            rest = behind.trim_start();
            continue;
        }
        return match token.starts_with(rest) {
            true => State::Begins,
            false => State::Other,
        };
    }
    State::Text
}

#[cfg(test)]
mod tests;
