//! The command line: output, streams and exit codes.
//!
//! Not here: what the gate does once it runs.

mod check;
mod demo;
mod explain;
mod import;
mod init;
mod live;
mod pages;
mod prices;
mod run;
mod usage;
mod width;

use std::path::Path;

use crate::harness::tollgate;

#[test]
fn version_prints_the_version_of_the_package() {
    let ended = tollgate(Path::new("."), &["version"], &[]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let version = concat!("tollgate ", env!("CARGO_PKG_VERSION"));
    let further = ended.out.strip_prefix(version).expect(&ended.out);
    // Of what is shipped nothing more; the build that tests run is another.
    let is_build = further.starts_with(" (") && further.ends_with(" build)\n");
    assert!(further == "\n" || is_build, "{}", ended.out);
    let flag = tollgate(Path::new("."), &["--version"], &[]);
    assert_eq!((flag.code, flag.out), (Some(0), ended.out));
}

#[test]
fn help_lists_commands_exit_codes_signals_and_environment() {
    let ended = tollgate(Path::new("."), &["--help"], &[]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    for line in [
        "Usage: tollgate [OPTIONS] <COMMAND>",
        "  init         Write a configuration to start from, by what is found here",
        "  import       Make a configuration of another gateway's",
        "  run          Run the gate",
        "  check        Say everything that is wrong with a configuration",
        "  demo         Run two simulated engines and the gate in front of them",
        "  version      Print the version",
        "  schema       Print the JSON Schema of the configuration",
        "  completions  Print what a shell needs to complete this command line",
        "  man          Print the manual page, or write one for each verb",
        "every fault of tollgate.yaml at once",
        "Exit codes: 0 done, 1 refused by configuration or machine, 2 wrong usage.",
        "Signals: SIGTERM waits drain.delay, then drains and ends; SIGINT drains at once.",
        "A further one ends the delay, and one during the drain ends what is left of it.",
    ] {
        assert!(ended.out.contains(line), "no {line:?} in\n{}", ended.out);
    }
    let run = tollgate(Path::new("."), &["run", "--help"], &[]).out;
    for name in [
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
    ] {
        assert!(run.contains(name), "no {name} in\n{run}");
    }
}

#[test]
fn wrong_usage_exits_with_2_and_shows_the_right_usage() {
    for args in [
        &["rnu"][..],
        &["run", "--nope"],
        &[],
        &["check", "-c"],
        &["demo", "--listen", "x"],
    ] {
        let ended = tollgate(Path::new("."), args, &[]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(
            ended.err.contains("Usage: tollgate") || ended.err.contains("--help"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn schema_prints_the_published_schema_with_its_id() {
    let ended = tollgate(Path::new("."), &["schema"], &[]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.schema.json");
    let published = std::fs::read_to_string(published).expect("it is published");
    assert!(ended.out == published, "docs/config.schema.json is another");
    let schema: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(schema["$id"], "urn:tollgate:schema:config:1");
}
