//! What the lane needs: the suite and the Inspector from npm, each with an SDK of TypeScript, the conformance server and a client of the Go SDK,
//! a client of the Rust SDK, the Python SDK of the end-to-end tests.
//!
//! Not here: what is run of them (`super`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{metadata, root, target_dir};
use crate::command::{run_quietly, run_shown};
use crate::setup;

/// The Inspector, whose own list of what it needs names a package for Windows that not every registry has: it is pinned by its version alone.
pub(super) const INSPECTOR_VERSION: &str = "2.12.0";

/// The server of the suite's makers, of the Go SDK.
const SERVER: &str = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server";
/// Their client, which does what each scenario of a client asks.
const CLIENT: &str = "github.com/modelcontextprotocol/go-sdk/conformance/everything-client";

/// Where everything is.
pub(super) struct Parts {
    pub(super) python: PathBuf,
    pub(super) node: PathBuf,
    pub(super) modules: PathBuf,
    pub(super) inspector: PathBuf,
    pub(super) server: PathBuf,
    pub(super) go_client: PathBuf,
    pub(super) go_scenarios: PathBuf,
    pub(super) rust_client: PathBuf,
    /// Where results and configurations are written.
    pub(super) work: PathBuf,
}

impl Parts {
    /// The SDKs of TypeScript, with the ways to connect that each has: the suite brings the one, the Inspector the other.
    pub(super) fn typescript(&self) -> [(PathBuf, &'static [&'static str]); 2] {
        let inspected = self.inspector.parent().and_then(Path::parent);
        let inspected = inspected.unwrap_or(Path::new("."));
        let of = |modules: &Path, name| modules.join("@modelcontextprotocol").join(name);
        [
            (of(&self.modules, "sdk"), &["legacy"]),
            (of(inspected, "client"), &["legacy", "auto"]),
        ]
    }

    /// The suite, to be told what to do.
    pub(super) fn suite(&self) -> Command {
        let mut suite = Command::new(&self.node);
        let program = "@modelcontextprotocol/conformance/dist/index.js";
        suite.arg(self.modules.join(program));
        suite.current_dir(&self.work);
        suite
    }

    /// Installs and builds what is not there.
    pub(super) fn get() -> Result<Self, String> {
        let work = target_dir(&metadata()?)?.join("conformance-mcp");
        std::fs::create_dir_all(&work).map_err(|cause| format!("{}: {cause}", work.display()))?;
        let (python, node, modules) = setup::mcp_suite()?;
        let inspector = inspector(&node, &work)?;
        let (server, go_client) = (work.join("everything-server"), work.join("go-client"));
        go(SERVER, &server)?;
        go("./client", &go_client)?;
        let go_scenarios = work.join("everything-client");
        go(CLIENT, &go_scenarios)?;
        Ok(Self {
            python,
            node,
            modules,
            inspector,
            server,
            go_client,
            go_scenarios,
            rust_client: rust_client(&work)?,
            work,
        })
    }
}

fn go(package: &str, into: &Path) -> Result<(), String> {
    let mut go = Command::new("nice");
    go.args(["-n", "15", "go", "build", "-trimpath", "-mod=readonly"]);
    go.args(["-buildvcs=false", "-o"]).arg(into).arg(package);
    go.current_dir(root().join("xtask/mcp"))
        .env("CGO_ENABLED", "0");
    run_shown(&mut go).map_err(|says| format!("{says}\nIt is built by Go 1.26 or newer"))
}

fn rust_client(work: &Path) -> Result<PathBuf, String> {
    let target = work.join("rust");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked"]);
    cargo
        .current_dir(root().join("xtask/mcp/rust"))
        .env("CARGO_TARGET_DIR", &target);
    run_shown(&mut cargo)?;
    Ok(target.join("debug/rmcp-client"))
}

/// The program of the Inspector.
fn inspector(node: &Path, work: &Path) -> Result<PathBuf, String> {
    let prefix = work.join(format!("inspector-{INSPECTOR_VERSION}"));
    let program = prefix.join("node_modules/.bin/mcp-inspector");
    if program.exists() {
        return Ok(program);
    }
    std::fs::create_dir_all(&prefix).map_err(|cause| format!("{}: {cause}", prefix.display()))?;
    let home = node
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    let mut npm = Command::new(node);
    npm.arg(home.join("lib/node_modules/npm/bin/npm-cli.js"));
    npm.args([
        "install",
        "--no-package-lock",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]);
    npm.arg("--prefix").arg(&prefix);
    npm.arg(format!(
        "@modelcontextprotocol/inspector@{INSPECTOR_VERSION}"
    ));
    run_quietly(&mut npm)?;
    Ok(program)
}
