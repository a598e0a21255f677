//! What must cross in neither direction: credentials of clients upstream, those of upstreams to clients.
//!
//! Invariant: all of a message is searched: its first line, names and values of headers, every byte of its body; and all
//! bytes of each connection, whether or not they are a message, in each [`disguise`]. A text that is found is not told, but where it was.

use super::disguise::{self, holds};
use super::{Found, Observed};
use crate::verify::client::Answer;
use crate::verify::suite::{Case, Suite, To};
use crate::verify::upstream::Seen;

/// Fewer bytes of a text are what is told of it anyway.
const LEAST_PART: usize = 4;

pub(super) fn check(found: &mut Found, suite: &Suite, case: &Case, observed: &Observed) {
    let mut bytes = 0;
    let mut calls = 0;
    for (upstream, seen) in suite.upstreams.iter().zip(&observed.arrived) {
        for seen in seen {
            (calls, bytes) = (calls + 1, bytes + seen.body.len());
            for (number, text) in case.never_upstream.iter().enumerate() {
                if let Some(place) = in_call(seen, text.as_bytes()) {
                    let what = masked(text);
                    found.fault(format!(
                        "{what} (never_upstream {number}) arrived at {} in {place}",
                        upstream.name
                    ));
                }
            }
        }
    }
    for ((upstream, wires), seen) in suite
        .upstreams
        .iter()
        .zip(&observed.wires)
        .zip(&observed.arrived)
    {
        for (number, text) in case.never_upstream.iter().enumerate() {
            // What was found in a call is told.
            let is_told = seen
                .iter()
                .any(|seen| in_call(seen, text.as_bytes()).is_some());
            let hidden = |wire: &Vec<u8>| disguise::found(wire, text.as_bytes());
            if let Some(how) = wires.iter().filter(|_| !is_told).find_map(hidden) {
                found.fault(format!(
                    "{} (never_upstream {number}) arrived at {} in the bytes of a connection, {how}",
                    masked(text),
                    upstream.name
                ));
            }
        }
    }
    if !case.never_upstream.is_empty() {
        let texts = case.never_upstream.len();
        found.says(format!("searched upstream for {texts} texts that must not arrive: calls {calls}, bytes of bodies {bytes}"));
    }
    let (mut answers, mut heard) = (0, 0);
    for (call, exchanges) in case.calls.iter().zip(&observed.exchanges) {
        for exchange in exchanges.iter().filter(|_| call.to == To::Gateway) {
            answers += 1;
            heard += exchange.answer.body.len();
            for (number, text) in case.never_downstream.iter().enumerate() {
                if let Some(place) = in_answer(&exchange.answer, text.as_bytes()) {
                    let what = masked(text);
                    found.fault(format!(
                        "{what} (never_downstream {number}) came back in {place}"
                    ));
                } else if let Some(how) = disguise::found(&exchange.answer.raw, text.as_bytes()) {
                    let what = masked(text);
                    found.fault(format!(
                        "{what} (never_downstream {number}) came back in the bytes of a connection, {how}"
                    ));
                }
            }
        }
    }
    if !case.never_downstream.is_empty() {
        let texts = case.never_downstream.len();
        found.says(format!("searched downstream for {texts} texts that must not come back: answers {answers}, bytes of bodies {heard}"));
    }
}

fn in_headers(headers: &[(String, Vec<u8>)], wanted: &[u8]) -> Option<String> {
    let has =
        |(name, value): &&(String, Vec<u8>)| holds(name.as_bytes(), wanted) || holds(value, wanted);
    let (name, _) = headers.iter().find(has)?;
    Some(format!("header {name}"))
}

fn in_call(seen: &Seen, wanted: &[u8]) -> Option<String> {
    if holds(seen.method.as_bytes(), wanted) || holds(seen.path.as_bytes(), wanted) {
        return Some("its first line".into());
    }
    in_headers(&seen.headers, wanted)
        .or_else(|| holds(&seen.body, wanted).then(|| "its body".to_owned()))
}

fn in_answer(answer: &Answer, wanted: &[u8]) -> Option<String> {
    if holds(&answer.reason, wanted) {
        return Some("its status line".into());
    }
    in_headers(&answer.headers, wanted)
        .or_else(|| holds(&answer.body, wanted).then(|| "its body".to_owned()))
}

/// A line with none of the texts that must not cross, whatever the case of their letters: what a gateway leaked is not
/// told once more.
pub(super) fn without_secrets(case: &Case, line: &str) -> String {
    let texts = case.never_upstream.iter().chain(&case.never_downstream);
    texts.fold(line.to_owned(), |line, text| without(&line, text))
}

/// The line with every occurrence of the text masked, and with the part of one before which a body was cut off.
fn without(line: &str, text: &str) -> String {
    // Of the same length, so that places in one are places in the other.
    let (line_small, text_small) = (line.to_ascii_lowercase(), text.to_ascii_lowercase());
    let mut places: Vec<(usize, usize)> = line_small
        .match_indices(&text_small)
        .map(|(at, found)| (at, at + found.len()))
        .collect();
    for (end, _) in line_small.match_indices('…') {
        let before = &line_small[..end];
        let parts = text_small.char_indices().map(|(at, _)| at).rev();
        let mut parts = parts.take_while(|at| *at >= LEAST_PART);
        if let Some(at) = parts.find(|at| before.ends_with(&text_small[..*at])) {
            places.push((end - at, end));
        }
    }
    places.sort_unstable();
    let (mut out, mut from) = (String::with_capacity(line.len()), 0);
    for (start, end) in places.into_iter().filter(|(start, end)| start < end) {
        if start >= from {
            out.push_str(&line[from..start]);
            out.push_str(&masked(text));
            from = end;
        }
    }
    out + &line[from..]
}

/// The first letters of a text.
fn masked(text: &str) -> String {
    let shown: String = text.chars().take(3).collect();
    format!("{shown}…")
}
