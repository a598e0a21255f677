//! How others call the processor that this machine has: packages are made for the one that they are made on.

/// As Rust and glibc say it.
pub(super) const MACHINE: &str = std::env::consts::ARCH;

/// As Debian and images for containers say it.
pub(super) const DEBIAN: &str = match cfg!(target_arch = "aarch64") {
    true => "arm64",
    false => "amd64",
};

/// As Node says it.
pub(super) const NODE: &str = match cfg!(target_arch = "aarch64") {
    true => "arm64",
    false => "x64",
};

/// What is built for.
pub(super) const TARGET: &str = match cfg!(target_arch = "aarch64") {
    true => "aarch64-unknown-linux-gnu",
    false => "x86_64-unknown-linux-gnu",
};
