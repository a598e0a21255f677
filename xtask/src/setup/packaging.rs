//! What `cargo xtask dist` makes and tries packages with.

use std::process::Command;

use super::debian::{self, install_package};
use crate::command::run_quietly;

/// Programs by their packages.
const PROGRAMS: &[(&str, &str)] = &[
    ("xz", "xz-utils"),
    ("objcopy", "binutils"),
    ("openssl", "openssl"),
    ("mmdebstrap", "mmdebstrap"),
    ("systemd-analyze", "systemd"),
    ("systemd-nspawn", "systemd-container"),
    ("podman", "podman"),
    ("skopeo", "skopeo"),
    ("umoci", "umoci"),
    ("lintian", "lintian"),
];

pub(super) fn install() -> Result<(), String> {
    for (program, package) in PROGRAMS {
        debian::install(program, package)?;
    }
    // Debian's Python comes without what makes environments.
    if run_quietly(Command::new("python3").args(["-c", "import ensurepip"])).is_err() {
        install_package("python3-venv")?;
    }
    Ok(())
}
