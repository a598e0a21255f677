//! What a catalogue of prices says beside prices, and where it is.

use super::source::File;
use crate::decode::{Problem, Written, nearest};

/// Where a catalogue of prices is.
pub(crate) enum CatalogueAt {
    BuiltIn,
    File(File),
}

impl Written for CatalogueAt {
    const PATTERN: &'static str = "^(builtin|.*[/.].*)$";

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "builtin" => Ok(Self::BuiltIn),
            path if path.contains(['/', '.']) => File::read(path).map(Self::File),
            other => {
                let hint = match nearest(other, &["builtin"]) {
                    Some(word) => format!("did you mean {word}? A file is written as ./{other}"),
                    None => "write builtin, or a path such as ./catalogue.yaml".into(),
                };
                Err(Problem::new("is not a catalogue", hint))
            }
        }
    }
}

/// The address of a page.
pub(crate) struct Page(pub(crate) String);

impl Written for Page {
    const PATTERN: &'static str = "^https://[!-~]{1,500}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let rest = text.strip_prefix("https://").unwrap_or_default();
        let is_page = (1..=500).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_graphic());
        if !is_page {
            return Err(Problem::new(
                "is not the address of a page",
                "write https://…",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A day.
pub(crate) struct Day(pub(crate) String);

impl Written for Day {
    const PATTERN: &'static str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let is_day = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_day {
            return Err(Problem::new("is not a day", "write one such as 2026-11-28"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl AsRef<str> for Page {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Day {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
