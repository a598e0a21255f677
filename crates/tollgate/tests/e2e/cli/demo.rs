//! `tollgate demo`: its introduction and its summary.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use testing::eventually;

use crate::harness::{Connection, Demo, Ended, Gate, chat, post, tollgate};

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
fn every_signal_that_ends_it_has_it_tell_and_take_its_directory_away() {
    for signal in ["TERM", "HUP", "QUIT"] {
        let mut demo = Demo::start();
        let status = demo.signal(signal);
        assert_eq!(status.code(), Some(0), "{signal}");
        let said = demo.read("stdout");
        assert!(said.contains("Served for"), "{signal}: {said}");
        assert_eq!(demo.leftovers(), Vec::<String>::new(), "{signal}");
    }
}

#[test]
fn an_access_log_that_takes_nothing_hides_no_call() {
    let words = ["--workload", "mixed", "--calls", "10", "--every-ms", "20"];
    let ended = by_itself(&["--access-log", "/dev/full"], &words);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let calls = ended.out.lines().filter(|line| is_a_call(line)).count();
    assert_eq!(calls, 10, "{}", ended.out);
    assert!(ended.err.contains("cannot be written"), "{}", ended.err);

    let dir = tempfile::tempdir().expect("a temporary directory");
    let pipe = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let pipe = pipe.to_string_lossy();
    let ended = by_itself(&["--access-log", &pipe], &words);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(ended.err.contains(&*pipe), "{}", ended.err);
}

#[test]
fn lines_that_cannot_be_written_end_it_with_an_error() {
    let binary = Gate::binary();
    let any = "127.0.0.1:0";
    let script = format!(
        "exec \"$0\" demo --listen {any} --admin {any} --on-prem {any} --frontier {any} \
         --workload mixed --calls 50 --every-ms 20 > /dev/full"
    );
    let ended = Command::new("sh")
        .args(["-c", &script])
        .arg(binary)
        .output();
    let ended = ended.expect("sh runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
}

#[test]
fn a_gate_that_has_no_demo_beside_it_says_where_one_comes_from() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let alone = dir.path().join("tollgate");
    // A file that this process had open to write could not be run while another test starts a program.
    let copied = Command::new("cp").arg(Gate::binary()).arg(&alone).status();
    assert!(copied.expect("cp runs").success());
    let ended = Command::new(&alone)
        .arg("demo")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let missing = dir.path().canonicalize().expect("it is there");
    let missing = missing.join("tollgate-demo").display().to_string();
    assert!(
        said.contains(&missing) && said.contains("`cargo build --release`"),
        "{said}"
    );
}

/// A demo that ends by itself.
fn by_itself(options: &[&str], words: &[&str]) -> Ended {
    let any = "127.0.0.1:0";
    let ports = ["--listen", any, "--admin", any, "--on-prem", any];
    let args = [&["demo"], &ports[..], &["--frontier", any], options, words].concat();
    tollgate(Path::new("."), &args, &[])
}

/// Whether a line begins with a time of day.
fn is_a_call(line: &str) -> bool {
    let time = line.get(..8).unwrap_or_default();
    time.matches(':').count() == 2 && time.starts_with(|c: char| c.is_ascii_digit())
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
    let status = demo.interrupt();
    assert_eq!(status.code(), Some(0));
    let last = streaming.response();
    assert!(
        last.whole && last.text().ends_with("data: [DONE]\n\n"),
        "{}",
        last.text()
    );

    let said = demo.read("stdout");
    let tokens = |workload: &str| {
        // Workers write their lines in any order.
        let mut records = demo.records(5).into_iter();
        let record = records.find(|record| record["workload"] == workload);
        let record = record.expect("a record");
        let of = |name: &str| record[name].as_u64().expect("a count").to_string();
        (of("prompt_tokens"), of("completion_tokens"))
    };
    let (summary, report) = said.split_once("Who spent what").expect("a report");
    let row = |name: &str| -> Vec<String> {
        let line = summary
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
    let agent_tokens = tokens("toolbench-agent");
    assert_eq!(agent[5..], [agent_tokens.0.clone(), agent_tokens.1.clone()]);
    assert_eq!(row("terminal-bench-ci"), ["0"; 7]);

    let cells = |begins: &[&str]| -> Vec<String> {
        let mut rows = report.lines().map(|line| line.split_whitespace().collect());
        let row = rows.find(|row: &Vec<&str>| row.starts_with(begins));
        let row = row.unwrap_or_else(|| panic!("no row {begins:?} in\n{report}"));
        row.into_iter().map(str::to_owned).collect()
    };
    assert!(
        report.contains("Drift is what an engine reports"),
        "{report}"
    );
    // exchanges, input, output: calls that were refused spent nothing.
    assert_eq!(cells(&["swe-rebench-ide"])[1], "2");
    let agent = cells(&["toolbench-agent"]);
    assert_eq!(agent[1..4], ["1", &agent_tokens.0, &agent_tokens.1]);
    let at = agent.iter().position(|word| word == "USD").expect("a cost");
    let spent: f64 = agent[at - 1].parse().expect("an amount");
    assert!(spent > 0.0, "{agent:?}");
    // Two witnesses of Harmony's template agree to the token.
    let drift = cells(&["gpt-oss-120b", "input"]);
    assert_eq!(drift[2], "2");
    assert_eq!(drift[3], drift[4], "reported and counted");
    assert_eq!(drift[5..], ["0", "0.00", "%"]);
    assert_eq!(demo.leftovers(), Vec::<String>::new());
}

#[test]
fn a_workload_drives_itself_ends_and_keeps_its_ledger_where_that_is_asked_for() {
    let words = ["--workload", "mixed", "--calls", "30", "--every-ms", "10"];
    let mut demo = Demo::start_with(&[&words[..], &["--seed", "7", "--keep"]].concat());
    let status = demo.ended();
    assert_eq!(status.code(), Some(0), "{}", demo.read("stderr"));
    let said = demo.read("stdout");
    assert!(said.contains("--seed 7\n"), "{said}");
    let records = demo.records(30);
    assert_eq!(records.len(), 30);
    let refused = records.iter().filter(|r| r["outcome"] == "refused").count();
    assert!((1..30).contains(&refused), "{refused} of 30 are refused");
    let kept = said
        .lines()
        .find_map(|line| line.strip_prefix("The ledger is kept: "));
    let kept = kept.unwrap_or_else(|| panic!("not where:\n{said}"));
    let asked = ["usage", "--ledger", kept, "report"];
    let again = tollgate(Path::new("."), &asked, &[]);
    assert!(said.contains(again.out.trim_end()), "{}\n{said}", again.out);
    assert_eq!(demo.leftovers().len(), 1);
}

#[test]
fn ctrl_c_lets_the_calls_that_a_workload_made_end() {
    let words = [
        "--workload",
        "agents",
        "--calls",
        "1000",
        "--every-ms",
        "50",
    ];
    let mut demo = Demo::start_with(&[&words[..], &["--plain", "--seed", "7"]].concat());
    eventually("a call is open", || {
        demo.metric("tollgate_open_exchanges", &[]) >= 1.0
    });
    let status = demo.interrupt();
    assert_eq!(status.code(), Some(0), "{}", demo.read("stderr"));
    let said = demo.read("stdout");
    let agent = said
        .lines()
        .find(|line| line.starts_with("toolbench-agent ") && line.split_whitespace().count() == 8);
    let agent = agent.unwrap_or_else(|| panic!("no row in\n{said}"));
    let counts: Vec<&str> = agent.split_whitespace().collect();
    assert_eq!(counts[5], "0", "aborted: {agent}");
    assert_ne!(counts[2], "0", "completed: {agent}");
}

#[test]
fn ctrl_c_at_the_first_moment_leaves_nothing_behind() {
    for _ in 0..5 {
        let mut demo = Demo::start_with(&["--plain"]);
        let status = demo.interrupt();
        assert_eq!(status.code(), Some(0), "{}", demo.read("stderr"));
        assert_eq!(demo.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn options_of_a_workload_stand_with_a_workload_and_within_bounds() {
    for args in [
        &["--calls", "3"][..],
        &["--every-ms", "3"],
        &["--seed", "3"],
        &["--workload", "odd"],
        &["--workload", "mixed", "--calls", "0"],
        &["--workload", "mixed", "--every-ms", "1"],
    ] {
        let ended = tollgate(Path::new("."), &[&["demo"], args].concat(), &[]);
        assert_eq!(ended.code, Some(2), "{args:?} {}", ended.err);
    }
}
