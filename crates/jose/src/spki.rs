//! A public key as certificates hold it: SubjectPublicKeyInfo of RFC 5280.
//!
//! Not here: whether a certificate is valid or by whom. Who gives one gives its key.

use crate::der::{CONTEXT_0, OBJECT_ID, Reader};
use crate::pem::PemFault;
use crate::public_key::{Curve, Material};
use crate::unusable::Unusable;

pub(crate) const OID_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
pub(crate) const OID_EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
pub(crate) const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
pub(crate) const OID_ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const OID_P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const OID_P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];

/// Why there is no key.
pub(crate) enum Fault {
    Pem(PemFault),
    Key(Unusable),
}

/// The key of a SubjectPublicKeyInfo and nothing else.
pub(crate) fn public_key(der: &[u8]) -> Result<Material, Fault> {
    let mut reader = Reader::new(der);
    let key = material(&mut reader)?;
    if reader.is_empty() {
        Ok(key)
    } else {
        Err(Fault::Pem(PemFault::Der))
    }
}

/// The key of a certificate.
pub(crate) fn certified_key(der: &[u8]) -> Result<Material, Fault> {
    let mut key = before_key(der).ok_or(Fault::Pem(PemFault::Der))?;
    material(&mut key)
}

/// A certificate up to its key: version, serial, signature, issuer, validity and subject come before.
fn before_key(der: &[u8]) -> Option<Reader<'_>> {
    let mut certificate = Reader::new(der).sequence()?;
    let mut signed = certificate.sequence()?;
    let _version = signed.take(CONTEXT_0);
    for _ in 0..5 {
        signed.skip()?;
    }
    Some(signed)
}

fn material(reader: &mut Reader<'_>) -> Result<Material, Fault> {
    let (mut algorithm, key) = algorithm_and_key(reader).ok_or(Fault::Pem(PemFault::Der))?;
    let malformed = Fault::Key(Unusable::Member("subjectPublicKey"));
    match algorithm.take(OBJECT_ID) {
        Some(OID_RSA) => {
            let (n, e) = rsa_numbers(key).ok_or(malformed)?;
            Material::rsa(n, e)
        }
        Some(OID_EC) => {
            let curve = match algorithm.take(OBJECT_ID) {
                Some(OID_P256) => Curve::P256,
                Some(OID_P384) => Curve::P384,
                Some(OID_P521) => Curve::P521,
                _ => return Err(Fault::Key(Unusable::Curve)),
            };
            Material::point(curve, key)
        }
        Some(OID_ED25519) => Material::ed25519(key),
        _ => Err(Unusable::Type),
    }
    .map_err(Fault::Key)
}

fn algorithm_and_key<'d>(reader: &mut Reader<'d>) -> Option<(Reader<'d>, &'d [u8])> {
    let mut info = reader.sequence()?;
    let algorithm = info.sequence()?;
    let key = info.bits()?;
    info.is_empty().then_some((algorithm, key))
}

fn rsa_numbers(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut numbers = Reader::new(key).sequence()?;
    let numbers = (numbers.number()?, numbers.number()?, numbers.is_empty());
    let (n, e, is_whole) = numbers;
    is_whole.then_some((n, e))
}
