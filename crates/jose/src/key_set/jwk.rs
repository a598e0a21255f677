//! One key of a JWK Set: RFC 7517, with the types of RFC 7518 and RFC 8037.
//!
//! Invariant: what a key does not allow it is not used for, and a published private key is not used at all.

use serde_json::{Map, Value};

use crate::algorithm::Algorithm;
use crate::base64url;
use crate::bounds::KID_BYTES_MAX;
use crate::public_key::{Curve, Key, Material};
use crate::unusable::Unusable;

/// Members that only a private key has.
const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "oth"];

pub(super) fn key(jwk: &Value) -> Result<Key, Unusable> {
    let jwk = Jwk(jwk.as_object().ok_or(Unusable::NotAnObject)?);
    let kty = jwk.text("kty")?.ok_or(Unusable::Member("kty"))?;
    if kty == "oct" {
        return Err(Unusable::Symmetric);
    }
    if let Some(member) = PRIVATE.iter().find(|name| jwk.0.contains_key(**name)) {
        return Err(Unusable::Private(member));
    }
    jwk.check_purpose()?;
    let only = match jwk.text("alg")? {
        None => None,
        Some(name) => Some(Algorithm::named(name).ok_or(Unusable::Algorithm)?),
    };
    if jwk
        .text("kid")?
        .is_some_and(|kid| kid.len() > KID_BYTES_MAX)
    {
        return Err(Unusable::KidTooLong);
    }
    let material = match kty {
        "RSA" => Material::rsa(&jwk.bytes("n")?, &jwk.bytes("e")?),
        "EC" => jwk.elliptic(),
        "OKP" => jwk.okp(),
        _ => Err(Unusable::Type),
    };
    Key::new(material?, only)
}

struct Jwk<'j>(&'j Map<String, Value>);

impl Jwk<'_> {
    fn text(&self, name: &'static str) -> Result<Option<&str>, Unusable> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Unusable::Member(name)),
        }
    }

    fn bytes(&self, name: &'static str) -> Result<Vec<u8>, Unusable> {
        let text = self.text(name)?.unwrap_or_default();
        base64url::decode(text.as_bytes())
            .filter(|bytes| !bytes.is_empty())
            .ok_or(Unusable::Member(name))
    }

    fn check_purpose(&self) -> Result<(), Unusable> {
        if self.text("use")?.is_some_and(|used_for| used_for != "sig") {
            return Err(Unusable::Use);
        }
        match self.0.get("key_ops") {
            None => Ok(()),
            Some(Value::Array(operations)) => {
                let verifies = operations.iter().any(|one| one == "verify");
                verifies.then_some(()).ok_or(Unusable::Operations)
            }
            Some(_) => Err(Unusable::Member("key_ops")),
        }
    }

    fn elliptic(&self) -> Result<Material, Unusable> {
        let curve = match self.text("crv")? {
            Some("P-256") => Curve::P256,
            Some("P-384") => Curve::P384,
            Some("P-521") => Curve::P521,
            _ => return Err(Unusable::Curve),
        };
        let mut point = vec![4];
        for name in ["x", "y"] {
            let coordinate = self.bytes(name)?;
            if coordinate.len() != curve.coordinate_bytes() {
                return Err(Unusable::Member(name));
            }
            point.extend(coordinate);
        }
        Material::point(curve, &point)
    }

    fn okp(&self) -> Result<Material, Unusable> {
        if self.text("crv")? != Some("Ed25519") {
            return Err(Unusable::Curve);
        }
        Material::ed25519(&self.bytes("x")?)
    }
}
