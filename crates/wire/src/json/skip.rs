//! The fast way past a value that nobody looks into: token by token, noting nothing.
//!
//! Invariant: it goes only as far as it is sure. Where it stops, the scanner goes on byte by byte from the
//! place and state given, and finds the same as if it had come all the way itself; faults are found there.
//! Not here: members of interest (`scan`, `whole`).

use super::state::{Nest, State};
use super::token::{next_byte, scalar_end, string_end};

/// Where the reader stands after the part that was passed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skipped {
    pub(super) at: usize,
    pub(super) state: State,
    /// Inside of a string: that it is a member's name.
    pub(super) in_key: bool,
}

/// Reads on from a place where a value starts (`Value`) or has ended (`After`), until a value has ended
/// that lies directly in container number `floor`, or as far as whole tokens go.
pub(super) fn skip(
    chunk: &[u8],
    from: usize,
    state: State,
    nest: &mut Nest,
    floor: u32,
) -> Skipped {
    let (mut at, mut inner) = (from, *nest);
    let mut after = state == State::After;
    // What a value that is none will be blamed for not being.
    let mut wanted = State::Value;
    let stop = loop {
        if !after {
            match next_byte(chunk, &mut at) {
                Some(b'"') => match string_end(chunk, at + 1) {
                    Ok(end) => at = end,
                    Err(inside) => break stop(inside, State::String),
                },
                Some(b'{') => {
                    if !inner.open(true) {
                        break stop(at, wanted);
                    }
                    at += 1;
                    if next_byte(chunk, &mut at) == Some(b'}') {
                        inner.close();
                        at += 1;
                    } else {
                        match name_end(chunk, at, State::FirstKey) {
                            Ok(end) => at = end,
                            Err(stop) => break stop,
                        }
                        wanted = State::Value;
                        continue;
                    }
                }
                Some(b'[') => {
                    if !inner.open(false) {
                        break stop(at, wanted);
                    }
                    at += 1;
                    if next_byte(chunk, &mut at) == Some(b']') {
                        inner.close();
                        at += 1;
                    } else {
                        wanted = State::FirstElement;
                        continue;
                    }
                }
                _ => match scalar_end(chunk, at) {
                    Some(end) => at = end,
                    None => break stop(at, wanted),
                },
            }
            if inner.depth == floor {
                break stop(at, State::After);
            }
        }
        (after, wanted) = (true, State::Value);
        match next_byte(chunk, &mut at) {
            Some(b',') if inner.in_object() => match name_end(chunk, at + 1, State::Key) {
                Ok(end) => {
                    (at, after) = (end, false);
                    continue;
                }
                Err(stop) => break stop,
            },
            Some(b',') => {
                (at, after) = (at + 1, false);
                continue;
            }
            Some(b'}') if inner.in_object() => {
                inner.close();
                at += 1;
            }
            Some(b']') if !inner.in_object() => {
                inner.close();
                at += 1;
            }
            _ => break stop(at, State::After),
        }
        if inner.depth == floor {
            break stop(at, State::After);
        }
    };
    *nest = inner;
    stop
}

/// The place after the name that starts at `from` and after its colon.
#[inline(always)]
fn name_end(chunk: &[u8], from: usize, state: State) -> Result<usize, Skipped> {
    let mut at = from;
    if next_byte(chunk, &mut at) != Some(b'"') {
        return Err(stop(at, state));
    }
    let mut end = match string_end(chunk, at + 1) {
        Ok(end) => end,
        Err(inside) => {
            return Err(Skipped {
                at: inside,
                state: State::String,
                in_key: true,
            });
        }
    };
    match next_byte(chunk, &mut end) {
        Some(b':') => Ok(end + 1),
        _ => Err(stop(end, State::Colon)),
    }
}

#[inline]
const fn stop(at: usize, state: State) -> Skipped {
    Skipped {
        at,
        state,
        in_key: false,
    }
}
