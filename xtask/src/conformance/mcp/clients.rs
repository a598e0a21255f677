//! Clients as they come, which are told the same by a server and through the gate.
//!
//! Not here: what the clients of the SDKs ask (`xtask/mcp`).

use std::path::Path;
use std::process::Command;

use super::parts::Parts;
use super::running::{Gate, Server};
use crate::cargo::root;
use crate::command::run_quietly;

/// What the Inspector asks: its words behind the address.
const INSPECTED: [&[&str]; 6] = [
    &["tools/list"],
    &["prompts/list"],
    &["resources/list"],
    &["tools/call", "--tool-name", "test_simple_text"],
    &[
        "prompts/get",
        "--prompt-name",
        "test_prompt_with_arguments",
        "--prompt-args",
        "arg1=a",
        "arg2=b",
    ],
    &["resources/read", "--uri", "test://static-text"],
];

/// Compares what each is told, of servers with sessions and without.
pub(super) fn same(parts: &Parts, binary: &Path) -> Result<(), String> {
    for has_sessions in [true, false] {
        let server = Server::start(parts, has_sessions)?;
        let gate = Gate::start(binary, &parts.work, &server.url())?;
        for (name, ask) in asks(parts) {
            let told =
                |url: &str| run_quietly(&mut ask(url)).map_err(|says| format!("{name}: {says}"));
            let (straight, through) = (told(&server.url())?, told(&gate.url())?);
            if straight.is_empty() || straight != through {
                return Err(format!(
                    "{name} is told {straight} by the server, and through the gate {through}"
                ));
            }
            println!("{name}: the same, {} bytes", straight.len());
        }
    }
    Ok(())
}

type Ask<'a> = (String, Box<dyn Fn(&str) -> Command + 'a>);

fn asks(parts: &Parts) -> Vec<Ask<'_>> {
    let program = |path: &Path, url: &str| {
        let mut command = Command::new(path);
        command.arg(url);
        command
    };
    let mut asks: Vec<Ask<'_>> = vec![
        (
            "Go".into(),
            Box::new(move |url| program(&parts.go_client, url)),
        ),
        (
            "Rust".into(),
            Box::new(move |url| program(&parts.rust_client, url)),
        ),
    ];
    let client = |name: &str| root().join("xtask/mcp/client").join(name);
    for mode in ["legacy", "auto"] {
        let ask = move |url: &str| {
            let mut command = Command::new(&parts.python);
            command.arg("-B").arg(client("client.py")).args([url, mode]);
            command
        };
        asks.push((format!("Python ({mode})"), Box::new(ask)));
    }
    for (sdk, modes) in parts.typescript() {
        let name = sdk.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("TypeScript's {name}");
        if !sdk.exists() {
            println!("{name} is not run: {} is not there", sdk.display());
            continue;
        }
        for mode in modes {
            let sdk = sdk.clone();
            let ask = move |url: &str| {
                let mut command = Command::new(&parts.node);
                command.arg(client("client.mjs"));
                command.arg(url).arg(&sdk).arg(mode);
                command
            };
            asks.push((format!("{name} ({mode})"), Box::new(ask)));
        }
    }
    for words in INSPECTED {
        let ask = move |url: &str| {
            let mut command = Command::new(&parts.node);
            command.arg(&parts.inspector).args(["--cli", url]);
            command
                .args(["--transport", "http", "--method"])
                .args(words);
            command
        };
        asks.push((format!("the Inspector's {}", words[0]), Box::new(ask)));
    }
    asks
}
