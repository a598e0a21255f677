//! Stacks out of `perf script -F comm,ip,sym`, or out of `py-spy record --format raw`, and how often each was seen.
//!
//! Invariant: a stack begins with the name of its thread and ends where the CPU was. Threads that
//! differ by a number at the end of their names are one.
//! Not here: addresses without a name keep none; they are told as unknown, never left out.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

const UNKNOWN: &str = "[unknown]";

/// One step of a stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) kernel: bool,
}

/// How often each stack was seen.
pub(super) type Stacks = BTreeMap<Vec<Frame>, u64>;

/// Reads all samples: a line with the thread's name, a line for each frame from the inside out, an
/// empty line.
pub(super) fn fold(script: &str) -> Stacks {
    let mut stacks = Stacks::new();
    let mut thread: Option<&str> = None;
    let mut frames = Vec::new();
    for line in script.lines().chain([""]) {
        if line.trim().is_empty() {
            if let Some(thread) = thread.take() {
                let root = Frame {
                    name: without_number(thread),
                    kernel: false,
                };
                let stack = [root].into_iter().chain(frames.drain(..).rev());
                *stacks.entry(stack.collect()).or_default() += 1;
            }
            frames.clear();
        } else if line.starts_with(['\t', ' ']) {
            frames.push(frame(line.trim()));
        } else {
            thread = Some(line.trim());
        }
    }
    stacks
}

/// Adds what `py-spy` saw: on each line the functions from the outside in, between semicolons, and how often.
pub(super) fn add_raw(text: &str, stacks: &mut Stacks) {
    for line in text.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let Ok(count) = count.parse::<u64>() else {
            continue;
        };
        let frames = stack.split(';').map(|name| Frame {
            name: name.trim().to_owned(),
            kernel: false,
        });
        *stacks.entry(frames.collect()).or_default() += count;
    }
}

fn frame(line: &str) -> Frame {
    let (address, symbol) = line.split_once(' ').unwrap_or((line, ""));
    Frame {
        name: plain(symbol.trim()),
        // The upper half of the address space; an address that could not be told is all ones.
        kernel: address.len() == 16 && address.starts_with("ffff") && symbol.trim() != UNKNOWN,
    }
}

/// `worker-3` is `worker-*`.
fn without_number(thread: &str) -> String {
    let name = thread.trim_end_matches(|c: char| c.is_ascii_digit());
    if name.len() == thread.len() || name.is_empty() {
        thread.to_owned()
    } else {
        format!("{name}*")
    }
}

/// Without the hash that tells instances of one function apart.
fn plain(symbol: &str) -> String {
    let hash = symbol
        .rsplit_once("::h")
        .filter(|(_, hash)| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let symbol = hash.map_or(symbol, |(name, _)| name);
    if symbol.is_empty() || symbol == UNKNOWN {
        "unknown".into()
    } else {
        symbol.to_owned()
    }
}
