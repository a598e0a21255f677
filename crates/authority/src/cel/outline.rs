//! How deep an expression can nest, found before it is parsed: the parser's tree, ours, and the walks over both take
//! stack by depth.
//!
//! Invariant: never less than the depth of the tree, whatever the text; strings and comments count nothing.

use super::DEPTH_MAX;

/// What is wrong with the shape of an expression.
pub(super) fn fault(text: &str) -> Option<String> {
    let depth = Outline::of(text.as_bytes());
    (depth > DEPTH_MAX).then(|| {
        format!(
            "nests {depth} deep, brackets and chains of operators together; at most {DEPTH_MAX}: \
             make two rules of it, or a list with `in`"
        )
    })
}

/// One level of brackets.
#[derive(Default)]
struct Level {
    /// Links of the chain that is being read: `a.b.c`, `1 + 2 + 3`.
    chain: usize,
    /// Ternaries: each has the next one inside.
    choices: usize,
}

#[derive(Default)]
struct Outline {
    outer: Vec<Level>,
    level: Level,
    /// The sum over `outer`, each with its bracket.
    above: usize,
    deepest: usize,
}

impl Outline {
    fn of(text: &[u8]) -> usize {
        let mut outline = Self::default();
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let rest = text.get(at..).unwrap_or_default();
            at += match byte {
                b'"' | b'\'' => string_bytes(rest, is_raw(text.get(..at).unwrap_or_default())),
                b'/' if rest.starts_with(b"//") => line_bytes(rest),
                _ => {
                    outline.take(byte, rest);
                    1
                }
            };
        }
        outline.deepest
    }

    fn take(&mut self, byte: u8, rest: &[u8]) {
        match byte {
            b'(' | b'[' | b'{' => self.open(),
            b')' | b']' | b'}' => self.close(),
            b',' | b':' => self.level.chain = 0,
            // The grammar balances chains of `&&` and of `||`.
            b'&' | b'|' => self.level.chain = 0,
            b'?' => {
                self.level.chain = 0;
                self.level.choices += 1;
            }
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'<' | b'>' | b'=' => {
                self.level.chain += 1;
            }
            b'i' if rest.starts_with(b"in") => self.level.chain += 1,
            _ => {}
        }
        self.deepest = self.deepest.max(self.above + self.level.depth());
    }

    /// A bracket is a link itself: `f(1)(2)`, `a[0][0]`.
    fn open(&mut self) {
        self.level.chain += 1;
        let level = std::mem::take(&mut self.level);
        self.above += level.depth();
        self.outer.push(level);
    }

    fn close(&mut self) {
        if let Some(level) = self.outer.pop() {
            self.above -= level.depth();
            self.level = level;
        }
    }
}

impl Level {
    fn depth(&self) -> usize {
        self.chain + self.choices
    }
}

/// Whether the quote after this text begins a raw string: it follows `r`, with a `b` perhaps.
fn is_raw(before: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let name = before.iter().rev().take_while(|byte| is_name(byte)).count();
    let prefix = before.get(before.len() - name..).unwrap_or_default();
    matches!(prefix, [b'r' | b'R'] | [b'b' | b'B', b'r' | b'R'])
}

/// The length of the string at the start, quotes included; all that is left when it has no end.
fn string_bytes(text: &[u8], raw: bool) -> usize {
    let quote = text.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let quote = if text.starts_with(&triple) {
        &triple
    } else {
        quote
    };
    let mut at = quote.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(quote) {
            return at + quote.len();
        }
        at += if !raw && rest.starts_with(b"\\") {
            2
        } else {
            1
        };
    }
    text.len()
}

fn line_bytes(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.unwrap_or(text.len())
}
