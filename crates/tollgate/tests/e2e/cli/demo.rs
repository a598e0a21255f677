//! `tollgate demo`: its introduction and its summary.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use crate::harness::{Connection, Demo, chat, post, tollgate};

#[test]
fn demo_prints_an_example_call_for_each_identity() {
    let demo = Demo::start();
    let said = demo.read("stdout");
    for workload in ["swe-rebench-ide", "toolbench-agent", "unknown-guest"] {
        let curl = format!("-H 'x-workload-app: {workload}'");
        let sdk = format!("default_headers={{\"x-workload-app\": \"{workload}\"}}");
        assert!(
            said.contains(&curl) && said.contains(&sdk),
            "{workload} in\n{said}"
        );
    }
    let asks = |workload: &str, model: &str| {
        let call = said
            .split("curl -i")
            .find(|call| call.contains(&format!("app: {workload}'")));
        let call = call.unwrap_or_default().split("OpenAI(").next();
        let body = format!("{{\"model\":\"{model}\",");
        assert!(
            call.is_some_and(|call| call.contains(&body)),
            "{workload} asks for {model}: {said}"
        );
    };
    asks("swe-rebench-ide", "gpt-oss-120b");
    asks("toolbench-agent", "gemini-2.5-flash");
    assert!(said.contains("create(model=\"gemini-2.5-flash\""), "{said}");
    assert!(
        said.contains(&format!("curl -i {}/chat/completions", demo.base_url())),
        "{said}"
    );
    assert!(!said.contains('\x1b'), "no colours but on a terminal");
}

#[test]
fn a_port_in_use_is_reported_with_the_option_that_chooses_another() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = held.local_addr().expect("it is bound").to_string();
    let any = "127.0.0.1:0";
    for option in ["--on-prem", "--frontier", "--listen", "--admin"] {
        let mut args = vec!["demo"];
        for one in ["--on-prem", "--frontier", "--listen", "--admin"] {
            args.extend([one, if one == option { &held } else { any }]);
        }
        let ended = tollgate(Path::new("."), &args, &[]);
        assert_eq!(ended.code, Some(1), "{option} {}", ended.err);
        assert!(
            ended.err.contains(&held) && ended.err.contains("choose another"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn ctrl_c_drains_and_prints_a_summary_to_the_last_call() {
    let mut demo = Demo::start();
    let ask = |workload: &str, stream: bool| {
        let headers = [&*format!("x-workload-app: {workload}")];
        let mut connection = Connection::open(demo.data);
        connection.send(&post(
            "/v1/chat/completions",
            &headers,
            &chat("gpt-oss-120b", stream),
        ));
        connection
    };
    for status in [200, 200, 429] {
        assert_eq!(ask("swe-rebench-ide", false).response().status, status);
    }
    assert_eq!(ask("unknown-guest", false).response().status, 404);
    let mut streaming = ask("toolbench-agent", true);
    while streaming.unread().is_empty() {
        assert!(streaming.more(), "the stream begins");
    }
    let status = demo.interrupt(Duration::from_secs(20));
    assert_eq!(status.code(), Some(0));
    let last = streaming.response();
    assert!(
        last.whole && last.text().ends_with("data: [DONE]\n\n"),
        "{}",
        last.text()
    );

    let said = demo.read("stdout");
    let tokens = |n: usize| {
        let record = &demo.records(5)[n];
        let of = |name: &str| record[name].as_u64().expect("a count").to_string();
        (of("prompt_tokens"), of("completion_tokens"))
    };
    let row = |name: &str| -> Vec<String> {
        let line = said
            .lines()
            .rfind(|l| l.split_whitespace().next() == Some(name) && !l.contains(':'));
        let line = line.unwrap_or_else(|| panic!("no row of {name} in\n{said}"));
        line.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    // requests, completed, refused, failed, aborted, tokens in, tokens out
    assert_eq!(row("swe-rebench-ide")[..5], ["3", "2", "1", "0", "0"]);
    assert_eq!(row("(unregistered)")[..5], ["1", "0", "1", "0", "0"]);
    let agent = row("toolbench-agent");
    assert_eq!(
        agent[..5],
        ["1", "1", "0", "0", "0"],
        "the stream that drained is in it"
    );
    let (prompt, completion) = tokens(4);
    assert_eq!(agent[5..], [prompt, completion]);
    assert_eq!(row("terminal-bench-ci"), ["0"; 7]);
}
