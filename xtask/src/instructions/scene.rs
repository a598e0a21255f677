//! What is counted: the configuration, one exchange seen from the client, and the upstream's answer.
//!
//! Invariant: nothing here depends on time, chance or the machine.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A scenario.
#[derive(Clone, Copy)]
pub(super) struct Scene {
    pub(super) name: &'static str,
    /// The configuration below the listeners; `{upstream}` and `{dir}` stand for places.
    pub(super) config: &'static str,
    pub(super) exchange: fn(&mut Wires) -> Result<(), String>,
    /// Of one that meters, the scenario that is the same without.
    pub(super) unmetered: Option<&'static str>,
}

/// The gate's two sides.
pub(super) struct Wires {
    pub(super) client: TcpStream,
    /// The connection that the gate has dialled, once it has.
    pub(super) upstream: Option<TcpStream>,
    pub(super) dialled: Box<dyn FnMut() -> Result<TcpStream, String>>,
    /// Calls of conversations so far.
    pub(super) calls: u64,
}

pub(super) const SCENES: &[Scene] = &[
    Scene {
        name: "unary_1k_bare",
        config: BARE,
        exchange: |wires| wires.unary(1 << 10),
        unmetered: None,
    },
    Scene {
        name: "unary_1k_bare_without_log",
        config: BARE_WITHOUT_LOG,
        exchange: |wires| wires.unary(1 << 10),
        unmetered: None,
    },
    Scene {
        name: "unary_1k_all_policies",
        config: ALL_POLICIES,
        exchange: |wires| wires.unary(1 << 10),
        unmetered: None,
    },
    Scene {
        name: "unary_1k_translated",
        config: TRANSLATED,
        exchange: Wires::translated,
        unmetered: None,
    },
    Scene {
        name: "stream_200_events_translated",
        config: TRANSLATED,
        exchange: Wires::stream_translated,
        unmetered: None,
    },
    Scene {
        name: "unary_32k_all_policies",
        config: ALL_POLICIES,
        exchange: |wires| wires.unary(32 << 10),
        unmetered: None,
    },
    Scene {
        name: "stream_200_events",
        config: ALL_POLICIES,
        exchange: Wires::stream,
        unmetered: None,
    },
    Scene {
        name: "unary_1k_key",
        config: KEY,
        exchange: |wires| wires.by(&format!("authorization: Bearer {THE_KEY}\r\n")),
        unmetered: None,
    },
    Scene {
        name: "unary_1k_token",
        config: TOKEN,
        exchange: |wires| wires.by(&format!("authorization: Bearer {THE_TOKEN}\r\n")),
        unmetered: None,
    },
    Scene {
        name: "unary_1k_token_and_rules",
        config: TOKEN_AND_RULES,
        exchange: |wires| wires.by(&format!("authorization: Bearer {THE_TOKEN}\r\n")),
        unmetered: None,
    },
    Scene {
        name: "unary_1k_metered",
        config: METERED,
        exchange: |wires| wires.unary(1 << 10),
        unmetered: Some("unary_1k_all_policies"),
    },
    Scene {
        name: "conversation_5k_all_policies",
        config: ALL_POLICIES,
        exchange: |wires| wires.goes_on(4 << 10, 1 << 10),
        unmetered: None,
    },
    Scene {
        name: "conversation_5k_metered",
        config: METERED,
        exchange: |wires| wires.goes_on(4 << 10, 1 << 10),
        unmetered: Some("conversation_5k_all_policies"),
    },
    Scene {
        name: "varied_1k_all_policies",
        config: ALL_POLICIES,
        exchange: |wires| wires.goes_on(0, 1 << 10),
        unmetered: None,
    },
    Scene {
        name: "varied_1k_metered",
        config: METERED,
        exchange: |wires| wires.goes_on(0, 1 << 10),
        unmetered: Some("varied_1k_all_policies"),
    },
    Scene {
        name: "code_32k_all_policies",
        config: ALL_POLICIES,
        exchange: |wires| wires.code(32 << 10),
        unmetered: None,
    },
    Scene {
        name: "code_32k_metered",
        config: METERED,
        exchange: |wires| wires.code(32 << 10),
        unmetered: Some("code_32k_all_policies"),
    },
    Scene {
        name: "stream_200_events_metered",
        config: METERED,
        exchange: Wires::stream,
        unmetered: Some("stream_200_events"),
    },
    Scene {
        name: "unknown_identity",
        config: ALL_POLICIES,
        exchange: Wires::unknown,
        unmetered: None,
    },
];

const BARE: &str = "\
identity: { header: x-workload-app }
backends:
  up: { url: \"http://{upstream}/v1\" }
routes:
  - { workload: race, backend: up }
";

/// As bare, but for the backend, which speaks another API than the client.
const TRANSLATED: &str = "\
identity: { header: x-workload-app }
backends:
  up: { url: \"http://{upstream}/v1\", dialect: anthropic }
routes:
  - { workload: race, backend: up }
";

const BARE_WITHOUT_LOG: &str = "\
identity: { header: x-workload-app }
access_log: off
backends:
  up: { url: \"http://{upstream}/v1\" }
routes:
  - { workload: race, backend: up }
";

const ALL_POLICIES: &str = "\
identity: { header: x-workload-app }
access_log: \"{dir}/access.log\"
backends:
  up: { url: \"http://{upstream}/v1\", credential: { file: \"{dir}/secret\" } }
routes:
  - workload: race
    backend: up
    limits: [ { requests: 1000000000, per: 1m }, { tokens: 1000000000000, per: 1m } ]
prices:
  race-model: { input: 0.10, output: 0.40, per: 1M }
";

/// All that meters as well: ledger, own counts, costs, a budget.
const METERED: &str = "\
identity: { header: x-workload-app }
access_log: \"{dir}/access.log\"
ledger: { path: \"{dir}/usage.db\" }
backends:
  up: { url: \"http://{upstream}/v1\", credential: { file: \"{dir}/secret\" } }
routes:
  - workload: race
    backend: up
    limits: [ { requests: 1000000000, per: 1m }, { tokens: 1000000000000, per: 1m } ]
prices:
  race-model: { input: 0.10, output: 0.40, per: 1M }
tokenizers: { race-model: o200k }
budgets:
  company: { tokens: 1000000000000, per: month }
";

/// As bare, but for who calls.
const KEY: &str = "\
identity: [ { keys: { file: \"{dir}/keys.jsonl\" } } ]
backends:
  up: { url: \"http://{upstream}/v1\" }
routes:
  - { workload: race, backend: up }
";

const TOKEN: &str = "\
identity: [ { jwt: { issuer: \"https://issuer.test/\", audience: race, jwks: { file: \"{dir}/jwks.json\" }, workload_claim: azp } } ]
backends:
  up: { url: \"http://{upstream}/v1\" }
routes:
  - { workload: race, backend: up }
";

const TOKEN_AND_RULES: &str = "\
identity: [ { jwt: { issuer: \"https://issuer.test/\", audience: race, jwks: { file: \"{dir}/jwks.json\" }, workload_claim: azp } } ]
authority:
  rules:
    - { name: engineers, allow: '\"engineering\" in claims.groups && model.startsWith(\"race-\")' }
    - { name: elsewhere, deny: '!source.inNetwork(\"127.0.0.0/8\")' }
backends:
  up: { url: \"http://{upstream}/v1\" }
routes:
  - { workload: race, backend: up }
";

/// A key, of which the file below has the SHA-256.
const THE_KEY: &str = "tgk_racekey000_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk";

/// A token of ES256 for the key set below, good until 2100.
const THE_TOKEN: &str = "eyJhbGciOiJFUzI1NiIsImtpZCI6InAyNTYiLCJ0eXAiOiJKV1QifQ.eyJpc3MiOiJodHRwczovL2lzc3Vlci50ZXN0LyIsImF1ZCI6InJhY2UiLCJzdWIiOiJhZGEiLCJhenAiOiJyYWNlIiwiaWF0IjoxNzY3MjI1NjAwLCJleHAiOjQxMDI0NDQ4MDAsImdyb3VwcyI6WyJlbmdpbmVlcmluZyIsInNlYXJjaCIsIm9uLWNhbGwiXSwibmFtZSI6IkFkYSBMb3ZlbGFjZSIsImVtYWlsIjoiYWRhQGV4YW1wbGUuY29tIn0.T_vSd6wgUvwjToPgkV5qAsFJSMkvC35FU9OYA2ymuhZCH85c5RbGRd10_aevErEKwtctXT9c2g4NfjAD1IfkQg";

/// Files that the configurations name, by name.
pub(super) const FILES: &[(&str, &str)] = &[
    ("secret", "sk-upstream\n"),
    (
        "keys.jsonl",
        "{\"id\":\"racekey000\",\"sha256\":\"dc4c3eafca5aec638e1f1be4a57719a6119da4429f62ccf349522b9de4d3a1c7\",\
         \"workload\":\"race\",\"created_unix_s\":1767225600}\n",
    ),
    (
        "jwks.json",
        "{\"keys\":[{\"kid\":\"p256\",\"use\":\"sig\",\"kty\":\"EC\",\"crv\":\"P-256\",\
         \"x\":\"qmiNC3rdiPnP8Ex_JD6RW81Pp0v_iDbZD7hvFiPeWVA\",\
         \"y\":\"MCEFdYQO6kATiXJV2leT5JMTVHCRhlrjXyN0liT5MZ0\"}]}",
    ),
];

const EVENTS: usize = 200;

impl Wires {
    /// A call and its answer, each whole in one piece where it is short.
    fn unary(&mut self, bytes: usize) -> Result<(), String> {
        self.answered(&request("race", &body(bytes, "")))
    }

    /// The same for a caller that proves who it is by this line.
    fn by(&mut self, line: &str) -> Result<(), String> {
        self.answered(&request_with(line, &body(1 << 10, "")))
    }

    /// The next call of an agent: so many bytes that it sent before, and a message of so many that are new.
    fn goes_on(&mut self, history: usize, new: usize) -> Result<(), String> {
        self.calls += 1;
        let call = self.calls;
        let mut said = String::new();
        for line in 0.. {
            if said.len() > new {
                break;
            }
            said += &format!(
                "Step {line} of call {call} read file_{}.rs, {} lines, and found {:08x}. ",
                call * 31 + line,
                call * 7 + line * 3,
                call * 0x9E37 + line * 0x79B9
            );
        }
        let body = body(history, "");
        let last = format!(",{{\"role\":\"user\",\"content\":\"{said}\"}}],\"max_tokens\"");
        self.answered(&request("race", &body.replace("],\"max_tokens\"", &last)))
    }

    /// A call with so many bytes of source code, no line of which was sent before.
    fn code(&mut self, bytes: usize) -> Result<(), String> {
        self.calls += 1;
        let call = self.calls;
        let mut code = String::new();
        for line in 0.. {
            if code.len() > bytes {
                break;
            }
            code += &format!(
                "    let block_{call}_{line} = self.allocate(request.tokens + {}, &mut free_{:x})?;\\n",
                call * 7 + line,
                call * 0x9E37 + line * 0x79B9
            );
        }
        let body = body(0, "");
        let last = format!(",{{\"role\":\"user\",\"content\":\"{code}\"}}],\"max_tokens\"");
        self.answered(&request("race", &body.replace("],\"max_tokens\"", &last)))
    }

    /// A call of OpenAI's dialect, answered by Anthropic's.
    fn translated(&mut self) -> Result<(), String> {
        let answer = answer(
            "application/json",
            "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"race-model\",\"content\":[{\"type\":\"text\",\
             \"text\":\"The scheduler takes running \
             requests first, then waiting ones, first come, first served, while the token budget of the step and the \
             blocks of the cache allow it; what does not fit waits, and what cannot go on is preempted and computed \
             again. A step therefore costs what its tokens and their contexts cost, and no more.\"}],\
             \"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":245,\
             \"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":64}}",
        );
        write(&mut self.client, &request("race", &body(1 << 10, "")))?;
        let upstream = self.upstream()?;
        read_whole(upstream)?;
        write(upstream, &answer)?;
        // How long it becomes is not known before its head leaves.
        read_until(&mut self.client, b"}\r\n", b"0\r\n\r\n")
    }

    fn answered(&mut self, request: &[u8]) -> Result<(), String> {
        let answer = answer(
            "application/json",
            "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1767225600,\"model\":\"race-model\",\
             \"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"The scheduler takes running \
             requests first, then waiting ones, first come, first served, while the token budget of the step and the \
             blocks of the cache allow it; what does not fit waits, and what cannot go on is preempted and computed \
             again. A step therefore costs what its tokens and their contexts cost, and no more.\"},\"logprobs\":null,\
             \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":245,\"completion_tokens\":64,\
             \"total_tokens\":309,\"prompt_tokens_details\":{\"cached_tokens\":0}}}",
        );
        write(&mut self.client, request)?;
        let upstream = self.upstream()?;
        read_whole(upstream)?;
        write(upstream, &answer)?;
        read_whole(&mut self.client)
    }

    /// A streamed call, whose events are told in another dialect.
    fn stream_translated(&mut self) -> Result<(), String> {
        let request = request("race", &body(1 << 10, "\"stream\":true,"));
        write(&mut self.client, &request)?;
        read_whole(self.upstream()?)?;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        write(self.upstream()?, head.as_bytes())?;
        let event = |kind: &str, rest: &str| {
            format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n")
        };
        let begin = ",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"race-model\",\
                     \"content\":[],\"usage\":{\"input_tokens\":245,\"output_tokens\":1}}";
        let token = ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}";
        let end = ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":198}";
        for nth in 0..EVENTS {
            let is_last = nth + 1 == EVENTS;
            let data = match nth {
                0 => event("message_start", begin),
                _ if is_last => event("message_delta", end) + &event("message_stop", ""),
                _ => event("content_block_delta", token),
            };
            let last = if is_last { "0\r\n\r\n" } else { "" };
            let chunk = format!("{:x}\r\n{data}\r\n{last}", data.len());
            write(self.upstream()?, chunk.as_bytes())?;
            read_until(&mut self.client, b"\n\n\r\n", last.as_bytes())?;
        }
        Ok(())
    }

    /// A streamed call: each event is sent when the one before it has arrived.
    fn stream(&mut self) -> Result<(), String> {
        let request = request("race", &body(1 << 10, "\"stream\":true,"));
        write(&mut self.client, &request)?;
        read_whole(self.upstream()?)?;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        write(self.upstream()?, head.as_bytes())?;
        for event in 0..EVENTS {
            let choice = "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"finish_reason\":null}]";
            let usage = "\"choices\":[],\"usage\":{\"prompt_tokens\":245,\"completion_tokens\":198,\
                         \"total_tokens\":443}";
            let rest = if event + 2 == EVENTS { usage } else { choice };
            let data = if event + 1 == EVENTS {
                "data: [DONE]\n\n".to_owned()
            } else {
                format!(
                    "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\
                     \"model\":\"race-model\",{rest}}}\n\n"
                )
            };
            let last = if event + 1 == EVENTS { "0\r\n\r\n" } else { "" };
            let chunk = format!("{:x}\r\n{data}\r\n{last}", data.len());
            write(self.upstream()?, chunk.as_bytes())?;
            // The chunk that reports usage was not asked for and is withheld.
            if event + 2 != EVENTS {
                read_until(&mut self.client, b"\n\n\r\n", last.as_bytes())?;
            }
        }
        Ok(())
    }

    /// A caller that the gate does not know.
    fn unknown(&mut self) -> Result<(), String> {
        write(&mut self.client, &request("nobody", &body(1 << 10, "")))?;
        read_whole(&mut self.client)
    }

    fn upstream(&mut self) -> Result<&mut TcpStream, String> {
        if self.upstream.is_none() {
            self.upstream = Some((self.dialled)()?);
        }
        self.upstream
            .as_mut()
            .ok_or_else(|| "no upstream connection".into())
    }
}

/// A chat of about so many bytes.
fn body(bytes: usize, members: &str) -> String {
    let turn =
        "Please explain how the scheduler of an inference engine decides which request runs next. ";
    let mut messages =
        String::from("{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"}");
    for n in 0.. {
        if messages.len() + 2 * turn.len() > bytes {
            break;
        }
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        messages += &format!(",{{\"role\":\"{role}\",\"content\":\"{turn}{turn}\"}}");
    }
    format!(
        "{{\"model\":\"race-model\",{members}\"messages\":[{messages}],\"max_tokens\":100,\"temperature\":0.7}}"
    )
}

fn request(workload: &str, body: &str) -> Vec<u8> {
    let who = format!("x-workload-app: {workload}\r\nauthorization: Bearer client-key\r\n");
    request_with(&who, body)
}

fn request_with(who: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:1975\r\naccept: application/json\r\n\
         content-type: application/json\r\nuser-agent: OpenAI/Python 3.52.0\r\n{who}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn answer(kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: uvicorn\r\ncontent-type: {kind}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn write(to: &mut TcpStream, bytes: &[u8]) -> Result<(), String> {
    to.write_all(bytes)
        .map_err(|cause| format!("the gate took no more: {cause}"))
}

/// Reads a message that has a length, to its end.
fn read_whole(from: &mut TcpStream) -> Result<(), String> {
    let mut read = Vec::new();
    let head = read_on(from, &mut read, |read| position(read, b"\r\n\r\n"))?;
    let text = String::from_utf8_lossy(read.get(..head).unwrap_or_default()).to_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
        .ok_or_else(|| format!("no length in:\n{text}"))?;
    read_on(from, &mut read, |read| {
        (read.len() >= head + 4 + length).then_some(0)
    })?;
    Ok(())
}

/// Reads until what was read ends so.
fn read_until(from: &mut TcpStream, end: &[u8], last: &[u8]) -> Result<(), String> {
    let end = [end, last].concat();
    read_on(from, &mut Vec::new(), |read| {
        read.ends_with(&end).then_some(0)
    })
    .map(drop)
}

fn read_on(
    from: &mut TcpStream,
    read: &mut Vec<u8>,
    done: impl Fn(&[u8]) -> Option<usize>,
) -> Result<usize, String> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        if let Some(at) = done(read) {
            return Ok(at);
        }
        match from.read(&mut buffer) {
            Ok(0) => {
                return Err(format!(
                    "the gate closed after:\n{}",
                    String::from_utf8_lossy(read)
                ));
            }
            Ok(more) => read.extend_from_slice(buffer.get(..more).unwrap_or_default()),
            Err(cause) => return Err(format!("{cause} after:\n{}", String::from_utf8_lossy(read))),
        }
    }
}

fn position(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
