//! Addresses for what listens while xtask tries or measures it.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// An address of loopback that was free a moment ago, and that nobody else in this process was given.
pub(crate) fn free_address() -> Result<SocketAddr, String> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0");
        let address = listener.and_then(|listener| listener.local_addr());
        let address = address.map_err(|cause| format!("no free address: {cause}"))?;
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.insert(address.port()) {
            return Ok(address);
        }
    }
}
