//! Output for people fits eighty columns.
//!
//! Not here: tables of the ledger, which have unit tests beside their queries.

use std::path::Path;

use crate::harness::{Connection, Demo, chat, post, tollgate};

fn assert_fits(what: &str, text: &str) {
    assert!(!text.trim().is_empty(), "{what} says nothing");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what}: {line:?}");
    }
}

#[test]
fn every_page_of_help_fits_eighty_columns() {
    let usage = [
        "report",
        "drift",
        "export",
        "verify",
        "backup",
        "salvage",
        "tail",
        "statement",
    ];
    let mut pages: Vec<Vec<&str>> = vec![vec![]];
    pages.extend(
        [
            "init",
            "run",
            "check",
            "demo",
            "schema",
            "usage",
            "completions",
            "man",
            "keys",
            "explain",
        ]
        .map(|verb| vec![verb]),
    );
    pages.extend([vec!["import"], vec!["import", "litellm"]]);
    pages.extend(usage.map(|question| vec!["usage", question]));
    for mut page in pages {
        page.push("--help");
        let ended = tollgate(Path::new("."), &page, &[]);
        assert_eq!(ended.code, Some(0), "{page:?}");
        assert_fits(&page.join(" "), &ended.out);
    }
}

#[test]
fn the_demo_fits_eighty_columns_from_its_first_line_to_its_summary() {
    let mut demo = Demo::start();
    for workload in ["swe-rebench-ide", "toolbench-agent", "nobody"] {
        let header = format!("x-workload-app: {workload}");
        let call = post(
            "/v1/chat/completions",
            &[&header],
            &chat("gpt-oss-120b", false),
        );
        Connection::open(demo.data).call(&call);
    }
    demo.interrupt();
    let said = demo.read("stdout");
    assert!(
        said.contains("terminal-bench-ci") && said.contains("(unregistered)"),
        "{said}"
    );
    assert_fits("the demo", &said);
}

#[test]
fn faults_and_warnings_fit_eighty_columns() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let bad = "listen: { data: 0.0.0.0:1975 }\nworkers: none\n\
               backends: { a: { url: http://127.0.0.1:1/v1 }, b: { url: ftp://127.0.0.1:1/v1 } }\n\
               routes: [ { workload: w, backend: a } ]\n";
    std::fs::write(dir.path().join("tollgate.yaml"), bad).expect("a file");
    let ended = tollgate(dir.path(), &["check"], &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(
        ended.err.ends_with("\n3 faults, 1 warning\n"),
        "{}",
        ended.err
    );
    assert_fits("check", &ended.err);
}

#[test]
fn messages_of_check_fit_eighty_columns() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let environment = [("OPENAI_API_KEY", "canary")];
    let good = tollgate(dir.path(), &["check"], &environment);
    assert_eq!(good.code, Some(0), "{}", good.err);
    assert_fits("check", &(good.err + &good.out));
}
