//! The header of a token: the three members that are read, and those that must not be there.
//!
//! `jwk`, `jku`, `x5u`, `x5c` and all unknown members mean nothing here.
//! Invariant: a header that is read has a supported algorithm.

use serde_json::Value;

use crate::algorithm::Algorithm;
use crate::bounds::KID_BYTES_MAX;
use crate::json;
use crate::refused::{Part, Refused};

/// What a token says of itself.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) algorithm: Algorithm,
    pub(crate) kid: Option<String>,
    pub(crate) typ: Option<String>,
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refused> {
        let mut members =
            json::object(bytes).map_err(|fault| Refused::json(fault, Part::Header))?;
        for changes in ["crit", "b64"] {
            if members.contains_key(changes) {
                return Err(Refused::HeaderMember(changes));
            }
        }
        let mut text = |name: &'static str| match members.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refused::HeaderMistyped(name)),
        };
        let algorithm = text("alg")?;
        let algorithm = algorithm.as_deref().and_then(Algorithm::named);
        let kid = text("kid")?;
        if kid.as_ref().is_some_and(|kid| kid.len() > KID_BYTES_MAX) {
            return Err(Refused::KidTooLong);
        }
        Ok(Self {
            algorithm: algorithm.ok_or(Refused::Algorithm)?,
            kid,
            typ: text("typ")?,
        })
    }
}

impl Refused {
    pub(crate) fn json(fault: json::Fault, part: Part) -> Self {
        match fault {
            json::Fault::Duplicate => Self::Duplicate(part),
            json::Fault::Syntax { .. } | json::Fault::NotAnObject => Self::Json(part),
        }
    }
}
