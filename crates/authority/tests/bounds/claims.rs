//! Claims of every size that fits a token, of what is worst for one function or another.

use policy::authority::{Claim, Members};
use testing::Draw;

/// What the claims of a token of 16 KiB hold, bytes.
const BYTES_MAX: usize = 12_000;

pub(crate) fn drawn(draw: &mut Draw) -> Members {
    let most = [40, 400, 3_000, BYTES_MAX][draw.below(4)];
    let mut left = most;
    let mut share = |draw: &mut Draw| {
        let share = left * (1 + draw.below(9)) / 10;
        left -= share;
        share
    };
    let mut pairs: Vec<(&str, Claim)> = Vec::new();
    let mut names = ["t", "s", "l", "n", "o", "d", "x"];
    for at in (1..names.len()).rev() {
        names.swap(at, draw.below(at + 1));
    }
    for name in names {
        let bytes = share(draw);
        pairs.push((name, value(name, bytes, draw)));
    }
    let pairs = pairs.into_iter().map(|(name, of)| (name.into(), of));
    Members::new(pairs.collect())
}

fn value(name: &str, bytes: usize, draw: &mut Draw) -> Claim {
    match name {
        "l" => list(bytes, draw),
        "n" => Claim::List((0..bytes / 8).map(|_| number(draw)).take(500).collect()),
        "o" => {
            let pair = |n: usize| (format!("{n}").into(), text(8, draw));
            let pairs: Vec<(Box<str>, Claim)> = (0..(bytes / 20).min(200)).map(pair).collect();
            Claim::Map(Members::new(pairs))
        }
        "d" => Claim::Text("9".repeat(bytes).into()),
        "x" => [
            "",
            "a",
            "%d",
            "%s%s",
            "%999d",
            "é",
            "2026-01-31T08:00:00Z",
            "10.0.0.0/8",
            "1e999999999",
            "a[ab]{99}c",
            "(a|aa)+b",
            "\\w+\\d",
            "[",
            "{\"a\": [1]}",
            "1h",
            "1é",
            "5Gi",
            "²",
            "Europe/Zurich",
        ][draw.below(19)]
        .to_owned()
        .pipe(|text| Claim::Text(text.into())),
        _ => text(bytes, draw),
    }
}

trait Pipe: Sized {
    fn pipe<T>(self, act: impl FnOnce(Self) -> T) -> T {
        act(self)
    }
}

impl Pipe for String {}

/// Few long texts or many short ones, which differ or do not; at most as many values as Rego takes.
fn list(bytes: usize, draw: &mut Draw) -> Claim {
    let length = [1, 8, 40, 1000][draw.below(4)];
    let count = (bytes / (length + 3)).min(900);
    Claim::List((0..count).map(|_| text(length, draw)).collect())
}

/// A letter over and over, letters, or what becomes more in capitals or in JSON.
fn text(bytes: usize, draw: &mut Draw) -> Claim {
    let made: String = match draw.below(4) {
        0 => "a".repeat(bytes),
        1 => "ΐ".repeat(bytes / 2),
        2 => "\u{1}".repeat(bytes / 6),
        _ => (0..bytes)
            .map(|_| char::from(b'a' + u8::try_from(draw.below(4)).expect("small")))
            .collect(),
    };
    Claim::Text(made.into())
}

fn number(draw: &mut Draw) -> Claim {
    match draw.below(4) {
        0 => Claim::Int(i64::MAX),
        1 => Claim::Large(u64::MAX),
        2 => Claim::Float(0.5),
        _ => Claim::Int(i64::try_from(draw.below(100)).expect("small")),
    }
}
