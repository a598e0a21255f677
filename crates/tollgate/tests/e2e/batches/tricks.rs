//! What a client tries that wants more than it may: in forms, lines, ids and bodies.
//!
//! Not here: the SDKs (`batches`).

use serde_json::{Value, json};

use super::provider::Provider;
use super::{KEY, config};
use crate::harness::{Connection, Gate, Response, post};
use crate::ledger::stop;

fn line(model: &str) -> String {
    json!({ "custom_id": "c", "method": "POST", "url": "/v1/chat/completions", "body": { "model": model, "messages": [] } })
        .to_string()
}

fn part(disposition: &str, value: &str) -> String {
    format!("--xx\r\ncontent-disposition: form-data; {disposition}\r\n\r\n{value}\r\n")
}

const PURPOSE: &str = "name=\"purpose\"";
const FILE: &str = "name=\"file\"; filename=\"f.jsonl\"";

fn sent(gate: &Gate, workload: &str, form: &str) -> Response {
    let head = format!(
        "POST /v1/files HTTP/1.1\r\nhost: localhost\r\nx-workload-app: {workload}\r\n\
         content-type: multipart/form-data; boundary=xx\r\ncontent-length: {}\r\n\r\n",
        form.len()
    );
    Connection::open(gate.data).call((head + form).as_bytes())
}

pub(super) fn upload(gate: &Gate, workload: &str, file: &str) -> Response {
    let form = part(PURPOSE, "batch") + &part(FILE, file) + "--xx--\r\n";
    sent(gate, workload, &form)
}

fn create(gate: &Gate, workload: &str, body: &Value) -> Response {
    let who = format!("x-workload-app: {workload}");
    gate.call(&post("/v1/batches", &[&who], &body.to_string()))
}

pub(super) fn get(gate: &Gate, workload: &str, path: &str) -> Response {
    gate.call(
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-workload-app: {workload}\r\n\r\n")
            .as_bytes(),
    )
}

pub(super) fn id_of(response: &Response) -> String {
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["id"].as_str().expect("an id").to_owned()
}

/// Sends so many calls: the id of their file.
pub(super) fn uploaded(gate: &Gate, workload: &str, model: &str, calls: usize) -> String {
    let file = format!("{}\n", line(model)).repeat(calls);
    id_of(&upload(gate, workload, &file))
}

fn asked(file: &str) -> Value {
    json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h" })
}

/// Has a batch made of a file.
pub(super) fn batch_of(gate: &Gate, workload: &str, file: &str) -> Response {
    create(gate, workload, &asked(file))
}

/// The same, by a client that may leave.
pub(super) fn batch_asked(gate: &Gate, workload: &str, file: &str) -> Connection {
    let who = format!("x-workload-app: {workload}");
    let mut client = Connection::open(gate.data);
    client.send(&post("/v1/batches", &[&who], &asked(file).to_string()));
    client
}

/// Sends so many calls, and has a batch made of them.
pub(super) fn begin(gate: &Gate, workload: &str, model: &str, calls: usize) -> Response {
    batch_of(gate, workload, &uploaded(gate, workload, model, calls))
}

pub(super) fn delete(gate: &Gate, workload: &str, path: &str) -> Response {
    gate.call(
        format!("DELETE {path} HTTP/1.1\r\nhost: localhost\r\nx-workload-app: {workload}\r\n\r\n")
            .as_bytes(),
    )
}

#[test]
fn nothing_is_sent_that_two_servers_could_read_in_two_ways() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let gate = Gate::start(&config(&provider, &dir.path().join("usage.db"), ""), &KEY);
    let (good, bad) = (line("m1"), line("m2"));
    let end = "--xx--\r\n";
    let purpose = part(PURPOSE, "batch");
    for form in [
        purpose.clone() + &part(FILE, &good) + &part(FILE, &bad) + end,
        part(FILE, &good) + end,
        purpose.clone() + &purpose + &part(FILE, &good) + end,
        part(PURPOSE, "user_data") + &purpose + &part(FILE, &good) + end,
        part(PURPOSE, "fine-tune") + &part(FILE, &good) + end,
        purpose.clone() + &part("name=\"file\"; filename=\"a\\\"; name=\\\"purpose\"", &good) + end,
        purpose.clone() + &part("name=\"file\"", &good) + end,
        purpose.clone() + &part(FILE, &good) + &part("name=\"File\"; filename=\"g\"", &bad) + end,
        purpose + &part(FILE, &good),
    ] {
        let refused = sent(&gate, "b", &form);
        assert_eq!(
            (refused.status, &*refused.code()),
            (400, "upload_invalid"),
            "{form}: {}",
            refused.text()
        );
    }
    let twice = good.replace(
        "\"model\":\"m1\"",
        "\"model\":\"m1\",\"m\\u006fdel\":\"m2\"",
    );
    let long = good.replace("[]", &format!("[\"{}\"]", "x".repeat(9 << 20)));
    for (file, at) in [
        (format!("{good}\n{bad}\n"), 2),
        (format!("{good}\r\n{good}\r\n{bad}"), 3),
        (format!("{good}\n\n{good}"), 2),
        (format!("\u{feff}{good}"), 1),
        (format!("{good}\r{bad}"), 1),
        (format!("{good}\u{2028}{bad}"), 1),
        (format!("{good}\n{twice}"), 2),
        (good.replace("/v1/chat/completions", "/v1/files"), 1),
        (format!("{good}\n{long}"), 2),
        (String::new(), 1),
    ] {
        let refused = upload(&gate, "b", &file);
        let told = refused.text();
        assert_eq!(
            (refused.status, &*refused.code()),
            (400, "batch_call_refused"),
            "{told}"
        );
        assert!(told.contains(&format!("call {at} of the batch")), "{told}");
    }
    assert!(provider.seen().is_empty());
    assert_eq!(upload(&gate, "b", &format!("{good}\r\n{good}")).status, 200);
    stop(gate);
}

#[test]
fn an_id_of_another_workload_is_none_in_paths_and_in_bodies() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let gate = Gate::start(&config(&provider, &dir.path().join("usage.db"), ""), &KEY);
    let file = id_of(&upload(&gate, "a", &line("m2")));
    let body = json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h" });
    let before = provider.seen().len();
    let theirs = create(&gate, "b", &body);
    let unknown = create(
        &gate,
        "b",
        &json!({ "input_file_id": "file-none", "endpoint": "/v1/chat/completions" }),
    );
    assert_eq!(
        (theirs.status, theirs.text()),
        (404, unknown.text()),
        "told apart"
    );
    for path in ["", "/content"] {
        let (theirs, none) = (
            get(&gate, "b", &format!("/v1/files/{file}{path}")),
            get(&gate, "b", &format!("/v1/files/file-none{path}")),
        );
        assert_eq!((theirs.status, theirs.text()), (404, none.text()));
    }
    // No spelling of an id is another's.
    for path in [
        "/v1/files/file%2D0",
        "/v1/files/./file-0",
        "/v1/files/x/../file-0",
        "/v1/files//file-0",
    ] {
        let refused = get(&gate, "a", path);
        assert!(
            matches!(refused.status, 400 | 404),
            "{path}: {}",
            refused.text()
        );
    }
    assert_eq!(provider.seen().len(), before);
    let batch = id_of(&create(&gate, "a", &body));
    assert_eq!(get(&gate, "b", &format!("/v1/batches/{batch}")).status, 404);
    let own = get(&gate, "a", &format!("/v1/batches/{batch}")).json();
    let output = own["output_file_id"].as_str().expect("a result").to_owned();
    assert_eq!(
        get(&gate, "b", &format!("/v1/files/{output}/content")).status,
        404
    );
    assert_eq!(
        get(&gate, "a", &format!("/v1/files/{output}/content")).status,
        200
    );
    // A result is no file of calls.
    let again = create(
        &gate,
        "a",
        &json!({ "input_file_id": output, "endpoint": "/v1/chat/completions" }),
    );
    assert_eq!(
        (again.status, &*again.code()),
        (400, "upload_invalid"),
        "{}",
        again.text()
    );
    let list = get(&gate, "b", "/v1/files").json();
    assert_eq!(list["data"], json!([]));
    let put = gate.call(format!("PUT /v1/files/{file} HTTP/1.1\r\nhost: localhost\r\nx-workload-app: a\r\ncontent-length: 0\r\n\r\n").as_bytes());
    assert_eq!(
        (put.status, put.header("allow")),
        (405, Some("GET, DELETE"))
    );
    stop(gate);
}
