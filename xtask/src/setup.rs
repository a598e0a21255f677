//! Installs what the end-to-end tests need: Python and Node with the OpenAI SDKs, Locust and an OpenID provider, and programs of
//! the distribution: nginx, promtool, valgrind, tmux, Postgres, Chromium.
//!
//! Invariant: all but programs of the distribution goes under `target/e2e`, pinned by `parts`; a second run
//! only looks.
//! Nothing is skipped in silence: what cannot be installed is an error that says what to do, but for tmux, without which tests are
//! skipped and named.

pub(crate) mod debian;
mod node;
mod packaging;
mod postgres;
mod python;
pub(crate) mod stamp;
pub(crate) mod venv;

use std::path::PathBuf;

use crate::cargo::{metadata, target_dir};
use crate::parts::{END_TO_END_NODE, MCP_NODE};

/// Where the installed parts are.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    pub(crate) python: PathBuf,
    pub(crate) node: PathBuf,
    pub(crate) node_modules: PathBuf,
    pub(crate) chromium: PathBuf,
}

pub(crate) fn run() -> Result<Installed, String> {
    let dir = directory()?;
    let python = python::install(&dir)?;
    let (node, node_modules) = node::install(&dir, &python, "node", END_TO_END_NODE)?;
    debian::install("nginx", "nginx")?;
    debian::install("promtool", "prometheus")?;
    valgrind()?;
    // Tests that need a terminal are skipped without it, and say so.
    if let Err(says) = debian::install("tmux", "tmux") {
        eprintln!("no tmux: {says}");
    }
    postgres::install()?;
    Ok(Installed {
        python,
        node,
        node_modules,
        chromium: debian::install("chromium", "chromium")?,
    })
}

/// A Python with the SDK of the Model Context Protocol, a Node, and the modules of that protocol's conformance suite.
pub(crate) fn mcp_suite() -> Result<(PathBuf, PathBuf, PathBuf), String> {
    let dir = directory()?;
    let python = python::install(&dir)?;
    let (node, modules) = node::install(&dir, &python, "mcp", MCP_NODE)?;
    Ok((python, node, modules))
}

fn directory() -> Result<PathBuf, String> {
    let dir = target_dir(&metadata()?)?.join("e2e");
    std::fs::create_dir_all(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    Ok(dir)
}

/// What scrapes the stack of `deploy/compose`.
pub(crate) fn prometheus() -> Result<(), String> {
    debian::install("prometheus", "prometheus").map(drop)
}

/// What counts instructions.
pub(crate) fn valgrind() -> Result<(), String> {
    debian::install("valgrind", "valgrind").map(drop)
}

/// What packages are made and tried with.
pub(crate) fn packaging() -> Result<(), String> {
    packaging::install()
}
