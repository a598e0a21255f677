//! A body that is cut into its messages and tools without reading them.
//!
//! A value's end is where its quotes and brackets say, which is right for any value that is JSON. So the cuts need not be
//! checked: if each part is JSON, and what stands between them is as the grammar has it, then so is the whole.
//! Invariant: all but messages and tools is checked here; those are the caller's to check.
//! Not here: what a message counts (`known_messages`).

use memchr::memchr2;

use super::MEMBER_LEVELS;
use super::checked::is_json;
use prompts::tree::{Member, Tree};

/// A body in parts.
#[derive(Default)]
pub(super) struct Body<'a> {
    pub(super) messages: Vec<&'a str>,
    pub(super) tools: Vec<&'a str>,
    /// There is a list of tools, be it empty.
    pub(super) has_tools: bool,
    /// The member, unless it is null.
    pub(super) system: Option<Tree<'a>>,
    /// There is a member of this name, and it is not null.
    pub(super) has_functions: bool,
    /// What else a conversation's shape goes by.
    pub(super) arguments: Vec<Member<'a>>,
}

/// Members that a conversation's shape goes by, besides its messages and tools: in each dialect those that `dialect::read` and
/// `features::of_body` look at where there is no template.
const ARGUMENTS: [&str; 8] = [
    "add_generation_prompt",
    "add_special_tokens",
    "continue_final_message",
    "documents",
    "output_config",
    "reasoning_effort",
    "thinking",
    "tool_choice",
];

impl<'a> Body<'a> {
    /// None for what is no object with messages, has one of these members twice, a name with an escape, or is to be cut.
    pub(super) fn cut(body: &'a [u8]) -> Option<Self> {
        let mut rest = Rest { body, at: 0 };
        let mut parts = Self::default();
        let (mut messages, mut tools, mut system, mut functions) = (None, None, None, None);
        rest.expect(b'{')?;
        loop {
            let name = rest.name()?;
            rest.expect(b':')?;
            match name {
                "messages" => once(&mut messages, rest.list()?)?,
                "tools" => once(&mut tools, rest.list_or_null()?)?,
                "system" => once(&mut system, rest.tree()?)?,
                // What is cut is the tree's to say.
                "truncate_prompt_tokens" => return None,
                "functions" => once(&mut functions, rest.tree()?)?,
                _ if ARGUMENTS.contains(&name) => {
                    if parts.arguments.iter().any(|(known, _)| known == name) {
                        return None;
                    }
                    parts.arguments.push((name.into(), rest.tree()?));
                }
                _ if is_json(rest.value()?, MEMBER_LEVELS) => {}
                _ => return None,
            }
            if !rest.take(b',') {
                break;
            }
        }
        rest.expect(b'}')?;
        rest.skip_blanks();
        if rest.at != body.len() {
            return None;
        }
        parts.messages = messages?;
        let tools = tools.flatten();
        parts.has_tools = tools.is_some();
        parts.tools = tools.unwrap_or_default();
        parts.system = system.filter(|it| *it != Tree::Null);
        parts.has_functions = functions.is_some_and(|it| it != Tree::Null);
        Some(parts)
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// What is left of a body.
struct Rest<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn skip_blanks(&mut self) {
        while matches!(self.body.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Whether this byte is next, which it then is no more.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.body.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    /// The name of a member, without escapes.
    fn name(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let rest = self.body.get(self.at..)?;
        let name = rest.get(..memchr2(b'"', b'\\', rest)?)?;
        self.at += name.len();
        self.expect(b'"')?;
        let is_plain = name.iter().all(|byte| *byte >= b' ');
        std::str::from_utf8(name).ok().filter(|_| is_plain)
    }

    /// The bytes of a value, if it is one.
    fn value(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let from = self.at;
        self.at = value_end(self.body, from)?;
        std::str::from_utf8(self.body.get(from..self.at)?).ok()
    }

    fn tree(&mut self) -> Option<Tree<'a>> {
        Tree::read(self.value()?, MEMBER_LEVELS).ok()
    }

    /// The values in a list.
    fn list(&mut self) -> Option<Vec<&'a str>> {
        let mut values = Vec::new();
        self.expect(b'[')?;
        if self.take(b']') {
            return Some(values);
        }
        loop {
            values.push(self.value()?);
            if !self.take(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Some(values)
    }

    /// The values in a list; none in place of it where null is.
    fn list_or_null(&mut self) -> Option<Option<Vec<&'a str>>> {
        self.skip_blanks();
        if self.body.get(self.at) == Some(&b'n') {
            return (self.value()? == "null").then_some(None);
        }
        self.list().map(Some)
    }
}

/// Where a value ends that begins here, if it is one.
fn value_end(body: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let mut depth = 0_usize;
    loop {
        match body.get(at)? {
            b'"' => at = string_end(body, at + 1)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            // Blanks, commas and colons are within a list or an object; a number or a name ends before them.
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' if depth > 0 => {
                at += 1;
                continue;
            }
            _ => at = scalar_end(body, at)?,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The place behind the closing quote.
fn string_end(body: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr2(b'"', b'\\', body.get(at..)?)?;
        if body.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The place behind a number, `true`, `false` or `null`.
fn scalar_end(body: &[u8], from: usize) -> Option<usize> {
    let rest = body.get(from..)?;
    let length = rest
        .iter()
        .position(|byte| !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E'))?;
    (length > 0).then_some(from + length)
}
