//! The Realtime API over a WebSocket: each answer is admitted, held, settled and recorded by itself, whoever asked for it.
//!
//! Not here: frames (`wire::websocket`), events (`wire::call`), what an answer holds (`policy::realtime`).

use serde_json::{Value, json};
use testing::eventually;

use crate::harness::{Gate, Sdk, free_address};
use crate::ledger::rows;

const KEY: &str = "a-key-of-a-page-which-is-long-enough";

#[test]
fn the_openai_sdk_speaks_realtime_and_each_answer_is_admitted_and_billed() {
    let service = free_address();
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let config = format!(
        "identity: [ {{ header: x-workload-app, from: 127.0.0.0/8 }}, {{ static_keys: {{ page: {{ inline: {KEY}, workload: page }} }} }} ]\n\
         backends:\n  rt: {{ url: http://{service}/v1, dialect: openai, credential: {{ inline: ours }}, model_names: {{ gpt-realtime: its-realtime }} }}\n  \
         other: {{ url: http://{service}/other, dialect: openai }}\n\
         prices:\n  gpt-realtime: {{ input: 4, cached_input: 0.4, audio_input: 32, output: 16, audio_output: 64, per: 1M }}\n  \
         scribe: {{ input: 2.5, audio_input: 6, output: 10, per: 1M }}\n\
         routes:\n  - {{ workload: [open, page], match: {{ model: [gpt-realtime, scribe] }}, backend: rt }}\n  \
         - {{ workload: open, match: {{ model: elsewhere }}, backend: other }}\n  \
         - {{ workload: tight, match: {{ model: gpt-realtime }}, backend: rt, limits: [ {{ requests: 2, per: 1h }} ] }}\n  \
         - {{ workload: spent, match: {{ model: [gpt-realtime, scribe] }}, backend: rt }}\n  \
         - {{ workload: strict, match: {{ model: [gpt-realtime, scribe] }}, backend: rt, billing: strict }}\n\
         budgets: {{ little: {{ workload: spent, tokens: 20, per: month }} }}\n\
         ledger: {{ path: {} }}\n",
        ledger.display()
    );
    let gate = Gate::start(&config, &[]);
    let input = json!({
        "listen": service.port(),
        "base_url": format!("http://{}", gate.data),
        "model": "gpt-realtime",
        "key": KEY,
    });
    let said = Sdk::Python.run("realtime", &input);
    let checks = [
        "answered",
        "refused",
        "by_itself",
        "limited",
        "ended_by_limit",
        "owed",
        "left",
        "strict",
        "broken",
        "from_a_page",
        "not_let_in",
        "ephemeral",
    ];
    assert_eq!(said["shown"], json!(checks), "{said}");
    for asked in said["seen"].as_array().expect("a list") {
        assert_eq!(asked["path"], "/v1/realtime");
        assert_eq!(asked["query"], json!({ "model": "its-realtime" }));
        assert_eq!(asked["authorization"], json!(["Bearer ours"]));
        assert_eq!(asked["workload"], Value::Null);
        let offered = asked["protocols"].as_str().expect("a text");
        assert!(["", "realtime"].contains(&offered), "{asked}");
    }
    eventually("every session has its record", || {
        let of = |r: &&Value| r["operation"] == "realtime_socket" && r["status"] == 101;
        gate.records(1).iter().filter(of).count() == 16
    });
    let records = gate.records(1);
    let completed = |r: &&Value| r["operation"] == "realtime" && r["outcome"] == "completed";
    let counts = |r: &Value| {
        let members = [
            "model",
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "audio_prompt_tokens",
            "audio_completion_tokens",
        ];
        members.map(|name| r[name].clone())
    };
    let mut told: Vec<[Value; 6]> = records.iter().filter(completed).map(counts).collect();
    let mut served: Vec<[Value; 6]> = said["served"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|of| std::array::from_fn(|at| of[at].clone()))
        .collect();
    // What was made past a limit ended its session, before or after its end was heard.
    let is_past = |of: &[Value; 6]| of[4] == 30 && of[1] == 330;
    served.retain(|of| !is_past(of));
    told.retain(|of| !is_past(of));
    for of in &mut served {
        if of[0] == "its-realtime" {
            of[0] = json!("gpt-realtime");
        }
    }
    let order = |of: &[Value; 6]| format!("{of:?}");
    told.sort_by_key(order);
    served.sort_by_key(order);
    assert_eq!(told, served, "{records:?}");
    let limited = |r: &&Value| r["code"] == "rate_limit_exceeded" && r["operation"] == "realtime";
    assert_eq!(records.iter().filter(limited).count(), 2, "{records:?}");
    let cut = |r: &&Value| r["code"] == "upstream_cut" && r["operation"] == "realtime";
    let cut: Vec<&Value> = records.iter().filter(cut).collect();
    assert_eq!(cut.len(), 1, "{records:?}");
    assert_eq!(cut[0]["completion_source"], "estimated");
    drop(gate);
    the_rows_cost_what_the_prices_say(&rows(&ledger).into_values().collect::<Vec<_>>());
}

fn the_rows_cost_what_the_prices_say(rows: &[Value]) {
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap_or(0);
    let of_workload = |name: &str| {
        let of = move |row: &&Value| row["workload"] == name;
        rows.iter().filter(of).collect::<Vec<_>>()
    };
    // The third ran past the limit, and is owed all the same.
    assert_eq!(of_workload("tight").len(), 3, "{rows:?}");
    assert_eq!(of_workload("spent").len(), 2, "{rows:?}");
    assert_eq!(of_workload("strict").len(), 10, "{rows:?}");
    let left = |row: &&&Value| row["model_asked"] == "scribe" && row["outcome"] == "aborted";
    let open = of_workload("open");
    let left: Vec<&&Value> = open.iter().filter(left).collect();
    assert_eq!(left.len(), 1, "{rows:?}");
    // Three pieces of 6,400 bytes of Base64 with what stands around them, at 6,400 a token.
    assert!(
        (3..=4).contains(&number(left[0], "prompt_tokens")),
        "{}",
        left[0]
    );
    assert!(number(left[0], "completion_tokens") > 0, "{}", left[0]);
    let of = |model: &str| {
        let is = move |row: &&Value| {
            let is_past = row["workload"] == "tight" && row["prompt_tokens"] == 330;
            row["model_asked"] == model && row["outcome"] == "completed" && !is_past
        };
        rows.iter().filter(is).collect::<Vec<_>>()
    };
    assert_eq!(
        (of("gpt-realtime").len(), of("scribe").len()),
        (4, 13),
        "{rows:?}"
    );
    for row in of("gpt-realtime") {
        let (prompt, cached) = (number(row, "prompt_tokens"), number(row, "cached_tokens"));
        let audio = number(row, "audio_prompt_tokens");
        let (completion, made) = (
            number(row, "completion_tokens"),
            number(row, "audio_completion_tokens"),
        );
        let text = prompt - cached - audio;
        // In pico-units: a price per million is so many millions of them.
        let cost = 4_000_000 * text
            + 400_000 * cached
            + 32_000_000 * audio
            + 16_000_000 * (completion - made)
            + 64_000_000 * made;
        assert_eq!(number(row, "cost_pico"), cost, "{row}");
    }
    for row in of("scribe") {
        assert_eq!(
            number(row, "cost_pico"),
            2_500_000 * 5 + 6_000_000 * 25 + 10_000_000 * 7
        );
    }
}
