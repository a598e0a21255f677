//! A credential that cannot be printed.
//!
//! Invariant: the bytes leave only through [`Secret::expose`], which is called where a header
//! block for an upstream is built and nowhere else; they are wiped on drop.
//! Not here: where secrets come from (`config`).

use std::fmt;

use zeroize::Zeroizing;

/// Secret bytes: no `Display`, no `Serialize`, a `Debug` that shows nothing, wiped on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Whether these are the same bytes. It takes as long for a wrong guess as for a right one of its length.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        let pairs = self.0.iter().zip(given);
        let differences = pairs.fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b)));
        self.0.len() == given.len() && differences == 0
    }

    /// The bytes themselves, for the one place that writes them to an upstream.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests;
