//! A gate with every feature enabled, an engine with GPUs behind it, and traffic with every outcome.

use std::net::SocketAddr;

use crate::harness::answer::json;
use crate::harness::{Connection, Gate, Step, Upstream, chat, free_address, post};
use crate::identity_sources::issuer::jwks;

pub(super) struct Fixture {
    gate: Gate,
    engine: engine::EngineHandle,
    dcgm: SocketAddr,
    _odd: Upstream,
    _services: Upstream,
}

impl Fixture {
    pub(super) fn start() -> Self {
        let dcgm = free_address();
        let hardware = engine::Hardware::named("gpt-oss-120b.h100x4").expect("a preset");
        let engine = engine::spawn_thread(engine::EngineConfig {
            hardware: Some(hardware),
            dcgm: Some(dcgm),
            ..engine::EngineConfig::default()
        })
        .expect("an engine");
        // It reports impossible usage, no usage, and a cached prompt.
        let odd = Upstream::start(|n, _| {
            let usage = [
                r#","usage":{"prompt_tokens":-1}"#,
                "",
                r#","usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":8}}"#,
            ];
            let usage = usage[n % usage.len()];
            let body = format!(r#"{{"choices":[]{usage}}}"#);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            vec![Step::Send((head + &body).into_bytes())]
        });
        let services = services();
        let key = identity::keys::NewKey::make().expect("chance");
        let (id, hash) = (&key.id, &key.hash);
        let line = format!(
            "{{\"id\":\"{id}\",\"sha256\":\"{hash}\",\"workload\":\"w\",\"created_unix_s\":1}}\n"
        );
        let gate = Gate::start_with_private(
            &config(engine.addr(), odd.address, services.address),
            &[("keys.jsonl", line.as_bytes())],
        );
        let fixture = Self {
            gate,
            engine,
            dcgm,
            _odd: odd,
            _services: services,
        };
        fixture.traffic();
        fixture
    }

    /// The jobs of prometheus.yml with their addresses in this test.
    pub(super) fn targets(&self) -> [(&'static str, SocketAddr); 3] {
        [
            ("127.0.0.1:1976", self.gate.admin),
            ("127.0.0.1:8000", self.engine.addr()),
            ("127.0.0.1:9400", self.dcgm),
        ]
    }

    fn traffic(&self) {
        for (workload, status) in [
            ("w", 200),
            ("again", 200),
            ("odd", 200),
            ("odd", 200),
            ("odd", 200),
            ("lost", 502),
            ("few", 200),
            ("few", 429),
            ("spent", 402),
            ("nobody", 404),
        ] {
            let answer = self.gate.call(&call(workload, false));
            assert_eq!(answer.status, status, "{workload}: {}", answer.text());
        }
        // A prompt that nobody can count.
        let sound = r#"{"model":"gpt-oss-120b","max_tokens":20,"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}"#;
        let sound = post("/v1/chat/completions", &["x-workload-app: sound"], sound);
        assert_eq!(self.gate.call(&sound).status, 200);
        // Without a header, somebody is asked.
        let opaque = post(
            "/v1/chat/completions",
            &["authorization: Bearer opaque"],
            &chat("gpt-oss-120b", false),
        );
        assert_eq!(self.gate.call(&opaque).status, 200);
        let streamed = self.gate.call(&call("w", true));
        assert!(
            streamed.whole && streamed.status == 200,
            "{}",
            streamed.text()
        );
        for workload in ["w", "drained"] {
            let mut leaves = Connection::open(self.gate.data);
            leaves.send(&call(workload, true));
            assert!(leaves.more());
        }
        let of = |name: &str, label: &str| self.gate.metric(name, &[label]);
        testing::eventually("those that left are counted", || {
            of("tollgate_exchanges_total", "outcome=\"aborted\"") == 2.0
                && of("tollgate_abandoned_total", "rest=\"cancelled\"") == 1.0
                && of("tollgate_abandoned_total", "rest=\"read_to_end\"") == 1.0
        });
        testing::eventually("keys and a credential were fetched", || {
            of("tollgate_identity_issuer_available", "issuer") == 1.0
                && of("tollgate_upstream_credential_left_seconds", "account") > 0.0
                && of("tollgate_identity_key_file_ok", "source=\"identity[1]\"") == 1.0
                && self.gate.metric(
                    "tollgate_callout_questions_total",
                    &["service=\"introspection\"", "result=\"answered\""],
                ) == 1.0
        });
        testing::eventually("money and counts are there", || {
            of("tollgate_cost_total", "currency=\"USD\"") > 0.0
                && of("tollgate_unpriced_total", "workload=\"odd\"") > 0.0
                && of("tollgate_budget_refused_total", "budget=\"spent\"") == 1.0
                && of("tollgate_token_drift_exchanges_total", "within=\"yes\"") > 0.0
                && of("tollgate_token_uncounted_total", "model=\"gpt-oss-120b\"") == 1.0
        });
    }
}

/// An issuer, who is asked about tokens and gives one, too.
fn services() -> Upstream {
    Upstream::start(|_, seen| {
        let path = seen.head.split(' ').nth(1).unwrap_or_default();
        let said = match path {
            "/keys" => return vec![Step::Send(json(200, &jwks(&["rsa", "p256"])))],
            "/token" => r#"{"access_token":"t","token_type":"Bearer","expires_in":3600}"#,
            _ => r#"{"active":true,"sub":"ada"}"#,
        };
        vec![Step::Send(json(200, said))]
    })
}

fn call(workload: &str, stream: bool) -> Vec<u8> {
    let workload = format!("x-workload-app: {workload}");
    let body = chat("gpt-oss-120b", stream);
    let cap = if stream {
        r#""max_tokens":200,"#
    } else {
        r#""max_tokens":20,"#
    };
    post(
        "/v1/chat/completions",
        &[&workload],
        &body.replacen('{', &format!("{{{cap}"), 1),
    )
}

fn config(engine: SocketAddr, odd: SocketAddr, services: SocketAddr) -> String {
    let (dead, collector) = (free_address(), free_address());
    format!(
        "workers: 1\n\
         identity:\n\
         - {{ header: x-workload-app, from: 127.0.0.0/8 }}\n\
         - {{ keys: {{ file: keys.jsonl }} }}\n\
         - {{ jwt: {{ issuer: \"https://issuer.test/\", audience: gate, jwks: {{ url: \"http://{services}/keys\" }}, workload: w }} }}\n\
         - {{ introspection: {{ url: \"http://{services}/introspect\", workload: w }} }}\n\
         backends: {{ engine: {{ url: http://{engine}/v1, models: gpt-oss-120b, credential: {{ oauth: {{ token_url: \"http://{services}/token\", client_id: gate, client_secret: {{ inline: s3cret }} }} }} }}, odd: {{ url: http://{odd}/v1 }}, dead: {{ url: http://{dead}/v1 }} }}\n\
         routes:\n\
         - {{ workload: w, backend: engine }}\n\
         - {{ workload: again, backend: [dead, engine] }}\n\
         - {{ workload: drained, backend: engine, abandon: {{ read_to_end: {{ tokens: 4K, seconds: 60 }} }} }}\n\
         - {{ workload: odd, backend: odd, model: odd }}\n\
         - {{ workload: sound, backend: odd }}\n\
         - {{ workload: lost, backend: dead }}\n\
         - {{ workload: few, backend: engine, limits: [ {{ requests: 1, per: 1h }} ] }}\n\
         - {{ workload: spent, backend: engine }}\n\
         prices: {{ gpt-oss-120b: {{ input: 0.1, output: 0.4 }} }}\n\
         budgets: {{ all: {{ tokens: 1M, per: month }}, w: {{ workload: w, money: 100, per: day }}, spent: {{ workload: spent, tokens: 1, per: week }} }}\n\
         tokenizers: {{ gpt-oss-120b: harmony }}\n\
         ledger: {{ path: usage.db }}\n\
         traces: {{ otlp: \"http://{collector}\" }}\n"
    )
}
