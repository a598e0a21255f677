//! `responses`: what is kept for clients of the Responses API.
//!
//! Not here: keeping it (`tollgate`).

use std::time::Duration;

use crate::decode::Field;
use crate::host::KeptResponses;
use crate::schema::Responses;

const KEEP_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
const BYTES_DEFAULT: usize = 256 << 20;
/// Less holds no conversation of an agent.
const BYTES_MIN: u64 = 1 << 20;

impl super::Lowering<'_> {
    pub(super) fn kept_responses(&mut self, written: &Field<Responses>) -> Option<KeptResponses> {
        let store = written.get()?.store.get()?;
        if let Some(at) = store.size.get().filter(|at| at.value.0 < BYTES_MIN) {
            self.refuse(
                at,
                "leaves no room for a conversation",
                "write 1MiB or more",
            );
        }
        let bytes = store.size.value().map(|size| usize::try_from(size.0));
        Some(KeptResponses {
            keep: store.keep.value().map_or(KEEP_DEFAULT, |span| span.0),
            bytes: bytes.map_or(BYTES_DEFAULT, |bytes| bytes.unwrap_or(usize::MAX)),
        })
    }
}
