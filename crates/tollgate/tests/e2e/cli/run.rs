//! `tollgate run`: failures at start, a start without a file, and shutdown.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::{EngineConfig, EngineHandle, spawn_thread};
use testing::eventually;

use crate::harness::{Connection, Gate, Response, chat, free_address, get, post, tollgate};

#[test]
fn an_invalid_configuration_stops_run_before_it_listens() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (data, admin) = (free_address(), free_address());
    let config = format!(
        "listen: {{ data: \"{data}\", admin: \"{admin}\" }}\n\
         backends: {{ a: {{ url: \"http://127.0.0.1:1/v1\" }} }}\n\
         routes: [ {{ workload: w, backend: b }}, {{ workload: v, backend: c }} ]\n"
    );
    fs::write(dir.path().join("bad.yaml"), config).expect("a file");
    let ended = tollgate(dir.path(), &["run", "-c", "bad.yaml"], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    for place in [
        "bad.yaml:3: routes[0].backend: ",
        "bad.yaml:3: routes[1].backend: ",
    ] {
        assert!(ended.err.contains(place), "{}", ended.err);
    }
    for address in [data, admin] {
        assert!(TcpStream::connect(address).is_err(), "{address} is open");
    }
}

#[test]
fn a_port_in_use_is_reported_with_a_remedy() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = held.local_addr().expect("it is bound").to_string();
    for (which, data, admin, variable) in [
        ("data", held.as_str(), "127.0.0.1:0", "TOLLGATE_DATA"),
        ("admin", "127.0.0.1:0", &held, "TOLLGATE_ADMIN"),
    ] {
        let environment = [
            ("OPENAI_API_KEY", "k"),
            ("TOLLGATE_DATA", data),
            ("TOLLGATE_ADMIN", admin),
        ];
        let ended = tollgate(std::path::Path::new("."), &["run"], &environment);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        let message = format!("cannot listen on {held} ({which}): ");
        assert!(ended.err.contains(&message), "{}", ended.err);
        let remedy = format!("choose another port with {variable}");
        assert!(ended.err.contains(&remedy), "{}", ended.err);
    }
    for (option, remedy) in [("--listen", "with --listen"), ("--admin", "with --admin")] {
        let mut words = vec!["demo"];
        for other in ["--listen", "--admin", "--on-prem", "--frontier"] {
            let address = if other == option {
                &held
            } else {
                "127.0.0.1:0"
            };
            words.extend([other, address]);
        }
        let ended = tollgate(std::path::Path::new("."), &words, &[]);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains(remedy), "{}", ended.err);
    }
}

#[test]
fn without_file_and_environment_run_says_what_to_set() {
    let ended = tollgate(std::path::Path::new("."), &["run"], &[]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    for remedy in ["set OPENAI_API_KEY", "`tollgate init`", "-c FILE"] {
        assert!(ended.err.contains(remedy), "no {remedy} in {}", ended.err);
    }
}

#[test]
fn without_a_path_run_uses_the_file_of_the_current_directory_and_says_so_first() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let held = held.local_addr().expect("it is bound");
    let config = format!(
        "listen: {{ data: \"{held}\", admin: \"127.0.0.1:0\" }}\n\
         backends: {{ a: {{ url: \"http://127.0.0.1:1/v1\" }} }}\n\
         routes: [ {{ workload: w, backend: a }} ]\n"
    );
    fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
    // The keys in the environment have no effect: the port is that of the file.
    let ended = tollgate(dir.path(), &["run"], &[("OPENAI_API_KEY", "canary")]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let first = ended.err.lines().next().unwrap_or_default();
    let says = "configuration: tollgate.yaml of the current directory";
    assert!(first.contains(says), "{}", ended.err);
    let message = format!("cannot listen on {held} (data): ");
    assert!(ended.err.contains(&message), "{}", ended.err);
    assert!(ended.err.contains("with `listen.data`"), "{}", ended.err);
}

#[test]
fn without_a_file_run_serves_the_provider_of_the_environment() {
    let engine = engine();
    let gate = FromEnvironment::start(&engine);
    for headers in [&[][..], &["x-workload-app: default"]] {
        let answer = gate.chat(headers);
        assert_eq!(answer.status, 200, "{headers:?} {}", answer.text());
        assert_eq!(answer.json()["model"], "gpt-oss-120b");
    }
    let rogue = gate.chat(&["authorization: Bearer malicious-token"]);
    assert_eq!(rogue.status, 200, "{}", rogue.text());
    let unknown = gate.chat(&["x-workload-app: guest"]);
    assert_eq!(
        (unknown.status, unknown.code().as_str()),
        (404, "workload_not_registered")
    );
    let config = get(gate.admin, "/config").text();
    assert!(!config.contains("engine-key"), "{config}");
}

#[test]
fn the_last_records_are_flushed_before_exit() {
    let engine = engine();
    let config = format!(
        "backends: {{ up: {{ url: \"http://{}/v1\", credential: {{ inline: engine-key }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        engine.addr()
    );
    let mut gate = Gate::start(&config, &[]);
    let mut connection = Connection::open(gate.data);
    let request = post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("gpt-oss-120b", true),
    );
    for _ in 0..50 {
        assert_eq!(connection.call(&request).status, 200);
    }
    gate.signal(libc::SIGTERM);
    assert_eq!(gate.ended().code(), Some(0));
    let log = fs::read_to_string(gate.path("access.jsonl")).expect("the log");
    assert_eq!(log.lines().count(), 50);
    assert!(log.ends_with("}\n"), "the last line is whole");
}

fn engine() -> EngineHandle {
    spawn_thread(EngineConfig {
        api_key: Some("engine-key".into()),
        ttft: Duration::ZERO,
        inter_token: Duration::ZERO,
        ..EngineConfig::default()
    })
    .expect("an engine")
}

/// A gate with no configuration file.
struct FromEnvironment {
    data: SocketAddr,
    admin: SocketAddr,
    child: Child,
}

impl FromEnvironment {
    fn start(engine: &EngineHandle) -> Self {
        let (data, admin) = (free_address(), free_address());
        let child = Command::new(Gate::binary())
            .arg("run")
            .env_clear()
            .env("OPENAI_BASE_URL", format!("http://{}/v1", engine.addr()))
            .env("OPENAI_API_KEY", "engine-key")
            .env("TOLLGATE_DATA", data.to_string())
            .env("TOLLGATE_ADMIN", admin.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let gate = Self { data, admin, child };
        eventually("the gate listens", || {
            TcpStream::connect(admin).is_ok() && get(admin, "/readyz").status == 200
        });
        gate
    }

    fn chat(&self, headers: &[&str]) -> Response {
        let request = post(
            "/v1/chat/completions",
            headers,
            &chat("gpt-oss-120b", false),
        );
        Connection::open(self.data).call(&request)
    }
}

impl Drop for FromEnvironment {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
