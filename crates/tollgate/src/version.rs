//! What `tollgate version` says: the version, and of a build that is not what is shipped, which it is.
//!
//! Invariant: what is shipped (`dist`) says the version alone.
//! Not here: the version of a configuration (`serve`).

/// The line.
pub(crate) fn said() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match env!("TOLLGATE_PROFILE") {
        "dist" => format!("tollgate {version}"),
        profile => format!("tollgate {version} ({profile} build)"),
    }
}
