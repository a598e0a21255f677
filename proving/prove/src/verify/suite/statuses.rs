//! Statuses in order, as `2 x 200, then 4 x 429`.
//!
//! Invariant: a text that is read gives itself back, up to spaces and `then`.

use std::fmt;
use std::str::FromStr;

/// Answers that one text speaks of at most.
const ANSWERS_MAX: usize = 10_000;

/// What answers have to be, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statuses(Vec<(usize, Code)>);

/// One status, several of which any will do, or a hundred of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Code {
    OneOf(Vec<u16>),
    /// `5xx`: by the first digit.
    Class(u16),
}

impl Statuses {
    /// So many times 200.
    pub(super) fn all_good(count: usize) -> Self {
        Self(vec![(count, Code::OneOf(vec![200]))])
    }

    /// How many answers it speaks of.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|(count, _)| count).sum()
    }

    /// Whether answers with these statuses are those.
    pub(crate) fn are(&self, statuses: &[u16]) -> bool {
        let each = self.0.iter();
        let mut wanted = each.flat_map(|(count, code)| std::iter::repeat_n(code, *count));
        self.count() == statuses.len()
            && statuses
                .iter()
                .all(|&status| wanted.next().is_some_and(|code| code.takes(status)))
    }

    /// Whether an answer of this kind can be among them.
    pub(super) fn may_hold(&self, code: &Code) -> bool {
        self.0.iter().any(|(_, wanted)| wanted.meets(code))
    }
}

impl Code {
    pub(crate) fn takes(&self, status: u16) -> bool {
        match self {
            Self::OneOf(codes) => codes.contains(&status),
            Self::Class(class) => status / 100 == *class,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        (100..600).any(|status| self.takes(status) && other.takes(status))
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let groups: Result<Vec<_>, String> = text.split(',').map(group).collect();
        let all = Self(groups?);
        if all.count() > ANSWERS_MAX {
            return Err(format!(
                "{text:?} speaks of more than {ANSWERS_MAX} answers"
            ));
        }
        Ok(all)
    }
}

fn group(text: &str) -> Result<(usize, Code), String> {
    let text = text.trim();
    let rest = text.strip_prefix("then ").unwrap_or(text).trim();
    let (count, code) = match rest.split_once('x') {
        // `5xx` has no count.
        Some((count, code)) if code.starts_with(' ') => (count.trim(), code.trim()),
        _ => ("1", rest),
    };
    let count = count
        .parse()
        .ok()
        .filter(|count| (1..=ANSWERS_MAX).contains(count));
    let count = count.ok_or_else(|| format!("{text:?}: write such as `2 x 200, then 4 x 429`"))?;
    Ok((count, code.parse()?))
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no status: write 429, 502|503 or 5xx");
        if let Some(class) = text.strip_suffix("xx") {
            let class = class.parse().ok().filter(|class| (1..=5).contains(class));
            return class.map(Self::Class).ok_or_else(wrong);
        }
        let status = |code: &str| {
            let status = code.trim().parse().ok();
            status.filter(|status| (100..600).contains(status))
        };
        let codes: Option<Vec<u16>> = text.split('|').map(status).collect();
        codes.map(Self::OneOf).ok_or_else(wrong)
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (count, code)) in self.0.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            match count {
                1 => write!(f, "{comma}{code}")?,
                count => write!(f, "{comma}{count} x {code}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(f, "{class}xx"),
            Self::OneOf(codes) => {
                let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
                f.write_str(&codes.join("|"))
            }
        }
    }
}

/// Statuses as they came, equal ones in a row told once.
pub(crate) fn in_short(statuses: &[u16]) -> String {
    let runs = statuses.chunk_by(|one, next| one == next);
    let told = runs.filter_map(|run| Some((run.len(), Code::OneOf(vec![*run.first()?]))));
    Statuses(told.collect()).to_string()
}
