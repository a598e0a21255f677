//! Streams of servers of tools: what they say outside calls, and streams that are taken up again.
//!
//! Not here: the streams of whole calls (`super`).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use testing::eventually;

use super::{Caller, config, reply, server, url};
use crate::harness::answer::{chunk, events_head};
use crate::harness::{Gate, Seen, Step, Upstream};

/// A stream that a client listens to.
pub(super) struct Listening {
    tcp: TcpStream,
    heard: Vec<u8>,
}

impl Listening {
    pub(super) fn begin(caller: &Caller<'_>, fields: &str) -> Self {
        let listening = Self::maybe(caller, fields);
        assert!(
            listening.is_stream(),
            "{}",
            String::from_utf8_lossy(&listening.heard)
        );
        listening
    }

    /// Whether it is one.
    pub(super) fn is_stream(&self) -> bool {
        self.heard.starts_with(b"HTTP/1.1 200")
    }

    /// The same, where it may be refused.
    pub(super) fn maybe(caller: &Caller<'_>, fields: &str) -> Self {
        let session = caller.session.as_deref().expect("a session");
        let head = format!(
            "GET {} HTTP/1.1\r\nhost: g\r\nx-workload-app: {}\r\naccept: text/event-stream\r\n\
             mcp-session-id: {session}\r\n{fields}\r\n",
            caller.path, caller.workload
        );
        Self::sent(caller, &head)
    }

    /// The answer to a message that is a stream.
    pub(super) fn posted(caller: &Caller<'_>, fields: &str, message: &Value) -> Self {
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: g\r\nx-workload-app: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{fields}\r\n{body}",
            caller.workload,
            body.len()
        );
        Self::sent(caller, &head)
    }

    fn sent(caller: &Caller<'_>, request: &str) -> Self {
        let mut tcp = TcpStream::connect(caller.gate.data).expect("the gate listens");
        tcp.set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a socket option");
        tcp.write_all(request.as_bytes()).expect("it is taken");
        let mut listening = Self {
            tcp,
            heard: Vec::new(),
        };
        listening.until("\r\n\r\n");
        listening
    }

    /// Reads to the end of the stream; all that it has heard.
    pub(super) fn rest(&mut self) -> String {
        let ended = b"0\r\n\r\n";
        let mut bytes = [0; 4096];
        while !self.heard.ends_with(ended) {
            let read = self
                .tcp
                .read(&mut bytes)
                .expect("an end before the time is up");
            if read == 0 {
                break;
            }
            self.heard.extend_from_slice(&bytes[..read]);
        }
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    /// Reads until it has heard this; all that it has heard.
    pub(super) fn until(&mut self, what: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&self.heard).into_owned();
            if text.contains(what) {
                return text;
            }
            let read = self
                .tcp
                .read(&mut bytes)
                .expect("more before the time is up");
            assert_ne!(read, 0, "it ended before {what}: {text}");
            self.heard.extend_from_slice(&bytes[..read]);
        }
    }
}

/// The ids of the events in a text.
fn ids(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect()
}

fn is_get(seen: &Seen) -> bool {
    seen.head.starts_with("GET ")
}

fn event(id: Option<&str>, message: &Value) -> Vec<u8> {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    chunk(format!("{id}data: {message}\n\n").as_bytes())
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A server that says these on its stream, and then nothing.
fn saying(name: &'static str, said: Vec<Vec<u8>>) -> Upstream {
    Upstream::start(move |_, seen| {
        if !is_get(seen) {
            return vec![Step::Send(reply(name, seen))];
        }
        let mut steps = vec![Step::Send(events_head())];
        steps.extend(said.iter().cloned().map(Step::Send));
        steps.push(Step::silence());
        steps
    })
}

#[test]
fn what_servers_say_outside_calls_is_heard_on_one_stream_as_far_as_filters_let_it() {
    let asks = json!({"jsonrpc": "2.0", "id": 3, "method": "roots/list"});
    let updated = |uri: &str| notification("notifications/resources/updated", &json!({"uri": uri}));
    let one = saying(
        "one",
        vec![
            event(None, &asks),
            event(
                None,
                &json!({"jsonrpc": "2.0", "id": 1, "result": "forged"}),
            ),
            event(None, &updated("file:///etc/passwd")),
            event(None, &updated("file:///secret")),
            event(None, &updated("file:///x/../secret")),
            event(None, &updated("file:///a")),
            chunk(b"data: no message\n\n"),
        ],
    );
    let two = saying(
        "two",
        vec![event(
            None,
            &notification("notifications/tools/list_changed", &json!({})),
        )],
    );
    let none = server("none");
    let servers = format!(
        "    one: {{ url: \"{}\", resources: {{ deny: \"file:///etc/*\" }} }}\n    two: {{ url: \"{}\" }}\n    none: {{ url: \"{}\" }}",
        url(&one),
        url(&two),
        url(&none)
    );
    let rules = "authority: { rules: [ { name: no-secrets, deny: \"path == 'one+file:///secret'\" }, { name: rest, allow: \"true\" } ] }\n";
    let gate = Gate::start(
        &(config(&servers, "    - { workload: agent }") + rules),
        &[],
    );
    let caller = Caller::begun(&gate, "agent");
    let mut listening = Listening::begin(&caller, "");
    listening.until("list_changed");
    listening.until("\"one~3\"");
    let heard = listening.until("one+file:///a");
    assert!(
        heard.starts_with("HTTP/1.1 200") && heard.contains("text/event-stream"),
        "{heard}"
    );
    assert!(
        ["passwd", "secret", "no message", "forged"]
            .iter()
            .all(|hidden| !heard.contains(hidden)),
        "{heard}"
    );
    let answer = json!({"jsonrpc": "2.0", "id": "one~3", "result": {"roots": []}});
    assert_eq!(
        caller
            .send("POST", &[], answer.to_string().as_bytes())
            .status,
        202
    );
    let told = one.seen().pop().expect("an answer").json();
    assert_eq!(
        told,
        json!({"jsonrpc": "2.0", "id": 3, "result": {"roots": []}})
    );
    assert!(
        !two.seen()
            .iter()
            .any(|seen| !seen.body.is_empty() && seen.json()["id"] == 3)
    );
    let subscribed = caller.request("resources/subscribe", &json!({"uri": "one+file:///a"}));
    assert_eq!(subscribed.status, 200, "{}", subscribed.body);
    let asked = one.seen().pop().expect("a subscription").json();
    assert_eq!(asked["params"]["uri"], "file:///a");
    drop(listening);
    eventually("the stream is recorded once its client has left", || {
        gate.records(1)
            .iter()
            .any(|record| record["streamed"] == true && record["outcome"] == "completed")
    });
}

#[test]
fn a_change_that_a_server_tells_of_is_known_to_all_workers_at_once() {
    told_to_all(|_, _| {});
}

#[test]
fn a_change_that_a_stream_from_before_a_reload_tells_of_is_known_after_it() {
    told_to_all(|gate, config| {
        gate.reconfigure(&format!("{config}bounds: {{ body: 1MiB }}\n"));
        eventually("the reload", || {
            gate.log().matches("configuration taken").count() == 1
        });
        // A scrape is queued to every worker behind the message with the new configuration.
        gate.metrics();
    });
}

/// A server tells a standing stream that its tools changed, after `between`: they are listed anew.
fn told_to_all(between: impl FnOnce(&Gate, &str)) {
    let listed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counts = std::sync::Arc::clone(&listed);
    let changed = crate::harness::Signal::default();
    let told = changed.clone();
    let one = Upstream::start(move |_, seen| {
        if is_get(seen) {
            let change = notification("notifications/tools/list_changed", &json!({}));
            return vec![
                Step::Send(events_head()),
                Step::Until(told.clone()),
                Step::Send(event(None, &change)),
                Step::silence(),
            ];
        }
        if seen.json()["method"] == "tools/list" {
            counts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        vec![Step::Send(reply("one", seen))]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let config = "workers: 2\n".to_owned() + &config(&servers, "    - { workload: agent }");
    let gate = Gate::start(&config, &[]);
    let caller = Caller::begun(&gate, "agent");
    let mut listening = Listening::begin(&caller, "");
    between(&gate, &config);
    let lists = || listed.load(std::sync::atomic::Ordering::SeqCst);
    for _ in 0..20 {
        caller.tools();
    }
    let before = lists();
    // Each worker asks once, and once more where it took a call before the new configuration.
    assert!(before <= 4, "lists are kept: {before}");
    changed.give();
    listening.until("list_changed");
    for _ in 0..20 {
        caller.tools();
    }
    assert!(lists() > before, "it was asked again");
}

#[test]
fn a_stream_is_taken_up_where_it_broke_off_by_its_own_client_alone() {
    let log = |n: usize| notification("notifications/message", &json!({"data": n}));
    let again = move |name: &'static str, first: usize| {
        Upstream::start(move |_, seen| {
            if !is_get(seen) {
                return vec![Step::Send(reply(name, seen))];
            }
            let from = seen.header("last-event-id");
            let next = from.first().map_or(first, |id| {
                id.trim_start_matches('e').parse::<usize>().expect("an id") + 1
            });
            vec![
                Step::Send(events_head()),
                Step::Send(event(Some(&format!("e{next}")), &log(next))),
                Step::silence(),
            ]
        })
    };
    let (one, two) = (again("one", 1), again("two", 100));
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&two)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: [ada, ben] }"), &[]);
    let ada = Caller::begun(&gate, "ada");
    let mut listening = Listening::begin(&ada, "");
    listening.until("\"data\":1}");
    let heard = listening.until("\"data\":100}");
    let last = ids(&heard).pop().expect("an id").to_owned();
    drop(listening);
    let mut listening = Listening::begin(&ada, &format!("last-event-id: {last}\r\n"));
    listening.until("\"data\":2}");
    let heard = listening.until("\"data\":101}");
    assert!(!heard.contains("\"data\":1}"), "{heard}");
    let ben = Caller::begun(&gate, "ben");
    for (caller, id) in [(&ben, &*last), (&ada, "e1"), (&ada, &last[1..])] {
        let told = caller.send("GET", &[&format!("last-event-id: {id}")], b"");
        assert_eq!(told.status, 400, "{}", told.body);
    }
}

#[test]
fn a_call_whose_server_ends_the_stream_to_be_asked_again_is_answered_on_the_stream_that_is_taken_up()
 {
    let one = Upstream::start(|_, seen| {
        if is_get(seen) {
            assert_eq!(seen.header("last-event-id"), ["p1"]);
            let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"late": true}});
            let other = json!({"jsonrpc": "2.0", "id": 8, "result": "forged"});
            return vec![
                Step::Send(events_head()),
                Step::Send(event(None, &other)),
                Step::Send(event(Some("p2"), &answer)),
                Step::Send(chunk(b"")),
            ];
        }
        if seen.json()["method"] == "tools/call" {
            return vec![
                Step::Send(events_head()),
                Step::Send(chunk(b"id: p1\nretry: 10\ndata:\n\n")),
                Step::Send(chunk(b"")),
            ];
        }
        vec![Step::Send(reply("one", seen))]
    });
    let two = server("two");
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&two)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let told = caller.call("one__read");
    let body = told.body.as_str().expect("events").to_owned();
    assert!(
        body.contains("retry: 10") && !body.contains("error"),
        "{body}"
    );
    let id = ids(&body).pop().expect("an id").to_owned();
    let mut listening = Listening::begin(&caller, &format!("last-event-id: {id}\r\n"));
    let heard = listening.until("\"late\":true");
    assert!(
        heard.contains("\"id\":7") && !heard.contains("forged"),
        "{heard}"
    );
    assert!(
        !two.seen().iter().any(is_get),
        "the rest of a call is one server's"
    );
}

#[test]
fn the_gate_s_own_requests_have_ids_that_no_client_uses() {
    let one = server("one");
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    caller.tools();
    let seen = one.seen();
    let list = seen
        .iter()
        .find(|seen| !seen.body.is_empty() && seen.json()["method"] == "tools/list");
    let id = list.expect("a list").json()["id"].clone();
    assert!(id.as_str().is_some_and(|id| id.len() > 8), "{id}");
}
