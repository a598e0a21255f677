//! One block of PEM, as RFC 7468 has it. Text around it is left aside.
//!
//! Invariant: what was decoded is wiped when it is dropped.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::bounds::SET_BYTES_MAX;

/// Why PEM gives no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PemFault {
    /// It is larger than is read.
    #[error("it is longer than {SET_BYTES_MAX} bytes")]
    TooLong,
    /// No block stands in it.
    #[error("it has no block from `-----BEGIN …-----` to the `-----END …-----` of the same label")]
    NoBlock,
    /// Several blocks stand in it.
    #[error("it has several blocks, so that it does not say which one is meant")]
    SeveralBlocks,
    /// The block is not base64.
    #[error("its block is not base64 with padding")]
    Base64,
    /// The block is none of those that are read here.
    #[error("its block is not one of: {0}")]
    Label(&'static str),
    /// The block does not hold what its label says.
    #[error("its block is not the DER that its label says")]
    Der,
}

/// A block with its label.
pub(crate) struct Block<'p> {
    pub(crate) label: &'p str,
    pub(crate) der: Zeroizing<Vec<u8>>,
}

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// The only block.
pub(crate) fn block(pem: &[u8]) -> Result<Block<'_>, PemFault> {
    if pem.len() > SET_BYTES_MAX {
        return Err(PemFault::TooLong);
    }
    let pem = std::str::from_utf8(pem).map_err(|_| PemFault::NoBlock)?;
    let (label, body, after) = parts(pem).ok_or(PemFault::NoBlock)?;
    if after.contains(BEGIN) {
        return Err(PemFault::SeveralBlocks);
    }
    let der = decode(body).ok_or(PemFault::Base64)?;
    Ok(Block { label, der })
}

/// The label, the body and what follows the first block.
fn parts(pem: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = pem.split_once(BEGIN)?;
    let (label, rest) = rest.split_once(DASHES)?;
    let (body, rest) = rest.split_once("-----END ")?;
    let after = rest.strip_prefix(label)?.strip_prefix(DASHES)?;
    Some((label, body, after))
}

fn decode(body: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(body.len()));
    text.extend(body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    let mut der = Zeroizing::new(vec![0; text.len()]);
    let length = STANDARD.decode_slice(&*text, &mut der).ok()?;
    der.truncate(length);
    Some(der)
}

#[cfg(test)]
mod tests;
