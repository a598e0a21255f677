//! The upload of a file (`multipart/form-data`): which of its bytes are the file, and what it is for.
//!
//! Invariant: as of other forms ([`super::form`]), and no part is any but those that are known, each once: what another server could take
//! for the file, or for its purpose, is refused.
//! Not here: what is in the file (`batch`), which purposes there may be (`policy`).

use std::ops::Range;

use memchr::memmem;

use super::form::{
    Boundary, FormFault, HEAD_BYTES, PARTS, PartHead, VALUE_BYTES, part_head, places,
};

const PURPOSE: &str = "purpose";
const FILE: &str = "file";
/// Parts that say when a file is to go, which are nobody's but the provider's.
const EXPIRY: [&str; 2] = ["expires_after[anchor]", "expires_after[seconds]"];

/// An upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// What the file is for; none where that is not said, as Anthropic's API has it.
    pub purpose: Option<Box<str>>,
    /// Where the file stands in the body.
    pub file: Range<usize>,
}

/// Why an upload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadFault {
    /// It is no form that can be read.
    #[error("the request body is no form that can be read: {0}")]
    Form(#[from] FormFault),
    /// A part is none that is known.
    #[error("the form has a part that is none of `purpose`, `file` and `expires_after`")]
    Part,
    /// A part comes twice.
    #[error("the form has the part `{0}` twice")]
    Twice(&'static str),
    /// A part is not there.
    #[error("the form has no part `{0}`")]
    Missing(&'static str),
    /// A part is a file that must be none, or the other way round, or says that it is coded.
    #[error("the part `{0}` must be {1}")]
    Kind(&'static str, &'static str),
}

impl Upload {
    /// Reads a whole form with this boundary.
    ///
    /// # Errors
    /// It has not exactly the parts of an upload.
    pub fn read(boundary: &Boundary, body: &[u8]) -> Result<Self, UploadFault> {
        let line = format!("--{}", boundary.0);
        let delimiter = format!("\r\n{line}");
        let rest = body.strip_prefix(line.as_bytes());
        let mut rest = rest.ok_or(FormFault::Beginning)?;
        let mut seen: [Option<Range<usize>>; 2] = [None, None];
        let mut expiry = [false; EXPIRY.len()];
        let mut parts = 0;
        loop {
            match rest.split_at_checked(2) {
                Some((b"\r\n", after)) => rest = after,
                Some((b"--", b"" | b"\r\n")) => break,
                Some((b"--", _)) => return Err(FormFault::BehindEnd.into()),
                Some(_) => return Err(FormFault::BehindBoundary.into()),
                None => return Err(FormFault::Cut.into()),
            }
            parts += 1;
            if parts > PARTS {
                return Err(FormFault::Parts.into());
            }
            let head_end = memmem::find(rest, b"\r\n\r\n").ok_or(FormFault::Head)?;
            if head_end > HEAD_BYTES {
                return Err(FormFault::Head.into());
            }
            let head = part_head(rest.get(..head_end).unwrap_or_default())?;
            let value = rest.get(head_end + 4..).unwrap_or_default();
            let length = memmem::find(value, delimiter.as_bytes()).ok_or(FormFault::Cut)?;
            let from = body.len() - value.len();
            let place = from..from + length;
            match Part::of(&head)? {
                Part::Read(nth, name) => {
                    let before = seen.get_mut(nth).and_then(|seen| seen.replace(place));
                    if before.is_some() {
                        return Err(UploadFault::Twice(name));
                    }
                }
                Part::Expiry(nth, name) => {
                    let seen = expiry.get_mut(nth);
                    if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
                        return Err(UploadFault::Twice(name));
                    }
                }
            }
            rest = value.get(length + delimiter.len()..).unwrap_or_default();
        }
        if places(body, line.as_bytes(), ..body.len()) != parts + 1 {
            return Err(FormFault::Within.into());
        }
        let [purpose, file] = seen;
        let file = file.ok_or(UploadFault::Missing(FILE))?;
        let purpose = purpose.map(|at| {
            let text = body.get(at).unwrap_or_default();
            let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
            let is_good = (1..=VALUE_BYTES).contains(&text.len()) && text.iter().all(is_word);
            let text = std::str::from_utf8(text).ok().filter(|_| is_good);
            text.map(Box::from)
                .ok_or(UploadFault::Kind(PURPOSE, "a plain word"))
        });
        Ok(Self {
            purpose: purpose.transpose()?,
            file,
        })
    }
}

/// Which part one is.
enum Part {
    Read(usize, &'static str),
    Expiry(usize, &'static str),
}

impl Part {
    fn of(head: &PartHead<'_>) -> Result<Self, UploadFault> {
        // Of one byte each, some characters of a file would end lines.
        if head.is_coded || head.is_latin && head.is_file {
            return Err(FormFault::Encoded.into());
        }
        let plain = |name: &'static str| match !head.is_file && head.is_text {
            true => Ok(name),
            false => Err(UploadFault::Kind(name, "a text, and no file")),
        };
        if head.name == PURPOSE {
            return plain(PURPOSE).map(|name| Self::Read(0, name));
        }
        if head.name == FILE {
            return match head.is_file {
                true => Ok(Self::Read(1, FILE)),
                false => Err(UploadFault::Kind(FILE, "a file, with a `filename`")),
            };
        }
        let mut expiry = EXPIRY.iter().enumerate();
        match expiry.find(|(_, name)| **name == head.name) {
            Some((nth, name)) => plain(name).map(|name| Self::Expiry(nth, name)),
            None => Err(UploadFault::Part),
        }
    }
}

#[cfg(test)]
mod tests;
