//! Why an attempt failed, in the words of the system or of TLS: for the log, never for a client.
//!
//! A failure is a word of policy and has no text of its own, so the text is left here where the failure is
//! made, and taken where it is told.
//! Invariant: whoever makes one of the failures that [`of`] asks for tells why in the same poll, so that no
//! other exchange's text is taken.
//! Not here: when a line is written (`telemetry`).

use std::cell::RefCell;
use std::fmt::Display;

use policy::attempt::Failure;

thread_local! {
    static WHY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Leaves the reason of a failure that is about to be returned.
#[cold]
pub(crate) fn tell(why: impl Display) {
    WHY.with_borrow_mut(|kept| *kept = why.to_string());
}

/// A failure with its reason.
#[cold]
pub(crate) fn of(failure: Failure) -> String {
    let code = failure.code();
    match failure {
        Failure::Resolve
        | Failure::Connect
        | Failure::Tls
        | Failure::Malformed
        | Failure::Proxy
        | Failure::LocalCapacity => {
            let why = WHY.take();
            format!("{code}: {why}")
        }
        Failure::Status(status) => format!("{code}: {status}"),
        Failure::ConnectTimeout
        | Failure::FirstByteTimeout
        | Failure::Reset
        | Failure::BadResponse
        | Failure::Credential
        | Failure::Untranslatable
        | Failure::Exhausted => code.to_owned(),
    }
}
