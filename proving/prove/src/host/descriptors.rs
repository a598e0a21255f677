//! File descriptors: as many as we may have, and a clear word when they are too few.
//!
//! Invariant: children inherit what is raised here.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors a process needs besides its connections.
const BESIDES: u64 = 100;

/// What the largest scenario wants of one process, with room.
const WANTED: u64 = 65_536;

/// Raises the hard limit where we may, and the soft limit to the hard one; the limit that holds now.
pub(crate) fn raise() -> u64 {
    let hard = getrlimit(Resource::Nofile).maximum;
    if hard.is_some_and(|hard| hard < WANTED) {
        // Only a privileged process may; the rest of us keep what there is.
        let _ = set(Some(WANTED));
    }
    // Where it may not be raised, the limit read back below tells.
    let _ = set(getrlimit(Resource::Nofile).maximum);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Both limits.
fn set(limit: Option<u64>) -> rustix::io::Result<()> {
    let both = Rlimit {
        current: limit,
        maximum: limit,
    };
    setrlimit(Resource::Nofile, both)
}

/// What stands in the way of `connections` through one process, where each takes `each` descriptors:
/// one in client and upstream, two in a gateway.
pub(crate) fn shortage(connections: usize, each: u64, limit: u64) -> Option<String> {
    let needed = each * connections as u64 + BESIDES;
    (needed > limit).then(|| {
        format!("too few file descriptors: {connections} connections need {needed} in one process, the hard limit is {limit} (ulimit -Hn)")
    })
}

#[cfg(test)]
mod tests {
    //! The arithmetic of a shortage.

    use super::shortage;

    #[test]
    fn a_gateway_needs_two_descriptors_a_connection_and_some_for_itself() {
        assert_eq!(shortage(5_000, 2, 20_000), None);
        assert_eq!(shortage(10_000, 1, 20_000), None);
        let says = shortage(10_000, 2, 20_000).expect("20,100 are needed");
        assert!(says.contains("20100") && says.contains("20000"), "{says}");
    }
}
