//! Budgets of calls of tools, and what the admin endpoint and `mcp list` show of servers.
//!
//! Not here: budgets of tokens and money (`budgets`).

use serde_json::{Value, json};

use super::bridge::Stream;
use super::{Caller, SECRET, reply, server, url};
use crate::harness::{Gate, Step, Upstream, free_address};

fn config(server: &Upstream, ledger: &std::path::Path) -> String {
    format!(
        "mcp:\n  secret: {{ inline: {SECRET} }}\n  servers:\n    one: {{ url: \"{}\" }}\n  routes:\n    - {{ workload: [agent, other] }}\n\
         ledger: {{ path: {} }}\n\
         budgets:\n  reads: {{ calls: 2, tool: \"*__read\", per: month }}\n  agent: {{ workload: agent, calls: 3, per: month }}\n",
        url(server),
        ledger.display()
    )
}

fn code(told: &super::Told) -> Value {
    told.body["error"]["data"]["code"].clone()
}

#[test]
fn calls_of_tools_have_budgets_that_survive_a_restart() {
    let one = server("one");
    let directory = tempfile::tempdir().expect("a directory");
    let config = config(&one, &directory.path().join("usage.db"));
    let mut gate = Gate::start(&config, &[]);
    let called = || {
        let seen = one.seen();
        let calls = seen.iter().filter(|seen| !seen.body.is_empty());
        calls
            .filter(|seen| seen.json()["method"] == "tools/call")
            .count()
    };
    {
        let (agent, other) = (Caller::begun(&gate, "agent"), Caller::begun(&gate, "other"));
        for caller in [&agent, &other] {
            assert_eq!(caller.call("one__read").body["result"]["tool"], "read");
        }
        // The two reads are used up for all, and what is no call of a tool is not counted.
        let told = agent.call("one__read");
        assert_eq!(
            (told.status, code(&told)),
            (402, json!("insufficient_quota"))
        );
        for _ in 0..5 {
            assert_eq!(agent.tools().0.len(), 2);
        }
        for _ in 0..2 {
            assert_eq!(agent.call("one__delete").body["result"]["tool"], "delete");
        }
        assert_eq!(code(&agent.call("one__delete")), "insufficient_quota");
        assert_eq!(other.call("one__delete").body["result"]["tool"], "delete");
        assert_eq!(called(), 5, "what is refused goes to nobody");
    }
    let shown = |gate: &Gate| {
        let budgets = gate.admin("/api/v1/budgets").json();
        let budgets = budgets["budgets"].as_array().expect("a list").clone();
        let row = |of: &Value| (of["name"].clone(), of["unit"].clone(), of["held"].clone());
        budgets.iter().map(row).collect::<Vec<_>>()
    };
    let spent = [
        (json!("reads"), json!("calls"), json!(2)),
        (json!("agent"), json!("calls"), json!(3)),
    ];
    assert_eq!(shown(&gate), spent);
    gate.signal(libc::SIGTERM);
    assert!(gate.ended().success());
    let gate = Gate::start(&config, &[]);
    assert_eq!(shown(&gate), spent, "read back of the ledger");
    let agent = Caller::begun(&gate, "agent");
    assert_eq!(code(&agent.call("one__delete")), "insufficient_quota");
    assert_eq!(called(), 5);
}

#[test]
fn calls_of_tools_that_are_open_at_a_kill_count_after_it() {
    let upstream = Upstream::start(|_, seen| {
        if seen.body.is_empty() || seen.json()["method"] != "tools/call" {
            return vec![Step::Send(reply("one", seen))];
        }
        vec![Step::silence()]
    });
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = directory.path().join("usage.db");
    let config = config(&upstream, &ledger);
    let mut gate = Gate::start(&config, &[]);
    let caller = Caller::begun(&gate, "agent");
    let calls = ["one__read", "one__delete"].map(|tool| {
        let params = json!({"name": tool, "arguments": {}});
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
        Stream::begin(&caller, &[], &message)
    });
    testing::eventually("both calls are on disk", || open(&ledger) == 2);
    gate.signal(libc::SIGKILL);
    drop(calls);
    gate.wait(testing::PATIENCE);
    let gate = Gate::start(&config, &[]);
    let budgets = gate.admin("/api/v1/budgets").json();
    let held = |nth: usize| budgets["budgets"][nth]["held"].clone();
    assert_eq!((held(0), held(1)), (json!(1), json!(2)), "{budgets}");
}

/// Calls of tools that the ledger has as open.
fn open(ledger: &std::path::Path) -> i64 {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let file = rusqlite::Connection::open_with_flags(ledger, flags).expect("a ledger");
    let sql = "SELECT count(*) FROM open WHERE mcp_method = 'tools/call'";
    file.query_row(sql, [], |row| row.get(0)).expect("a count")
}

#[test]
fn the_admin_endpoint_shows_servers_their_state_and_what_each_workload_sees() {
    let one = server("one");
    let dead = free_address();
    let config = format!(
        "mcp:\n  secret: {{ inline: {SECRET} }}\n  within: 30s\n  servers:\n    one: {{ url: \"{}\" }}\n    dead: {{ url: \"http://{dead}/mcp\" }}\n\
         \x20 routes:\n    - {{ workload: all }}\n    - {{ workload: few, servers: one, tools: {{ deny: [ {{ name: \"*__delete\", when: 'user == null' }} ] }}, prompts: {{ deny: \"*\" }} }}\n",
        url(&one)
    );
    let gate = Gate::start(&config, &[]);
    let told = gate.admin("/api/v1/mcp").json();
    assert_eq!(told["servers"][0]["name"], "dead");
    assert_eq!(told["servers"][1]["state"], "unasked");
    assert_eq!(told["servers"][1]["tools"], Value::Null);
    let caller = Caller::begun(&gate, "all");
    assert_eq!(caller.tools().0, ["one__read", "one__delete"]);
    let _prompts = caller.request("prompts/list", &json!({}));
    let told = gate.admin("/api/v1/mcp").json();
    let (silent, answers) = (&told["servers"][0], &told["servers"][1]);
    assert_eq!(
        (&silent["state"], &silent["tools"]),
        (&json!("silent"), &Value::Null)
    );
    assert!(
        silent["fault"]
            .as_str()
            .is_some_and(|fault| !fault.is_empty()),
        "{silent}"
    );
    assert_eq!(answers["state"], "answers");
    assert_eq!(answers["address"], url(&one));
    assert_eq!(answers["tools"][0]["name"], "read");
    assert_eq!(answers["tools"][0]["state"], "served");
    let digest = answers["tools"][0]["digest"].as_str().expect("a digest");
    assert!(
        digest.starts_with("sha256:") && digest.len() == 71,
        "{digest}"
    );
    assert_eq!(answers["prompts"][1]["name"], "secret");
    let of = |name: &str| {
        let mut of = told["workloads"].as_array().expect("a list").iter();
        of.find(|of| of["workload"] == name)
            .expect("a workload")
            .clone()
    };
    let names = |of: &Value, list: &str| {
        let list = of[list].as_array().expect("a list").iter();
        let row = |of: &Value| (of["name"].clone(), of["conditional"].clone());
        list.map(row).collect::<Vec<_>>()
    };
    let (all, few) = (of("all"), of("few"));
    assert_eq!(all["unavailable"], json!(["dead"]));
    let sees = |delete: bool| {
        [
            (json!("one__read"), json!(false)),
            (json!("one__delete"), json!(delete)),
        ]
    };
    assert_eq!(names(&all, "tools"), sees(false));
    assert_eq!(names(&few, "tools"), sees(true));
    assert_eq!(names(&few, "prompts"), []);
    assert_eq!(told["has_rules"], false);
    let list = |further: &[&str]| {
        let ended = std::process::Command::new(Gate::binary())
            .args(["mcp", "list", "--admin"])
            .arg(format!("http://{}", gate.admin))
            .args(further)
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&ended.stdout).into_owned()
            + &String::from_utf8_lossy(&ended.stderr)
    };
    assert_eq!(
        list(&["--workload", "few"]),
        "2 tools, 25 tokens of a prompt\n  one__read\n  one__delete\n"
    );
    let shown = list(&[]);
    let own = format!("one  {}  answers\n  read\n  delete\n", url(&one));
    assert!(shown.ends_with(&own), "{shown}");
    assert!(
        shown.starts_with(&format!("dead  http://{dead}/mcp  silent: ")),
        "{shown}"
    );
    assert!(list(&["--workload", "nobody"]).contains("no route of mcp is for the workload nobody"));
}
