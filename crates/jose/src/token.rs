//! A token as it came: its parts and what it says, none of it checked yet.
//!
//! Invariant: of its claims, only the issuer is shown.
//! Not here: whether it is good (`verify`).

use std::fmt;
use std::sync::Arc;

use serde_json::Map;
use serde_json::Value;

use crate::base64url;
use crate::bounds::{SIGNATURE_BYTES_MAX, TOKEN_BYTES_MAX};
use crate::header::Header;
use crate::json;
use crate::refused::{Part, Refused};

/// A token that was read and not checked: [`crate::verify()`] does.
pub struct Token<'t> {
    /// The bytes that the signature is over.
    pub(crate) signed: &'t [u8],
    pub(crate) header: Header,
    pub(crate) claims: Arc<Map<String, Value>>,
    signature: [u8; SIGNATURE_BYTES_MAX],
    signature_length: usize,
}

impl<'t> Token<'t> {
    /// Reads the compact form, at most [`TOKEN_BYTES_MAX`] bytes: nothing may stand around it.
    ///
    /// # Errors
    /// Why it is no token, or one that no key could make good.
    pub fn read(bytes: &'t [u8]) -> Result<Self, Refused> {
        if bytes.len() > TOKEN_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let (signed, [header, claims, signature]) = parts(bytes)?;
        let decoded = |text, part| base64url::decode(text).ok_or(Refused::Base64(part));
        let header = Header::read(&decoded(header, Part::Header)?)?;
        let claims = json::object(&decoded(claims, Part::Claims)?)
            .map_err(|fault| Refused::json(fault, Part::Claims))?;
        let mut place = [0; SIGNATURE_BYTES_MAX];
        let signature =
            base64url::decode_into(signature, &mut place).map_err(|fault| match fault {
                base64url::Fault::Spelling => Refused::Base64(Part::Signature),
                base64url::Fault::TooLong => Refused::Signature,
            })?;
        Ok(Self {
            signed,
            header,
            claims: Arc::new(claims),
            signature_length: signature.len(),
            signature: place,
        })
    }

    /// Who the token says made it: nothing vouches for that yet. It may choose whose keys to ask for, and which rules
    /// to give to [`crate::verify()`], which then requires that issuer. `None` where it is absent or no text.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }

    pub(crate) fn signature(&self) -> &[u8] {
        self.signature
            .get(..self.signature_length)
            .unwrap_or_default()
    }
}

/// What is signed, and the three parts.
fn parts(bytes: &[u8]) -> Result<(&[u8], [&[u8]; 3]), Refused> {
    let mut parts = bytes.split(|byte| *byte == b'.');
    match [(); 6].map(|()| parts.next()) {
        [Some(header), Some(claims), Some(signature), None, ..] => {
            let signed = bytes.get(..header.len() + 1 + claims.len());
            let signed = signed.ok_or(Refused::NotCompact)?;
            Ok((signed, [header, claims, signature]))
        }
        [_, _, _, _, Some(_), None] => Err(Refused::Encrypted),
        _ => Err(Refused::NotCompact),
    }
}

/// A token opens doors: only its algorithm is shown.
impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = &self.header.algorithm;
        f.debug_struct("Token")
            .field("algorithm", algorithm)
            .finish_non_exhaustive()
    }
}
