//! A document at an address, fetched whole.
//!
//! Invariant: it is asked for at an address that may be asked, no redirect is followed, and nothing that proves who the gate is is sent.
//! Not here: what it says, and when it is fetched again.

use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{Method, StatusCode};

use crate::client::{Call, Client};
use crate::fault::Fault;
use crate::url::Url;

/// Fetches a document of so many bytes at most, within what the client's bounds say.
///
/// # Errors
/// [`Fault`].
pub async fn fetched(
    client: &Client,
    url: &Url,
    accept: &'static str,
    bytes_max: usize,
) -> Result<Bytes, Fault> {
    let mut call = Call::new(Method::GET, url, bytes_max);
    call.headers
        .insert(ACCEPT, HeaderValue::from_static(accept));
    let reply = client.send(&call).await?;
    if reply.status != StatusCode::OK {
        return Err(reply.refusal());
    }
    if !reply.is_whole() {
        return Err(Fault::Large(bytes_max));
    }
    Ok(reply.body)
}
