//! Every path, over a real socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;

use policy::admin::{Access, Bearer, Roles};
use policy::secret::Secret;
use policy::web::Hosts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::gateway::{Budget, Changed, Config, KeyFault, Limit, People};

mod changes;

const WELL: Health = Health {
    is_alive: true,
    is_ready: true,
    is_draining: false,
    ledger_available: None,
};

struct Fake {
    health: Mutex<Health>,
    ledger: Option<Value>,
    bearers: Vec<Bearer>,
    /// What was done, in order.
    done: Mutex<Vec<String>>,
}

/// What a new key is to be.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKey {
    workload: String,
    #[serde(default)]
    limits: Vec<NewLimit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewLimit {
    amount: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotation {
    #[serde(default)]
    overlap: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyChange {
    name: String,
}

impl Fake {
    fn did(&self, what: String) {
        self.done.lock().expect("no panic").push(what);
    }
}

/// One key, which has this id.
const ID: &str = "0123456789";

fn changed(id: &str, workload: &str, secret: Option<&str>) -> Result<Changed, KeyFault> {
    match id {
        ID => Ok(Changed {
            key: json!({ "id": id, "workload": workload }),
            secret: secret.map(|secret| Secret::new(secret.into())),
            is_in_force: true,
        }),
        "revoked" => Err(KeyFault::Revoked(id.to_owned())),
        _ => Err(KeyFault::Unknown(id.to_owned())),
    }
}

impl Gateway for Fake {
    fn access(&self) -> Arc<Access> {
        Arc::new(Access {
            hosts: Hosts::Loopback(Vec::new()),
            bearers: self.bearers.clone(),
            anonymous: match self.bearers.is_empty() {
                true => Roles::NONE.and(Role::Read),
                false => Roles::NONE,
            },
        })
    }

    fn people(&self) -> Option<Arc<dyn People>> {
        None
    }

    fn health(&self) -> Health {
        *self.health.lock().expect("no panic")
    }

    fn config(&self) -> Config {
        Config {
            version: "0123abcd".to_owned(),
            document: Arc::new(json!({ "workers": 2 })),
            key_files: vec![crate::KeyFile {
                source: "identity[0]".to_owned(),
                keys: 3,
                version: Some("89abcdef".to_owned()),
            }],
        }
    }

    fn limits(&self) -> Vec<Limit> {
        vec![Limit {
            workload: "ide".to_owned(),
            route: "own".to_owned(),
            unit: "requests",
            amount: 2,
            window_seconds: 60.0,
            burst: 2,
            window: "bucket",
            remaining: Some(1),
            full_in_seconds: Some(29.5),
            r#for: "workload",
        }]
    }

    fn budgets(&self) -> Vec<Budget> {
        vec![Budget {
            name: "company".to_owned(),
            unit: "nano_units",
            currency: Some("USD".to_owned()),
            amount: 5_000_000_000,
            held: Some(1_000_000_000),
            remaining: Some(4_000_000_000),
            refused_calls: 3,
            period: "day",
            period_starts_unix_ms: 1_700_006_400_000,
            period_ends_unix_ms: 1_700_092_800_000,
            workloads: None,
            r#for: None,
        }]
    }

    fn ledger(&self) -> Option<Value> {
        self.ledger.clone()
    }

    fn mcp(&self) -> Option<Value> {
        let servers = || json!({ "servers": [], "workloads": [], "has_rules": false });
        self.ledger.as_ref().map(|_| servers())
    }

    fn tokens(&self) -> Option<Value> {
        self.ledger.as_ref().map(|_| json!({ "models": [] }))
    }

    async fn metrics(&self) -> String {
        "one 1\n".to_owned()
    }

    fn reload(&self) -> Result<String, String> {
        let mut done = self.done.lock().expect("no panic");
        done.push("reload".to_owned());
        match done.len() {
            1 => Ok("0123abcd".to_owned()),
            _ => Err("tollgate.yaml:1: a fault".to_owned()),
        }
    }

    fn drain(&self) {
        self.did("drain".to_owned());
    }

    type NewKey = NewKey;
    type Rotation = Rotation;
    type KeyChange = KeyChange;

    fn keys(&self, after: Option<&str>, most: usize) -> Result<Vec<Value>, KeyFault> {
        if self.ledger.is_none() {
            return Err(KeyFault::NotConfigured);
        }
        let first = after.map_or(0, |after| after.parse::<usize>().expect("a number") + 1);
        let ids = (first..5).take(most);
        Ok(ids.map(|id| json!({ "id": id.to_string() })).collect())
    }

    fn key(&self, id: &str) -> Result<Value, KeyFault> {
        changed(id, "w", None).map(|changed| changed.key)
    }

    fn create_key(&self, wanted: NewKey) -> Result<Changed, KeyFault> {
        let amounts: u64 = wanted.limits.iter().map(|limit| limit.amount).sum();
        self.did(format!("create {} {amounts}", wanted.workload));
        changed(ID, &wanted.workload, Some("canary-new"))
    }

    fn change_key(&self, id: &str, change: KeyChange) -> Result<Changed, KeyFault> {
        self.did(format!("change {id} {}", change.name));
        changed(id, "w", None)
    }

    fn rotate_key(&self, id: &str, how: Rotation) -> Result<Changed, KeyFault> {
        self.did(format!("rotate {id} {:?}", how.overlap));
        changed(id, "w", Some("canary-next"))
    }

    fn revoke_key(&self, id: &str) -> Result<Changed, KeyFault> {
        self.did(format!("revoke {id}"));
        changed(id, "w", None)
    }
}

/// The endpoint.
struct Served {
    address: SocketAddr,
    gateway: Arc<Fake>,
}

fn served(ledger: Option<Value>, bearer: Option<&str>) -> Served {
    let bearer = bearer.map(|secret| ("admin", secret, Roles::ALL));
    served_to(ledger, bearer.as_slice())
}

/// The same, with credentials of these names, secrets and roles.
fn served_to(ledger: Option<Value>, bearers: &[(&str, &str, Roles)]) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("non-blocking");
    let address = listener.local_addr().expect("an address");
    let bearer = |(name, secret, roles): &(&str, &str, Roles)| Bearer {
        name: (*name).into(),
        secret: Secret::new((*secret).into()),
        roles: *roles,
    };
    let gateway = Arc::new(Fake {
        health: Mutex::new(WELL),
        ledger,
        bearers: bearers.iter().map(bearer).collect(),
        done: Mutex::default(),
    });
    let serving = Arc::clone(&gateway);
    // It ends with the test process.
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(serve(listener, serving));
    });
    Served { address, gateway }
}

impl Served {
    /// Status, head and body of the answer.
    fn ask(&self, method: &str, path: &str, lines: &str) -> (u16, String, String) {
        self.send(method, path, lines, "")
    }

    /// The same, of a request with a body, whose length is said where there is one.
    fn send(&self, method: &str, path: &str, lines: &str, body: &str) -> (u16, String, String) {
        let length = match body.is_empty() {
            true => String::new(),
            false => format!("content-length: {}\r\n", body.len()),
        };
        self.raw(method, path, &[lines, &length].concat(), body)
    }

    fn raw(&self, method: &str, path: &str, lines: &str, body: &str) -> (u16, String, String) {
        let mut socket = TcpStream::connect(self.address).expect("connects");
        let host = match lines.starts_with("host:") {
            true => "",
            false => "host: localhost\r\n",
        };
        let request =
            format!("{method} {path} HTTP/1.1\r\n{host}{lines}connection: close\r\n\r\n{body}");
        // A body that is too long is not read to its end.
        drop(socket.write_all(request.as_bytes()));
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(read @ 1..) = socket.read(&mut piece) {
            answer.extend_from_slice(&piece[..read]);
        }
        let answer = String::from_utf8(answer).expect("UTF-8");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.expect("a status"), head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask("GET", path, "");
        (status, body)
    }

    fn json(&self, path: &str) -> Value {
        let (status, head, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path} {body}");
        assert!(head.contains("content-type: application/json"), "{head}");
        serde_json::from_str(&body).expect("JSON")
    }
}

fn code(body: &str) -> String {
    let error: Value = serde_json::from_str(body).expect("JSON");
    assert!(error["error"]["message"].is_string(), "{body}");
    let code = error["error"]["code"].as_str();
    code.expect("a code").to_owned()
}

#[test]
fn probes_say_how_the_gate_is() {
    let served = served(None, None);
    let draining = Health {
        is_ready: false,
        is_draining: true,
        ..WELL
    };
    let away = Health {
        is_ready: false,
        ledger_available: Some(false),
        ..WELL
    };
    let ok = "{\"status\":\"ok\"}\n";
    for (health, live, ready) in [
        (WELL, (200, ok), (200, ok)),
        (draining, (200, ok), (503, "{\"status\":\"draining\"}\n")),
        (
            away,
            (200, "{\"status\":\"ok\",\"ledger\":\"unavailable\"}\n"),
            (
                503,
                "{\"status\":\"unavailable\",\"ledger\":\"unavailable\"}\n",
            ),
        ),
    ] {
        *served.gateway.health.lock().expect("no panic") = health;
        for (paths, (status, page)) in [
            (["/livez", "/healthz"], live),
            (["/readyz", "/health"], ready),
        ] {
            for path in paths {
                assert_eq!(served.get(path), (status, page.to_owned()), "{path}");
            }
        }
    }
}

/// What is shown of the configuration.
fn shown_config() -> serde_json::Value {
    json!({
        "version": "0123abcd",
        "key_files": [{ "source": "identity[0]", "keys": 3, "version": "89abcdef" }],
        "document": { "workers": 2 },
    })
}

#[test]
fn pages_beside_the_api_are_as_they_always_were() {
    let served_without = served(None, None);
    for path in ["/metrics", "/stats/prometheus"] {
        let (status, head, body) = served_without.ask("GET", path, "");
        assert_eq!((status, body.as_str()), (200, "one 1\n"));
        assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
    }
    let (status, config) = served_without.get("/config");
    assert_eq!((status, config), (200, format!("{:#}\n", shown_config())));
    for path in ["/ledger", "/", "/nothing", "/apis"] {
        let (status, body) = served_without.get(path);
        assert_eq!((status, code(&body).as_str()), (404, "unknown_url"));
    }
    let ledger = json!({ "available": true });
    let served_with = served(Some(ledger.clone()), None);
    assert_eq!(served_with.get("/ledger"), (200, format!("{ledger:#}\n")));
}

#[test]
fn the_api_lists_its_resources_and_each_is_there() {
    let served = served(Some(json!({ "available": true })), None);
    let index = served.json("/api/v1");
    assert_eq!(index["version"], "v1");
    let resources = index["resources"].as_array().expect("a list");
    let names: Vec<&str> = resources
        .iter()
        .map(|resource| {
            let path = resource["path"].as_str().expect("a path");
            let is_read = resource["role"] == "read" || resource["role"].is_null();
            if is_read {
                served.json(path);
            } else {
                let path = path.replace("{id}", ID);
                let method = resource["methods"][0].as_str().expect("a method");
                let (status, _, body) = served.ask(method, &path, "");
                assert_eq!(
                    (status, code(&body).as_str()),
                    (403, "role_required"),
                    "{path}"
                );
            }
            assert!(resource["description"].is_string());
            resource["name"].as_str().expect("a name")
        })
        .collect();
    let all = "budgets caller config drain health keys keys/{id} keys/{id}/rotate ledger limits mcp reload tokens";
    assert_eq!(names.join(" "), all);
    assert_eq!(served.json("/api/v1/"), index);
    let (status, _, body) = served.ask("HEAD", "/api/v1/config", "");
    assert_eq!((status, body.as_str()), (200, ""));
}

#[test]
fn resources_have_the_fields_that_are_documented() {
    let served = served(None, None);
    assert_eq!(served.json("/api/v1/config"), shown_config());
    assert_eq!(
        served.json("/api/v1/limits"),
        json!({ "limits": [{
            "workload": "ide", "route": "own", "unit": "requests", "amount": 2, "window_seconds": 60.0,
            "burst": 2, "window": "bucket", "remaining": 1, "full_in_seconds": 29.5, "for": "workload"
        }] })
    );
    assert_eq!(
        served.json("/api/v1/budgets"),
        json!({ "budgets": [{
            "name": "company", "unit": "nano_units", "currency": "USD", "amount": 5_000_000_000_u64,
            "held": 1_000_000_000, "remaining": 4_000_000_000_u64, "refused_calls": 3, "period": "day",
            "period_starts_unix_ms": 1_700_006_400_000_u64, "period_ends_unix_ms": 1_700_092_800_000_u64,
            "workloads": null, "for": null
        }] })
    );
    let health = |status, ready, draining, ledger: Option<bool>| {
        json!({ "status": status, "alive": true, "ready": ready, "draining": draining,
            "ledger_available": ledger })
    };
    assert_eq!(
        served.json("/api/v1/health"),
        health("ok", true, false, None)
    );
    *served.gateway.health.lock().expect("no panic") = Health {
        is_ready: false,
        is_draining: true,
        ledger_available: Some(true),
        ..WELL
    };
    assert_eq!(
        served.json("/api/v1/health"),
        health("draining", false, true, Some(true))
    );
}

#[test]
fn errors_are_json_with_a_code_and_a_message() {
    let served = served(None, None);
    for (method, path, status, says) in [
        ("GET", "/api", 404, "unknown_resource"),
        ("GET", "/api/v2", 404, "unknown_resource"),
        ("GET", "/api/v1x", 404, "unknown_resource"),
        ("GET", "/api/v1/nothing", 404, "unknown_resource"),
        ("GET", "/api/v1/limits/1", 404, "unknown_resource"),
        ("GET", "/api/v1/ledger", 404, "no_ledger"),
        ("GET", "/api/v1/tokens", 404, "no_tokenizers"),
        ("POST", "/api/v1/limits", 405, "method_not_allowed"),
        ("DELETE", "/api/v1", 405, "method_not_allowed"),
        ("POST", "/config", 405, "method_not_allowed"),
    ] {
        let (is, head, body) = served.ask(method, path, "");
        assert_eq!(
            (is, code(&body).as_str()),
            (status, says),
            "{method} {path}"
        );
        assert_eq!(head.contains("allow: GET, HEAD"), status == 405, "{head}");
    }
}

#[test]
fn access_is_checked_for_the_api_as_for_pages() {
    let served = served(None, Some("canary"));
    for path in ["/api/v1", "/api/v1/health", "/api/v1/nothing", "/config"] {
        let (status, head, body) = served.ask("GET", path, "");
        assert_eq!((status, code(&body).as_str()), (401, "credential_required"));
        assert!(head.contains("www-authenticate: Bearer realm=\"tollgate\""));
        let (status, _, body) = served.ask("GET", path, "origin: null\r\n");
        assert_eq!((status, code(&body).as_str()), (403, "origin_not_allowed"));
        let (status, _, body) = served.ask("GET", path, "host: rebound.example\r\n");
        assert_eq!((status, code(&body).as_str()), (421, "host_not_allowed"));
        let (status, ..) = served.ask("GET", path, "authorization: Bearer canary\r\n");
        let is = if path.ends_with("nothing") { 404 } else { 200 };
        assert_eq!(status, is, "{path}");
    }
    assert_eq!(served.get("/readyz").0, 200);
}

#[test]
fn whoever_holds_all_connections_keeps_no_probe_out() {
    let served = served(None, None);
    let connect = || TcpStream::connect(served.address).expect("connects");
    // More than are served at once, and none of them says anything.
    let mut held: Vec<TcpStream> = (0..super::CONNECTIONS + 20).map(|_| connect()).collect();
    let (status, _) = served.get("/livez");
    assert_eq!(status, 200);
    // The oldest were ended for those that came later.
    let first = held.first_mut().expect("a connection");
    first
        .set_read_timeout(Some(testing::PATIENCE))
        .expect("a timeout");
    assert_eq!(testing::read(first, &mut [0; 1]).ok(), Some(0));
}

#[test]
fn a_host_is_one_wherever_it_stands() {
    let served = served(None, None);
    let (status, _, body) = served.ask(
        "GET",
        "/config",
        "host: localhost\r\nhost: evil.example\r\n",
    );
    assert_eq!((status, &*code(&body)), (421, "host_not_allowed"));
    let (status, _, body) = served.ask("GET", "http://evil.example/config", "");
    assert_eq!((status, &*code(&body)), (421, "host_not_allowed"));
    let (status, ..) = served.ask("GET", "http://localhost/config", "");
    assert_eq!(status, 200);
}
