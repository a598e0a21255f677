//! Pure crates link nothing that waits, opens a socket or starts a thread, not even through others, and reach for no clock, file,
//! variable of the environment, process, thread or socket of the standard library.
//!
//! What they may not call stands in the `clippy.toml` of each, which knows a function by any name; clippy reads the tests of a
//! crate as well, which read files. So their production sources are read here, too, for whole modules of the standard library.
//! Not here: methods that need no such path (`Path::exists`).

use super::Fault;
use super::graph::Graph;
use super::modules;
use super::tree::Tree;

const PURE: &[&str] = &[
    "wire",
    "jose",
    "sigv4",
    "translate",
    "prompts",
    "tokens",
    "policy",
    "config",
    "control",
    "identity",
    "authority",
    "mcp",
    "openapi",
    "experiment",
    "simulator",
];
const EFFECTS: &[&str] = &[
    "tokio",
    "hyper",
    "h2",
    "socket2",
    "mio",
    "rustls",
    "tracing-subscriber",
];

/// Where crates are.
const DIRS: [&str; 2] = ["crates", "proving"];

/// Each is a `disallowed-methods` of each pure crate.
const DISALLOWED: &[&str] = &[
    "std::env::var",
    "std::env::var_os",
    "std::env::vars",
    "std::net::TcpListener::bind",
    "std::net::TcpStream::connect",
    "std::process::exit",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
];

/// What no production source of a pure crate names.
const UNNAMED: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::UNIX_EPOCH",
];

pub(super) fn faults(tree: &Tree, graph: &Graph) -> Vec<Fault> {
    PURE.iter()
        .flat_map(|name| crate_faults(tree, graph, name))
        .collect()
}

/// What is wrong with one crate that is to be pure.
pub(super) fn crate_faults(tree: &Tree, graph: &Graph, name: &str) -> Vec<Fault> {
    let place = format!("crate {name}");
    let Some(member) = graph.members().find(|member| member.name == name) else {
        let says = "is no member: change PURE in xtask/src/tidy/purity.rs";
        return vec![Fault::new(place, says)];
    };
    let mut faults = Vec::new();
    for linked in graph.linked(member) {
        if EFFECTS.contains(&linked.name.as_str()) {
            let says = format!("is pure but links {}", linked.name);
            faults.push(Fault::new(&place, says));
        }
    }
    let dirs = DIRS.map(|dir| format!("{dir}/{name}"));
    let found = dirs
        .iter()
        .find_map(|dir| Some((dir, tree.get(&format!("{dir}/clippy.toml"))?)));
    let Some((dir, clippy)) = found else {
        faults.push(Fault::new(place, "is pure but has no clippy.toml"));
        return faults;
    };
    for path in DISALLOWED {
        if !clippy.text.contains(&format!("path = \"{path}\"")) {
            faults.push(Fault::new(&clippy.path, format!("does not list {path}")));
        }
    }
    for (module, path) in modules::named(tree, dir) {
        if UNNAMED.iter().any(|unnamed| is_below(&path, unnamed)) {
            let says = format!("is pure but names {}", path.join("::"));
            faults.push(Fault::new(format!("{place}, {module}"), says));
        }
    }
    faults
}

/// Whether a path is this one, or leads on from it.
fn is_below(path: &[String], above: &str) -> bool {
    let mut words = path.iter();
    above
        .split("::")
        .all(|word| words.next().is_some_and(|found| found == word))
}
