//! Checking every byte of a corpus.
//!
//! Opening checks `index` and `corpus.json` whole; sessions lie in `bodies` without a gap, and each has the checksum
//! of its bytes, so checking all sessions checks all bytes.
//! Invariant: what passes is what was written, but for changes that a CRC-32 does not see (one in 2^32; never one of
//! 32 bits in a row or fewer).
//! Not here: what makes an index agree with itself (`open`).

use super::{BODIES, Corpus, Session, StoreError};

/// What was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// Sessions.
    pub sessions: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes of `bodies`.
    pub bytes: u64,
}

impl Corpus {
    /// Checks the bytes of every session. `each` is told after each.
    ///
    /// # Errors
    /// The first session whose bytes have another checksum.
    pub fn verify(&self, mut each: impl FnMut(&Verified)) -> Result<Verified, StoreError> {
        let mut done = Verified::default();
        for session in self.sessions() {
            self.verify_session(&session)?;
            done.sessions += 1;
            done.requests += session.len() as u64;
            done.bytes += session.record.len;
            each(&done);
        }
        Ok(done)
    }

    /// Checks the bytes of one session. A head that it shares with a session before is checked there.
    ///
    /// # Errors
    /// When they have another checksum.
    pub fn verify_session(&self, session: &Session<'_>) -> Result<(), StoreError> {
        let record = &session.record;
        let bytes = self.slice(record.start, record.start + record.len);
        if crc32fast::hash(bytes) == record.crc {
            return Ok(());
        }
        let says = format!(
            "the {} bytes of session {} have another checksum",
            record.len,
            session.number()
        );
        Err(self.damaged(BODIES, record.start as usize, says))
    }
}
