//! A provider that keeps files and batches for one account, whoever asks, and counts what the calls of batches use.
//!
//! Not here: tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::harness::answer::{json as answer, whole};
use crate::harness::{Seen, Signal, Step, Upstream};

pub(super) struct Provider {
    upstream: Upstream,
    account: Arc<Mutex<Account>>,
}

#[derive(Default)]
struct Account {
    is_over: bool,
    /// Batches that are over name no result yet, and have used nothing that is known.
    is_unnamed: bool,
    /// The first call of each batch fails, and a result has so many lines.
    fails_first: Option<usize>,
    /// What is answered upon a signal, by how it begins and what its path ends in.
    held: Option<(Signal, [&'static str; 2])>,
    files: BTreeMap<String, (String, Vec<u8>)>,
    batches: BTreeMap<String, Batch>,
    served: BTreeMap<String, (u64, u64)>,
}

struct Batch {
    input: String,
    output: String,
    calls: Vec<(String, String)>,
    is_served: bool,
}

impl Provider {
    /// One whose batches are over when they are asked for, or only once [`Provider::finish`] was said.
    pub(super) fn start(is_over: bool) -> Self {
        let account = Arc::new(Mutex::new(Account {
            is_over,
            ..Account::default()
        }));
        let of = Arc::clone(&account);
        let upstream = Upstream::start(move |_, seen| {
            let mut account = of.lock().unwrap_or_else(PoisonError::into_inner);
            let held = account.held.clone();
            let held = held.filter(|(_, [start, end])| {
                let path = seen.head.split(' ').nth(1).unwrap_or_default();
                seen.head.starts_with(start) && path.ends_with(end)
            });
            let answer = Step::Send(account.answer(seen));
            held.map(|(until, _)| Step::Until(until))
                .into_iter()
                .chain([answer])
                .collect()
        });
        Self { upstream, account }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.upstream.address
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.upstream.seen()
    }

    /// How many requests it had that begin so.
    pub(super) fn asked(&self, start: &str) -> usize {
        let seen = self.seen();
        seen.iter().filter(|of| of.head.starts_with(start)).count()
    }

    /// Batches are made and not told of until [`Provider::let_go`].
    pub(super) fn hold(&self) {
        self.account().held = Some((Signal::default(), ["POST /v1/batches ", ""]));
    }

    /// Results of batches are given once [`Provider::let_go`] was said.
    pub(super) fn hold_results(&self) {
        self.account().held = Some((Signal::default(), ["GET /v1/files/", "-output/content"]));
    }

    pub(super) fn let_go(&self) {
        if let Some((held, _)) = self.account().held.take() {
            held.give();
        }
    }

    /// It has this file or batch no more.
    pub(super) fn forget(&self, id: &str) {
        let mut account = self.account();
        account.files.remove(id);
        account.batches.remove(id);
    }

    /// Its batches are over.
    pub(super) fn finish(&self) {
        self.account().is_over = true;
    }

    /// Its batches are over, and it knows nothing of their results until [`Provider::name_results`].
    pub(super) fn finish_unnamed(&self) {
        let mut account = self.account();
        account.is_over = true;
        account.is_unnamed = true;
    }

    /// Its batches are over, with one call that failed; results break off behind this line, until they are [`Provider::whole`].
    pub(super) fn finish_failing(&self, lines: usize) {
        let mut account = self.account();
        account.is_over = true;
        account.fails_first = Some(lines);
    }

    pub(super) fn whole(&self) {
        self.account().fails_first = Some(usize::MAX);
    }

    pub(super) fn name_results(&self) {
        self.account().is_unnamed = false;
    }

    /// Tokens of prompts and answers of a model's calls.
    pub(super) fn served(&self, model: &str) -> (u64, u64) {
        self.account()
            .served
            .get(model)
            .copied()
            .unwrap_or_default()
    }

    fn account(&self) -> std::sync::MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn answer(&mut self, seen: &Seen) -> Vec<u8> {
        assert_eq!(
            seen.header("authorization").len() + seen.header("x-api-key").len(),
            1
        );
        assert!(seen.header("x-workload-app").is_empty());
        let line = seen.head.lines().next().unwrap_or_default().to_owned();
        let mut words = line.split(' ');
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let path: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        match (method, &*path) {
            ("POST", ["files"]) => self.upload(seen),
            ("GET", ["files", id]) => self
                .file(id)
                .map_or_else(missing, |of| answer(200, &of.to_string())),
            ("GET", ["files", id, "content"]) => match self.files.get(*id) {
                Some((_, bytes)) => {
                    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
                    let lines = lines.take(self.fails_first.unwrap_or(usize::MAX));
                    let bytes: Vec<u8> = lines.flatten().copied().collect();
                    whole(200, "application/octet-stream", &bytes)
                }
                None => missing(),
            },
            ("DELETE", ["files", id]) => match self.files.remove(*id) {
                Some(_) => answer(
                    200,
                    &json!({ "id": id, "object": "file", "type": "file_deleted", "deleted": true })
                        .to_string(),
                ),
                None => missing(),
            },
            ("POST", ["batches"]) => self.begin(seen),
            ("GET", ["batches", id]) | ("POST", ["batches", id, "cancel"]) => self
                .batch(id)
                .map_or_else(missing, |of| answer(200, &of.to_string())),
            ("POST", ["messages", "batches"]) => self.begin_messages(seen),
            ("GET", ["messages", "batches", id])
            | ("POST", ["messages", "batches", id, "cancel"]) => self
                .messages(id)
                .map_or_else(missing, |of| answer(200, &of.to_string())),
            ("GET", ["messages", "batches", id, "results"]) => {
                let output = self.batches.get(*id).map(|of| of.output.clone());
                let found = output.and_then(|output| self.files.get(&output));
                found.map_or_else(missing, |(_, bytes)| {
                    whole(200, "application/x-jsonl", bytes)
                })
            }
            ("DELETE", ["messages", "batches", id]) => match self.batches.remove(*id) {
                Some(_) => answer(
                    200,
                    &json!({ "id": id, "type": "message_batch_deleted" }).to_string(),
                ),
                None => missing(),
            },
            _ => missing(),
        }
    }

    fn upload(&mut self, seen: &Seen) -> Vec<u8> {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        let part = text.find("filename=").expect("a file");
        let begin = part + text[part..].find("\r\n\r\n").expect("a head") + 4;
        let end = begin + text[begin..].find("\r\n--").expect("an end");
        let purpose = if text.contains("\r\n\r\nbatch\r\n") {
            "batch"
        } else {
            "user_data"
        };
        let id = format!("file-{}", self.files.len());
        let bytes = text.as_bytes()[begin..end].to_vec();
        self.files.insert(id.clone(), (purpose.to_owned(), bytes));
        answer(200, &self.file(&id).expect("it is there").to_string())
    }

    fn file(&self, id: &str) -> Option<Value> {
        let (purpose, bytes) = self.files.get(id)?;
        Some(json!({
            "id": id, "object": "file", "type": "file", "bytes": bytes.len(), "size_bytes": bytes.len(), "created_at": 1,
            "filename": "calls.jsonl", "mime_type": "text/plain", "downloadable": false, "purpose": purpose, "status": "processed",
        }))
    }

    fn begin(&mut self, seen: &Seen) -> Vec<u8> {
        let asked: Value = serde_json::from_slice(&seen.body).expect("JSON");
        let input = asked["input_file_id"].as_str().expect("a file").to_owned();
        let (_, bytes) = self.files.get(&input).expect("it is there");
        let lines = String::from_utf8(bytes.clone()).expect("text");
        let calls = lines.lines().map(|line| {
            let line: Value = serde_json::from_str(line).expect("a call");
            let text = |of: &Value| of.as_str().expect("text").to_owned();
            (text(&line["custom_id"]), text(&line["body"]["model"]))
        });
        let calls = calls.collect();
        let id = self.keep(input, calls, "batch");
        answer(200, &self.batch_now(&id, false).to_string())
    }

    fn keep(&mut self, input: String, calls: Vec<(String, String)>, kind: &str) -> String {
        let id = format!("{kind}_{}", self.batches.len());
        let output = format!("{id}-output");
        let batch = Batch {
            input,
            output,
            calls,
            is_served: false,
        };
        self.batches.insert(id.clone(), batch);
        id
    }

    /// Makes the calls of a batch, once.
    fn serve(&mut self, id: &str, line: impl Fn(&str, &str, (u64, u64)) -> Value) {
        let Some(batch) = self.batches.get_mut(id).filter(|batch| !batch.is_served) else {
            return;
        };
        batch.is_served = true;
        let mut lines = String::new();
        for (nth, (custom, model)) in batch.calls.iter().enumerate() {
            if nth == 0 && self.fails_first.is_some() {
                let failed = json!({ "id": "r", "custom_id": custom, "error": null, "response": {
                    "status_code": 500, "request_id": "q", "body": { "error": { "message": "no" } } } });
                lines.push_str(&format!("{failed}\n"));
                continue;
            }
            let used = (100 + nth as u64, 7);
            let sum = self.served.entry(model.clone()).or_default();
            *sum = (sum.0 + used.0, sum.1 + used.1);
            lines.push_str(&line(custom, model, used).to_string());
            lines.push('\n');
        }
        let output = (String::from("batch_output"), lines.into_bytes());
        self.files.insert(batch.output.clone(), output);
    }

    fn batch(&mut self, id: &str) -> Option<Value> {
        self.batches.get(id)?;
        if self.is_over {
            self.serve(id, |custom, model, (prompt, completion)| {
                json!({
                    "id": "r", "custom_id": custom, "error": null,
                    "response": { "status_code": 200, "request_id": "q", "body": {
                        "model": format!("{model}-2026-01-01"),
                        "usage": { "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion },
                    } },
                })
            });
        }
        Some(self.batch_now(id, self.is_over))
    }

    fn batch_now(&self, id: &str, is_over: bool) -> Value {
        let batch = &self.batches[id];
        let is_named = is_over && !self.is_unnamed;
        let failed = usize::from(is_over && self.fails_first.is_some());
        let answered = if is_over {
            batch.calls.len() - failed
        } else {
            0
        };
        let mut told = json!({
            "id": id, "object": "batch", "endpoint": "/v1/chat/completions", "completion_window": "24h", "created_at": 1,
            "input_file_id": batch.input,
            "status": if is_over { "completed" } else { "in_progress" },
            "output_file_id": if is_named { json!(batch.output) } else { Value::Null },
            "request_counts": { "total": batch.calls.len(), "completed": answered, "failed": failed },
        });
        if self.is_unnamed {
            told["usage"] = json!({ "input_tokens": 0, "output_tokens": 0, "total_tokens": 0 });
        }
        told
    }

    fn begin_messages(&mut self, seen: &Seen) -> Vec<u8> {
        assert_eq!(seen.header("anthropic-version").len(), 1);
        let asked: Value = serde_json::from_slice(&seen.body).expect("JSON");
        let calls = asked["requests"]
            .as_array()
            .expect("requests")
            .iter()
            .map(|of| {
                let text = |of: &Value| of.as_str().expect("text").to_owned();
                (text(&of["custom_id"]), text(&of["params"]["model"]))
            });
        let calls = calls.collect();
        let id = self.keep(String::new(), calls, "msgbatch");
        answer(200, &self.messages_now(&id, false).to_string())
    }

    fn messages(&mut self, id: &str) -> Option<Value> {
        self.batches.get(id)?;
        if self.is_over {
            self.serve(id, |custom, model, (prompt, completion)| {
                json!({ "custom_id": custom, "result": { "type": "succeeded", "message": {
                    "id": "msg", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn", "stop_sequence": null,
                    "content": [{ "type": "text", "text": "Hi" }],
                    "usage": { "input_tokens": prompt, "output_tokens": completion },
                } } })
            });
        }
        Some(self.messages_now(id, self.is_over))
    }

    fn messages_now(&self, id: &str, is_over: bool) -> Value {
        let results = format!("https://provider.example/v1/messages/batches/{id}/results");
        let counts =
            json!({ "processing": 0, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0 });
        json!({
            "id": id, "type": "message_batch", "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
            "archived_at": null, "cancel_initiated_at": null, "request_counts": counts,
            "ended_at": if is_over { json!("2026-01-01T01:00:00Z") } else { Value::Null },
            "processing_status": if is_over { "ended" } else { "in_progress" },
            "results_url": if is_over { json!(results) } else { Value::Null },
        })
    }
}

fn missing() -> Vec<u8> {
    answer(
        404,
        r#"{"error":{"message":"No such thing","type":"invalid_request_error","param":null,"code":null}}"#,
    )
}
