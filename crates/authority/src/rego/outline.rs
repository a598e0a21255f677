//! What can be told of a policy before it is parsed: its size, how deep it nests, its query.
//!
//! To compile takes twice as long with each bracket around a list, and stack with each rule that calls another.

use super::{CHAIN_MAX, DEPTH_MAX, MODULE_BYTES_MAX, MODULES_MAX};
use crate::Fault;

/// What is wrong with a policy at first sight.
pub(super) fn faults(modules: &[(&str, &str)], query: &str) -> Vec<Fault> {
    let module_fault = |(name, text): &(&str, &str)| Some(fault(name, module_says(text)?));
    let mut faults: Vec<Fault> = modules.iter().filter_map(module_fault).collect();
    if modules.len() > MODULES_MAX {
        let says = format!("there are {} modules; at most {MODULES_MAX}", modules.len());
        faults.push(fault(query, says));
    }
    if modules.is_empty() {
        faults.push(fault(query, "there is no module".to_owned()));
    }
    if !is_path(query) {
        let says = "the query is a rule's path, such as data.tollgate.allow".to_owned();
        faults.push(fault(query, says));
    }
    faults
}

fn module_says(text: &str) -> Option<String> {
    if text.len() > MODULE_BYTES_MAX {
        return Some(format!(
            "is {} bytes long; at most {MODULE_BYTES_MAX}",
            text.len()
        ));
    }
    let shape = Shape::of(text.as_bytes());
    if shape.deepest > DEPTH_MAX {
        let deepest = shape.deepest;
        return Some(format!("brackets nest {deepest} deep; at most {DEPTH_MAX}"));
    }
    (shape.longest > CHAIN_MAX).then(|| {
        let longest = shape.longest;
        format!("an expression is a chain of {longest} links; at most {CHAIN_MAX}")
    })
}

/// How deep brackets nest, and how long chains of operators are, outside of strings and comments.
#[derive(Default)]
struct Shape {
    depth: usize,
    deepest: usize,
    chain: usize,
    longest: usize,
    /// The last word was an operator: the end of the line ends nothing.
    in_chain: bool,
    /// A line ended that an operator could still go on with.
    line_ended: bool,
}

impl Shape {
    fn of(text: &[u8]) -> Self {
        let mut shape = Self::default();
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let rest = text.get(at + 1..).unwrap_or_default();
            at += 1 + match byte {
                b'#' => before(rest, b'\n'),
                b'`' => before(rest, b'`') + 1,
                b'"' => string_bytes(rest),
                _ => 0,
            };
            shape.take(byte);
        }
        shape
    }

    fn take(&mut self, byte: u8) {
        match byte {
            b'(' | b'[' | b'{' => self.depth += 1,
            b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        match byte {
            b'\n' => self.line_ended = !self.in_chain,
            b' ' | b'\t' | b'\r' | b'#' => {}
            b';' | b',' | b'{' | b'}' => {
                self.chain = 0;
                self.in_chain = false;
            }
            b'.' | b'[' | b'(' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'=' | b'<'
            | b'>' | b'!' => {
                self.chain += 1;
                self.in_chain = true;
                self.line_ended = false;
            }
            // A new line that goes on with no operator is a new expression.
            _ => {
                if self.line_ended {
                    self.chain = 0;
                }
                self.in_chain = false;
                self.line_ended = false;
            }
        }
        self.deepest = self.deepest.max(self.depth);
        self.longest = self.longest.max(self.chain);
    }
}

fn before(text: &[u8], end: u8) -> usize {
    text.iter()
        .position(|byte| *byte == end)
        .unwrap_or(text.len())
}

/// The length of a string behind its first quote. No string goes over a line's end.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\n' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn fault(rule: &str, says: String) -> Fault {
    let rule = rule.to_owned();
    Fault { rule, says }
}

/// `data.` and names with points between them, two at least: a package's and a rule's.
fn is_path(query: &str) -> bool {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        let first = bytes.next();
        first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let Some(path) = query.strip_prefix("data.") else {
        return false;
    };
    path.split('.').all(is_name) && (2..=16).contains(&path.split('.').count())
}
