//! Where a browser goes once it is logged in.
//!
//! Invariant: a path of this gate, whatever a browser makes of it: no scheme, no host, no `//` and no `\` (which browsers
//! read as `/`) at its beginning, nothing that browsers leave out.

use super::fault::LoginFault;
use super::query;

/// Longest path, bytes.
pub const RETURN_BYTES_MAX: usize = 1024;

/// A path of this gate, with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnPath(String);

impl Default for ReturnPath {
    /// The root.
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl ReturnPath {
    /// Reads one. What a URL does not hold as it is becomes `%XX`.
    ///
    /// # Errors
    /// [`LoginFault::ReturnPath`] when it leads elsewhere, holds a `\` or a control character, or is longer than
    /// [`RETURN_BYTES_MAX`].
    pub fn read(path: &[u8]) -> Result<Self, LoginFault> {
        let is_bad = |byte: &u8| *byte == b'\\' || byte.is_ascii_control();
        if !path.starts_with(b"/") || path.starts_with(b"//") || path.iter().any(is_bad) {
            return Err(LoginFault::ReturnPath);
        }
        let mut text = String::with_capacity(path.len());
        for byte in path {
            if byte.is_ascii_graphic() && !b"\"<>^`{|}".contains(byte) {
                text.push(char::from(*byte));
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
            if text.len() > RETURN_BYTES_MAX {
                return Err(LoginFault::ReturnPath);
            }
        }
        Ok(Self(text))
    }

    /// The one that the query of a login names in `return`; the root where it names none.
    ///
    /// # Errors
    /// [`LoginFault::ReturnPath`], and [`LoginFault::Query`] when it is named twice.
    pub fn of_query(query: &[u8]) -> Result<Self, LoginFault> {
        let mut found = None;
        for pair in query.split(|byte| *byte == b'&') {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            if query::decoded(parts.next().unwrap_or_default())? != b"return" {
                continue;
            }
            let path = query::decoded(parts.next().unwrap_or_default())?;
            if found.replace(Self::read(&path)?).is_some() {
                return Err(LoginFault::Query);
            }
        }
        Ok(found.unwrap_or_default())
    }

    /// As a `location` has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
