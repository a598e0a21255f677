//! The fast way past a value that nobody looks into: token by token, capturing nothing.
//!
//! Invariant: it goes only as far as it is sure. Where it stops, the scanner goes on byte by byte from the
//! place and state given, and finds the same as if it had come all the way itself; faults are found there.
//! Not here: members of interest (`scan`, `whole`).

use super::container_stack::{Above, ContainerStack};
use super::marks::Marks;
use super::repeat_match::RepeatMatch;
use super::state::State;
use super::token::{next_byte, scalar_end, stands};

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
    marks: &mut Marks,
    from: usize,
    state: State,
    stack: &mut ContainerStack,
    floor: u32,
) -> Skipped {
    let Some(mut inner) = stack.above(floor) else {
        return stop(from, state);
    };
    let mut at = from;
    let mut after = state == State::After;
    // What a value that is none will be blamed for not being.
    let mut wanted = State::Value;
    let stop = 'read: loop {
        if !after {
            match next_byte(chunk, &mut at) {
                Some(b'"') => match marks.string_end(chunk, at + 1) {
                    Ok(end) => at = end,
                    Err(inside) => break stop(inside, State::String),
                },
                Some(b'{') if inner.open(true) => {
                    at += 1;
                    wanted = State::Value;
                    if next_byte(chunk, &mut at) == Some(b'}') {
                        inner.close();
                        at += 1;
                    } else {
                        match members(chunk, marks, at, inner, State::FirstKey) {
                            Ok(past) => (at, after) = past,
                            Err(stop) => break stop,
                        }
                        if !after {
                            continue;
                        }
                    }
                }
                Some(b'[') if inner.open(false) => {
                    at += 1;
                    if next_byte(chunk, &mut at) != Some(b']') {
                        wanted = State::FirstElement;
                        continue;
                    }
                    inner.close();
                    at += 1;
                }
                _ => match scalar_end(chunk, at) {
                    Some(end) => at = end,
                    None => break stop(at, wanted),
                },
            }
        }
        wanted = State::Value;
        loop {
            if inner.is_closed() {
                break 'read stop(at, State::After);
            }
            match next_byte(chunk, &mut at) {
                Some(b',') if inner.in_object() => {
                    match members(chunk, marks, at + 1, inner, State::Key) {
                        Ok(past) => (at, after) = past,
                        Err(stop) => break 'read stop,
                    }
                    if !after {
                        break;
                    }
                    continue;
                }
                Some(b',') => {
                    (at, after) = (at + 1, false);
                    break;
                }
                Some(b'}') if inner.in_object() => {}
                Some(b']') if !inner.in_object() => {}
                _ => break 'read stop(at, State::After),
            }
            inner.close();
            at += 1;
        }
    };
    stack.put_back(floor, inner);
    stop
}

/// Goes past the name that starts at `from`, and on from name to name for as long as their values are
/// strings, in this object and in those that follow it in a list, with no blank between. Gives where to go on
/// and whether that is after a value; else one starts there.
///
/// A list of 150 short turns takes 21,900 instructions here, and 36,800 token by token.
#[inline(always)]
fn members(
    chunk: &[u8],
    marks: &mut Marks,
    from: usize,
    inner: Above,
    state: State,
) -> Result<(usize, bool), Skipped> {
    let mut at = from;
    if next_byte(chunk, &mut at) != Some(b'"') {
        return Err(stop(at, state));
    }
    let mut repeats = RepeatMatch::default();
    loop {
        let mut end = marks.string_end(chunk, at + 1).map_err(|inside| Skipped {
            at: inside,
            state: State::String,
            in_key: true,
        })?;
        if !stands(chunk, end, b":\"") {
            return match next_byte(chunk, &mut end) {
                Some(b':') => Ok((end + 1, false)),
                _ => Err(stop(end, State::Colon)),
            };
        }
        let mut start = end + 2;
        let end = loop {
            let end = marks
                .string_end(chunk, start)
                .map_err(|inside| stop(inside, State::String))?;
            match repeats.after(chunk, start..end) {
                Some(next) => start = next,
                None => break end,
            }
        };
        if stands(chunk, end, b",\"") {
            at = end + 1;
        } else if inner.in_listed_object() && stands(chunk, end, b"},{\"") {
            at = end + 3;
        } else {
            return Ok((end, true));
        }
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
