//! A small API server of Kubernetes for tests, in memory: objects, and who is told of their changes, as a real one does it.
//!
//! Exact are versions, lists in pages, watches from a version on with bookmarks, 410 once what happened since is forgotten, 409 for what was
//! read before another wrote, and merge patches of a status. Invariant: no object is ever judged: what a schema refuses, this one takes.
//! Not here: RBAC beyond whole paths, namespaces' own lives, defaults.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// A collection of objects: `/apis/GROUP/VERSION` and the plural, such as `/apis/apps/v1 deployments`.
type Place = (String, String);

/// One that runs until it is dropped.
pub struct ApiServer {
    /// Where it is, in clear.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What it holds, and how it is ill.
#[derive(Default)]
pub struct State {
    version: u64,
    /// What happened up to here is forgotten.
    forgotten: u64,
    /// Collections that are served.
    served: Vec<Place>,
    objects: BTreeMap<(Place, String, String), Value>,
    events: Vec<(u64, Place, &'static str, Value)>,
    /// Counts those who are told to go: each watch that began before ends.
    ended: u64,
    /// Every request is answered with this.
    pub fails: Option<u16>,
    /// Every watch is told 410, whatever it begins from, as by one whose lists are ahead of what it watches.
    pub forgets: bool,
    /// Paths that begin so are answered with 403.
    pub forbidden: Vec<String>,
    /// What was asked: method, path and query.
    pub asked: Vec<String>,
    /// How many objects a page of a list has at most.
    pub page: Option<usize>,
    bookmarks: u64,
    is_over: bool,
}

impl ApiServer {
    /// One that serves these collections, each as `/apis/GROUP/VERSION/PLURAL`.
    ///
    /// # Panics
    /// When the machine gives no port.
    #[must_use]
    pub fn start(served: &[&str]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = State {
            version: 100,
            served: served.iter().map(|path| place(path)).collect(),
            ..State::default()
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.state().is_over {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// What it holds.
    ///
    /// # Panics
    /// Never: a lock that broke is taken.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Writes an object, as `kubectl apply` would; its status stays.
    pub fn put(&self, collection: &str, object: Value) {
        let mut state = self.state();
        let kept = state.kept(&place(collection), &object);
        let mut object = object;
        if let Some(before) = kept {
            object["status"] = before["status"].clone();
            let generation = before["metadata"]["generation"].as_u64().unwrap_or(1);
            object["metadata"]["generation"] = json!(generation + 1);
        } else {
            object["metadata"]["generation"] = json!(1);
        }
        state.write(&place(collection), object);
        self.shared.changed.notify_all();
    }

    /// Deletes an object.
    pub fn delete(&self, collection: &str, namespace: &str, name: &str) {
        self.state().delete(&place(collection), namespace, name);
        self.shared.changed.notify_all();
    }

    /// An object as it is.
    #[must_use]
    pub fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (place(collection), namespace.to_owned(), name.to_owned());
        self.state().objects.get(&key).cloned()
    }

    /// All objects of a collection.
    #[must_use]
    pub fn all(&self, collection: &str) -> Vec<Value> {
        let of = place(collection);
        let state = self.state();
        let all = state.objects.iter().filter(|((place, ..), _)| *place == of);
        all.map(|(_, object)| object.clone()).collect()
    }

    /// Ends all watches, as a server that stops does.
    pub fn end_watches(&self) {
        self.state().ended += 1;
        self.shared.changed.notify_all();
    }

    /// Forgets what happened so far, as one that began anew has: who watched from before is told 410.
    pub fn forget(&self) {
        let mut state = self.state();
        state.forgotten = state.version;
        state.events.clear();
        state.ended += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Serves a collection from now on, or no more.
    pub fn serve(&self, collection: &str, is_served: bool) {
        let mut state = self.state();
        let place = place(collection);
        state.served.retain(|served| *served != place);
        if is_served {
            state.served.push(place);
        }
        state.ended += 1;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Tells all who watch how far they are, which is this far at least.
    pub fn bookmark(&self) -> u64 {
        let mut state = self.state();
        state.version += 1;
        state.bookmarks += 1;
        self.shared.changed.notify_all();
        state.version
    }

    /// Requests so far whose line holds this.
    #[must_use]
    pub fn count(&self, part: &str) -> usize {
        let state = self.state();
        state
            .asked
            .iter()
            .filter(|line| line.contains(part))
            .count()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.state().is_over = true;
        self.end_watches();
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn kept(&self, place: &Place, object: &Value) -> Option<Value> {
        self.objects.get(&key(place, object)).cloned()
    }

    fn write(&mut self, place: &Place, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let key = key(place, &object);
        let kind = if self.objects.contains_key(&key) {
            "MODIFIED"
        } else {
            "ADDED"
        };
        self.objects.insert(key, object.clone());
        self.events
            .push((self.version, place.clone(), kind, object.clone()));
        object
    }

    fn delete(&mut self, place: &Place, namespace: &str, name: &str) {
        let key = (place.clone(), namespace.to_owned(), name.to_owned());
        if let Some(mut object) = self.objects.remove(&key) {
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            self.events
                .push((self.version, place.clone(), "DELETED", object));
        }
    }
}

fn key(place: &Place, object: &Value) -> (Place, String, String) {
    let text = |name: &str| {
        object["metadata"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (place.clone(), text("namespace"), text("name"))
}

fn place(collection: &str) -> Place {
    let (root, plural) = collection.rsplit_once('/').expect("a path");
    (root.to_owned(), plural.to_owned())
}

/// A request's path, read.
struct Asked {
    place: Place,
    namespace: Option<String>,
    name: Option<String>,
    is_status: bool,
    query: BTreeMap<String, String>,
}

impl Asked {
    fn of(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(name, value)| (name.to_owned(), decoded(value)));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (root, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => (format!("/api/{version}"), rest),
            ["apis", group, version, rest @ ..] => (format!("/apis/{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        let (plural, name, is_status) = match rest {
            [plural] => (plural, None, false),
            [plural, name] => (plural, Some((*name).to_owned()), false),
            [plural, name, "status"] => (plural, Some((*name).to_owned()), true),
            _ => return None,
        };
        Some(Self {
            place: (root, (*plural).to_owned()),
            namespace,
            name,
            is_status,
            query: query.collect(),
        })
    }

    fn holds(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let selected = self.query.get("fieldSelector");
        let named = selected.and_then(|selector| selector.strip_prefix("metadata.name="));
        let is = |member: &str, wanted: Option<&str>| {
            wanted.is_none_or(|wanted| metadata[member].as_str().unwrap_or_default() == wanted)
        };
        is("namespace", self.namespace.as_deref()) && is("name", named)
    }
}

fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits =
                    [rest.next(), rest.next()].map(|digit| char::from(digit.unwrap_or(b'0')));
                let digits: String = digits.iter().collect();
                out.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).expect("UTF-8")
}

/// Serves the requests of a connection, one after the other.
fn serve(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut words = line.split_whitespace();
        let (method, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let asked = {
            let mut state = shared.state();
            state.asked.push(format!("{method} {target}"));
            let refusal = refusal(&state, target);
            match (refusal, Asked::of(target)) {
                (Some(status), _) => Err(no(status)),
                (None, None) => Err(no(404)),
                (None, Some(asked)) if !state.served.contains(&asked.place) => Err(no(404)),
                (None, Some(asked)) => Ok(asked),
            }
        };
        match asked {
            Err(said) => answer(stream, &said)?,
            Ok(asked) if asked.query.contains_key("watch") => return watch(stream, shared, &asked),
            Ok(asked) => {
                let said = done(method, &asked, body, &mut shared.state());
                shared.changed.notify_all();
                answer(stream, &said)?;
            }
        }
    }
}

fn refusal(state: &State, target: &str) -> Option<u16> {
    let is_forbidden = |path: &String| target.starts_with(path.as_str());
    let forbidden = state.forbidden.iter().any(is_forbidden).then_some(403);
    state.fails.or(forbidden)
}

fn no(status: u16) -> (u16, Value) {
    let status_of = json!({ "kind": "Status", "status": "Failure", "code": status, "message": format!("no: {status}") });
    (status, status_of)
}

fn done(method: &str, asked: &Asked, body: Value, state: &mut State) -> (u16, Value) {
    let named = |name: &String| {
        let namespace = asked.namespace.clone().unwrap_or_default();
        (asked.place.clone(), namespace, name.clone())
    };
    let there = asked
        .name
        .as_ref()
        .and_then(|name| state.objects.get(&named(name)).cloned());
    let is_stale = |there: &Value| {
        let version = body["metadata"]["resourceVersion"].as_str();
        version.is_some_and(|version| there["metadata"]["resourceVersion"] != version)
    };
    match (method, &asked.name, there) {
        ("GET", None, _) => list(asked, state),
        ("GET", Some(_), Some(there)) => (200, there),
        ("POST", None, _) if state.kept(&asked.place, &body).is_some() => no(409),
        ("POST", None, _) => (201, state.write(&asked.place, body)),
        ("PUT" | "PATCH", Some(_), Some(there)) if is_stale(&there) => no(409),
        ("PUT", Some(_), Some(_)) => (200, state.write(&asked.place, body)),
        ("PATCH", Some(_), Some(mut there)) if asked.is_status => {
            let before = there.clone();
            merge(&mut there["status"], &body["status"]);
            if there == before {
                (200, there)
            } else {
                (200, state.write(&asked.place, there))
            }
        }
        _ => no(404),
    }
}

/// As RFC 7396 merges.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in members {
        match value {
            Value::Null => drop(into.as_object_mut().map(|into| into.remove(name))),
            value => merge(&mut into[name], value),
        }
    }
}

fn list(asked: &Asked, state: &State) -> (u16, Value) {
    let all = state
        .objects
        .iter()
        .filter(|((place, ..), object)| *place == asked.place && asked.holds(object));
    let all: Vec<&Value> = all.map(|(_, object)| object).collect();
    let limit = asked
        .query
        .get("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(usize::MAX);
    let limit = state.page.map_or(limit, |page| page.min(limit));
    // A page's place is how many came before, and the version that the first page was of.
    let (version, skip) = match asked.query.get("continue").map(|text| text.split_once('/')) {
        None => (state.version, 0),
        Some(Some((version, skip))) => {
            let version = version.parse().unwrap_or(0);
            if version <= state.forgotten {
                return no(410);
            }
            (version, skip.parse().unwrap_or(0))
        }
        Some(None) => return no(400),
    };
    let page: Vec<&Value> = all.iter().skip(skip).take(limit).copied().collect();
    let next = skip + page.len();
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if next < all.len() {
        metadata["continue"] = json!(format!("{version}/{next}"));
    }
    (
        200,
        json!({ "kind": "List", "metadata": metadata, "items": page }),
    )
}

fn answer(mut stream: &TcpStream, (status, body): &(u16, Value)) -> std::io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Tells of changes until watches are ended, or whoever watches is gone.
fn watch(mut stream: &TcpStream, shared: &Shared, asked: &Asked) -> std::io::Result<()> {
    let since = asked
        .query
        .get("resourceVersion")
        .and_then(|version| version.parse().ok());
    let mut since: u64 = since.unwrap_or(0);
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    let mut state = shared.state();
    let (ended, mut bookmarks) = (state.ended, state.bookmarks);
    if state.forgets || since < state.forgotten {
        let gone = json!({ "type": "ERROR", "object": { "kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version" } });
        drop(state);
        chunk(stream, &gone)?;
        return stream.write_all(b"0\r\n\r\n");
    }
    loop {
        let mut lines = Vec::new();
        for (version, place, kind, object) in &state.events {
            if *version > since && *place == asked.place && asked.holds(object) {
                lines.push(json!({ "type": kind, "object": object }));
            }
        }
        since = state.version;
        if bookmarks != state.bookmarks {
            bookmarks = state.bookmarks;
            let metadata = json!({ "resourceVersion": since.to_string() });
            lines.push(
                json!({ "type": "BOOKMARK", "object": { "kind": "x", "metadata": metadata } }),
            );
        }
        let is_over = state.ended != ended;
        drop(state);
        for line in lines {
            chunk(stream, &line)?;
        }
        if is_over {
            return stream.write_all(b"0\r\n\r\n");
        }
        state = shared.state();
        if state.version == since && state.ended == ended && state.bookmarks == bookmarks {
            state = shared
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn chunk(mut stream: &TcpStream, line: &Value) -> std::io::Result<()> {
    let line = format!("{line}\n");
    stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes())
}
