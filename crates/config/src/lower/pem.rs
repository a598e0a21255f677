//! Files with certificates and private keys.
//!
//! Invariant: each holds the block that it is for; no message shows any part of a key.
//! Not here: parsing them (the host).

use std::path::PathBuf;

use policy::secret::Secret;

use crate::decode::{At, Field};
use crate::scalar::{File, SecretFile};

impl super::Lowering<'_> {
    /// A file with a certificate, and its text.
    pub(super) fn certificate(&mut self, at: &At<File>) -> Option<(PathBuf, Vec<u8>)> {
        let (path, pem) = self.read(at)?;
        let mark = b"-----BEGIN CERTIFICATE-----";
        self.holds(at, &pem, mark, "certificate")?;
        Some((path, pem))
    }

    /// Roots to trust in place of the system's, where some are said.
    pub(super) fn roots_of(&mut self, ca: &Field<At<File>>) -> Option<Vec<u8>> {
        self.certificate(ca.get()?).map(|(_, pem)| pem)
    }

    /// A file with a private key, and its text.
    pub(super) fn private_key(&mut self, at: &At<SecretFile>) -> Option<(PathBuf, Secret)> {
        let (path, pem) = self.read(at)?;
        let pem = Secret::new(pem);
        self.guarded(at, &path);
        self.holds(at, pem.expose(), b"PRIVATE KEY-----", "private key")?;
        Some((path, pem))
    }

    /// Notes a file in which the PEM block that it is for does not begin.
    fn holds<T>(&mut self, at: &At<T>, pem: &[u8], mark: &[u8], what: &str) -> Option<()> {
        if pem.windows(mark.len()).any(|window| window == mark) {
            return Some(());
        }
        let shown = super::file_shown(&at.shown);
        let says = format!("the file {shown} holds no {what} in PEM form");
        let begins = what.to_uppercase();
        let hint = format!("it needs a block that begins -----BEGIN {begins}-----");
        self.fault(&at.place, says, hint);
        None
    }
}
