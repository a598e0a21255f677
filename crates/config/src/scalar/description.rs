//! Where the description of an HTTP API is.

use super::source::File;
use crate::decode::{Problem, Written};
use crate::target::Target;

/// A file, or an address.
pub(crate) enum DescriptionAt {
    File(File),
    /// As written, and its origin as an address of its own.
    Url(String, Target),
}

impl Written for DescriptionAt {
    const PATTERN: &'static str = "^(https?://[^@]+|[^:]+)$";

    fn read(text: &str) -> Result<Self, Problem> {
        if !text.contains("://") {
            return File::read(text).map(Self::File);
        }
        let is_fine = |b: u8| b.is_ascii_graphic() && !b"#\\".contains(&b);
        let after = text.find("://").map_or(0, |at| at + 3);
        let rest = text.get(after..).unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        if !text.bytes().all(is_fine) || text.len() > 2048 || rest.get(..end).is_none() {
            let hint = "write a file, or an address such as https://api.example.com/openapi.json";
            return Err(Problem::new("is no address of a description", hint));
        }
        let origin = text.get(..after + end).unwrap_or(text);
        let origin = Target::read(origin)?;
        Ok(Self::Url(text.to_owned(), origin))
    }
}
