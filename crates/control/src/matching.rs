//! What rules and selectors want of a header: values, beginnings, or expressions that are lists of those.

use config::quoted;

use crate::fields::{Fields, Item, Said};
use crate::findings::{Findings, Spot};

/// The header in which Envoy's gateway puts the model of a call, and by which its rules go.
pub(crate) const MODEL: &str = "x-ai-eg-model";

/// A value that fits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    Exact(String),
    Prefix(String),
}

impl Wanted {
    /// As a pattern of ours is written.
    pub(crate) fn pattern(&self) -> String {
        match self {
            Self::Exact(name) => name.clone(),
            Self::Prefix(start) => format!("{start}*"),
        }
    }

    /// Whether it takes whatever the other one takes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(name), Self::Exact(other)) => name == other,
            (Self::Exact(_), Self::Prefix(_)) => false,
            (Self::Prefix(start), Self::Exact(text) | Self::Prefix(text)) => {
                text.starts_with(start.as_str())
            }
        }
    }
}

/// A header and what it has to say.
#[derive(Debug, Clone)]
pub(crate) struct HeaderMatch {
    pub(crate) spot: Spot,
    /// In lower case.
    pub(crate) name: String,
    pub(crate) how: How,
}

/// How a header is looked at.
#[derive(Debug, Clone)]
pub(crate) enum How {
    /// It has one of these values.
    Is(Vec<Wanted>),
    /// Each value of it apart.
    Distinct,
}

impl HeaderMatch {
    pub(crate) fn of(item: &Item<'_>, findings: &mut Findings) -> Option<Self> {
        let mut of = item.fields(findings);
        let kind = of.text("type", findings);
        let name = of.needed_text("name", findings);
        let value = of.text("value", findings);
        if let Some(said) = of.flag("invert", findings).filter(|said| said.value) {
            findings.fault(
                &said.spot,
                "is not honoured here",
                "say which values are meant",
            );
        }
        of.end(findings);
        let how = how(kind.as_ref(), value, &item.spot, findings)?;
        let name = name?.value.to_ascii_lowercase();
        // In our document it would stand for the rest of a name.
        let is_wide = |one: &Wanted| matches!(one, Wanted::Exact(value) if value.contains('*'));
        if matches!(&how, How::Is(wanted) if wanted.iter().any(is_wide)) && name == MODEL {
            let says = "is the name of one model, and no model has a * in its name";
            let hint = "write type: RegularExpression, and .* for the rest of a name";
            findings.fault(&item.spot, says, hint);
            return None;
        }
        Some(Self {
            spot: item.spot.clone(),
            name,
            how,
        })
    }

    pub(crate) fn all(fields: &mut Fields<'_>, findings: &mut Findings) -> Vec<Self> {
        let items = fields.list("headers", findings);
        items
            .iter()
            .filter_map(|item| Self::of(item, findings))
            .collect()
    }

    /// The values that fit, each whole; a fault where only a beginning is said.
    pub(crate) fn values(&self, findings: &mut Findings) -> Vec<String> {
        let How::Is(wanted) = &self.how else {
            return Vec::new();
        };
        let mut values = Vec::new();
        for one in wanted {
            match one {
                Wanted::Exact(value) => values.push(value.clone()),
                Wanted::Prefix(_) => {
                    let says = "says beginnings of values, and callers are known by whole ones";
                    findings.fault(&self.spot, says, "list the values, such as a|b");
                }
            }
        }
        values
    }
}

fn how(
    kind: Option<&Said<String>>,
    value: Option<Said<String>>,
    spot: &Spot,
    findings: &mut Findings,
) -> Option<How> {
    let kind = kind.map_or("Exact", |said| said.value.as_str());
    match (kind, value) {
        ("Distinct", None) => Some(How::Distinct),
        ("Exact", Some(value)) => Some(How::Is(vec![Wanted::Exact(value.value)])),
        ("RegularExpression", Some(value)) => {
            let found = alternatives(&value.value);
            if found.is_none() {
                let says = format!(
                    "{} is more than values and beginnings of values",
                    quoted(&value.value)
                );
                findings.fault(
                    &value.spot,
                    says,
                    "write names joined by |, each as it is or followed by .*, and dots as \\.",
                );
            }
            found.map(How::Is)
        }
        _ => {
            findings.fault(
                spot,
                "says no way to match that is known",
                "write type: Exact or RegularExpression, and a value",
            );
            None
        }
    }
}

/// The values of an expression that is nothing but a list of them.
pub(crate) fn alternatives(expression: &str) -> Option<Vec<Wanted>> {
    let inside = expression.strip_prefix('^').unwrap_or(expression);
    let inside = inside.strip_suffix('$').unwrap_or(inside);
    let group = inside
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let inside = group.map_or(inside, |group| group.strip_prefix("?:").unwrap_or(group));
    inside.split('|').map(alternative).collect()
}

fn alternative(text: &str) -> Option<Wanted> {
    let (literal, is_prefix) = match text.strip_suffix(".*").filter(|rest| !rest.ends_with('\\')) {
        Some(start) => (start, true),
        None => (text, false),
    };
    let mut out = String::new();
    let mut rest = literal.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.push(rest.next().filter(|c| matches!(c, '.' | '-' | '/' | '+'))?),
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/' | ':' | '@') => {
                out.push(c)
            }
            _ => return None,
        }
    }
    match is_prefix {
        true => Some(Wanted::Prefix(out)),
        false if out.is_empty() => None,
        false => Some(Wanted::Exact(out)),
    }
}

#[cfg(test)]
mod tests {
    use super::alternatives;

    #[test]
    fn expressions_that_are_lists_of_names_are_read_and_others_are_not() {
        let read = |text| {
            alternatives(text).map(|all| {
                all.iter()
                    .map(super::Wanted::pattern)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        for (text, ours) in [
            (".*", Some("*")),
            ("gpt-.*", Some("gpt-*")),
            ("^(gpt-4\\.1|o3)$", Some("gpt-4.1 o3")),
            ("(?:a|b-.*)", Some("a b-*")),
            ("gpt-4.1", None),
            ("gpt-[34]", None),
            ("a||b", None),
            ("x\\.*", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), ours, "{text}");
        }
    }
}
