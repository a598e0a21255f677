//! The demo's live view, in terminals of two sizes.
//!
//! Not here: what the picture has in it, cell by cell (`draw`'s unit tests).

use std::net::SocketAddr;

use testing::{eventually, found};

use crate::harness::{Connection, Gate, Pane, chat, post};

/// A script that runs the demo, and tells what is left of the terminal.
fn script(words: &str) -> String {
    format!(
        "before=$(stty -g); {}; \
         echo \"ended with $?\"; [ \"$before\" = \"$(stty -g)\" ] && echo \"keys as before\"; \
         exec sleep 600",
        command(words)
    )
}

fn command(words: &str) -> String {
    let binary = Gate::binary();
    let any = "127.0.0.1:0";
    format!(
        "{} demo --listen {any} --admin {any} --on-prem {any} --frontier {any} \
         --ttft-ms 20 --inter-token-ms 1 {words}",
        binary.display()
    )
}

fn assert_fits(shown: &str, width: usize, height: usize) {
    assert!(shown.lines().count() <= height, "{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() <= width, "{line:?} in\n{shown}");
    }
}

/// The screen that was there before, with all that was told at the end.
fn assert_restored(pane: &Pane) -> String {
    pane.until("the terminal is as before", |shown| {
        shown.contains("keys as before")
    });
    assert_eq!(pane.value("alternate_on"), "0");
    assert_eq!(pane.value("cursor_flag"), "1");
    let all = pane.history();
    for line in [
        "Tollgate demo: two tiers",
        "Who spent what",
        "tollgate usage drift",
        "Drift is what an engine reports beyond what the gate counts.",
        "ended with 0",
    ] {
        assert!(all.contains(line), "no {line:?} in\n{all}");
    }
    assert_fits(&all, 80, usize::MAX);
    all
}

#[test]
fn a_workload_is_a_picture_at_80_columns_that_leaves_a_report() {
    let words = "--workload mixed --calls 60 --every-ms 60 --seed 7";
    let script = script(words);
    if Pane::run(80, 24, "true").is_none() {
        return testing::skip("there is no tmux");
    }
    // Where this process stands still meanwhile, the picture may be gone before it is looked at.
    let (pane, shown) = found("calls are shown", || {
        let pane = Pane::run(80, 24, &script).expect("there is a tmux");
        let shown = pane.until("calls are shown, or over", |shown| {
            let is_over = shown.contains("keys as before");
            is_over
                || shown.contains("404 workload_not_registered")
                    && shown.matches("200 stream").count() > 3
        });
        (pane.value("alternate_on") == "1").then_some((pane, shown))
    });
    assert_fits(&shown, 80, 24);
    for part in [
        "Tollgate demo  http://127.0.0.1:",
        "  mixed ",
        "limits and budgets",
        "toolbench-agent   tokens   █",
        "full in",
        "everybody         USD",
        "calls",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
    let all = assert_restored(&pane);
    assert!(all.contains("60 calls of the workload mixed"), "{all}");
}

#[test]
fn the_picture_waits_for_calls_grows_with_the_terminal_and_ends_with_ctrl_c() {
    let Some(pane) = Pane::run(80, 24, &script("")) else {
        return testing::skip("there is no tmux");
    };
    let shown = pane.until("the picture is there", |shown| {
        shown.contains("waiting for the first call")
    });
    assert_fits(&shown, 80, 24);
    assert_eq!(shown.matches("curl -i").count(), 3, "{shown}");
    let data = shown
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let data: SocketAddr = data.and_then(|at| at.parse().ok()).expect("an address");

    pane.resize(200, 50);
    pane.until("it uses the room", |shown| shown.contains("callers"));
    for (workload, status) in [("swe-rebench-ide", 200), ("unknown-guest", 404)] {
        let header = format!("x-workload-app: {workload}");
        let call = post(
            "/v1/chat/completions",
            &[&header],
            &chat("gpt-oss-120b", false),
        );
        assert_eq!(Connection::open(data).call(&call).status, status);
    }
    let shown = pane.until("both calls are shown", |shown| {
        shown.contains("200 whole")
            && shown.contains("404 workload_not_registered")
            && shown.contains("0.0000")
    });
    assert_fits(&shown, 200, 50);
    // A key that is pressed is not in the picture, and none ends it without giving the terminal back.
    pane.press("x");
    pane.press("C-\\");
    pane.press("C-z");
    pane.resize(80, 24);
    let shown = pane.until("it fits again", |shown| !shown.contains("callers"));
    assert_fits(&shown, 80, 24);
    pane.press("C-c");
    assert_restored(&pane);
}

#[test]
fn a_demo_whose_window_is_closed_ends() {
    let Some(pane) = Pane::run(80, 24, &format!("exec {}", command(""))) else {
        return testing::skip("there is no tmux");
    };
    pane.until("the picture is there", |shown| {
        shown.contains("waiting for the first call")
    });
    let process = format!("/proc/{}", pane.value("pane_pid"));
    assert!(std::path::Path::new(&process).exists());
    drop(pane);
    eventually("the demo ends", || !std::path::Path::new(&process).exists());
}

#[test]
fn where_no_colours_are_wanted_calls_are_lines() {
    let words = "--workload mixed --calls 20 --every-ms 20 --seed 7";
    let script = format!("export NO_COLOR=1; {}", script(words));
    let Some(pane) = Pane::run(80, 50, &script) else {
        return testing::skip("there is no tmux");
    };
    let all = assert_restored(&pane);
    assert!(all.contains("404 workload_not_registered"), "{all}");
    assert!(all.matches("200 stream").count() > 3, "{all}");
}
