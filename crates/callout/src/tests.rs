//! Everything that answers a question on which a call or a login depends, with what decides written in ten wrong ways.
//!
//! Invariant: none of them lets in. Where one is a yes all the same, the row says so: what is absent or written
//! otherwise there has a meaning of its own (a token without an end).
//! Not here: what an answer means that is written well (each module), signed tokens (`jose`).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use policy::secret::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use crate::fixture::{Does, Seen, Server, Then, body_then, json, response, tls};
use crate::*;

/// Answers are waited for so long, in virtual time.
const WITHIN: Duration = Duration::from_secs(2);
/// What each way to write it wrong is called.
const WAYS: [&str; 10] = [
    "null",
    "twice",
    "text",
    "fraction",
    "negative",
    "2^64",
    "absent",
    "late",
    "cut",
    "broken off",
];

type Answering = Arc<dyn Fn(&Seen) -> Does + Send + Sync>;
/// `y` where it is a yes, `n` where it is a no, `?` where it is no answer.
type Outcome = Pin<Box<dyn Future<Output = char>>>;

/// A member on which an answer depends.
struct Row {
    asked: fn(Answering) -> Outcome,
    /// The answer, with `@` in the place of the member.
    body: &'static str,
    member: &'static str,
    good: &'static str,
    /// What stands there too, where it stands twice.
    other: &'static str,
    /// A text, and a number with a fraction.
    odd: [&'static str; 2],
    /// In the order of [`WAYS`].
    expected: &'static str,
}

impl Row {
    /// One whose member is a text, or true or false.
    const fn plain(
        asked: fn(Answering) -> Outcome,
        body: &'static str,
        [member, good, other, text]: [&'static str; 4],
        expected: &'static str,
    ) -> Self {
        Self {
            asked,
            body,
            member,
            good,
            other,
            odd: [text, "1.5"],
            expected,
        }
    }

    fn body(&self, written: &str) -> String {
        self.body.replace('@', written)
    }

    fn is_xml(&self) -> bool {
        self.body.starts_with('<')
    }

    /// The member with this value.
    fn with(&self, value: &str) -> String {
        let member = self.member;
        match (self.is_xml(), value) {
            (false, _) => format!("\"{member}\":{value}"),
            (true, "null") => format!("<{member}/>"),
            (true, _) => format!("<{member}>{value}</{member}>"),
        }
    }

    /// What a server does that writes it in this way.
    fn answering(&self, way: &str) -> Answering {
        let (between, nothing) = if self.is_xml() {
            ("", "<Unknown/>")
        } else {
            (",", "\"unknown\":0")
        };
        let good = self.with(self.good);
        let written = match way {
            "null" => self.with("null"),
            "twice" => [self.with(self.other), good].join(between),
            "text" => self.with(self.odd[0]),
            "fraction" => self.with(self.odd[1]),
            "negative" => self.with("-1"),
            "2^64" => self.with("18446744073709551616"),
            "absent" => nothing.to_owned(),
            _ => good,
        };
        let kind = if self.is_xml() {
            "text/xml"
        } else {
            "application/json"
        };
        let (body, way) = (self.body(&written), way.to_owned());
        Arc::new(move |_| match &*way {
            "late" => Does::Hang,
            "cut" => Does::Answer(response(200, kind, body[..body.len() - 1].to_owned())),
            "broken off" => Does::Answer(body_then(200, kind, body.clone(), Then::Break)),
            _ => Does::Answer(response(200, kind, body.clone())),
        })
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

fn own() -> SecretSource {
    SecretSource::fixed(secret("own"))
}

fn nobody() -> ClientAuth {
    let id = Some("gate".to_owned());
    ClientAuth::Nothing { id }
}

fn server(answering: Answering) -> (Server, Client) {
    Server::in_memory(Bounds::default(), move |seen| answering(seen))
}

/// A yes, or no answer, of a question that knows no no.
fn given<T>(found: &Result<T, Fault>) -> char {
    if found.is_ok() { 'y' } else { '?' }
}

fn introspection(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let settings = IntrospectionSettings::new(server.url("/"), nobody());
        let asked = Introspection::new(&Handle::here(), client, settings);
        match asked.ask(&secret("token"), WITHIN).await {
            Ok(Introspected::Active(_)) => 'y',
            Ok(Introspected::Inactive) => 'n',
            Err(_) => '?',
        }
    })
}

fn api_server(server: &Server) -> ApiServer {
    ApiServer {
        url: server.url("/"),
        token: own(),
    }
}

fn token_review(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let settings = TokenReviewSettings::new(api_server(&server), vec!["gate".to_owned()]);
        let asked = TokenReview::new(&Handle::here(), client, settings);
        match asked.ask(&secret("token"), WITHIN).await {
            Ok(Reviewed::Authenticated { .. }) => 'y',
            Ok(Reviewed::Refused(_)) => 'n',
            Err(_) => '?',
        }
    })
}

fn access_review(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let settings = AccessReviewSettings {
            server: api_server(&server),
            cache: WITHIN,
            cache_denied: WITHIN,
            questions: Arc::default(),
        };
        let asked = AccessReview::new(&Handle::here(), client, settings);
        let question = AccessQuestion {
            user: Arc::new(User::default()),
            action: AccessAction::Path {
                path: "/".to_owned(),
                verb: "get".to_owned(),
            },
        };
        match asked.ask(Arc::new(question), WITHIN).await {
            Ok(Access::Allowed) => 'y',
            Ok(Access::Denied(_)) => 'n',
            Err(_) => '?',
        }
    })
}

fn oauth(server: &Server, grant: Grant) -> OAuthRequest {
    OAuthRequest::new(server.url("/token"), nobody(), grant)
}

async fn token(client: Client, request: TokenRequest) -> char {
    let endpoint = TokenEndpoint::start(&Handle::here(), client, request, |_| {});
    given(&endpoint.get(WITHIN).await)
}

fn token_endpoint(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let request = Box::new(oauth(&server, Grant::ClientCredentials));
        token(client, TokenRequest::OAuth(request)).await
    })
}

fn exchange(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let grant = Grant::JwtBearer { assertion: own() };
        let exchange = CallerExchange::new(&Handle::here(), client, oauth(&server, grant));
        given(&exchange.ask(&secret("caller"), WITHIN).await)
    })
}

fn metadata(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let request = MetadataRequest {
            method: MetadataMethod::Get,
            url: server.url("/"),
            headers: Vec::new(),
        };
        token(client, TokenRequest::Metadata(request)).await
    })
}

fn impersonation(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(Arc::new(move |seen| match &*seen.target {
            "/token" => json(r#"{"access_token":"t","token_type":"Bearer"}"#),
            _ => answering(seen),
        }));
        let first = Box::new(oauth(&server, Grant::ClientCredentials));
        let impersonation = Impersonation {
            url: server.url("/"),
            scopes: Vec::new(),
            life: WITHIN,
        };
        token(client, TokenRequest::Impersonated(first, impersonation)).await
    })
}

async fn keys(client: Client, request: KeysRequest) -> char {
    let endpoint = TokenEndpoint::start_keys(&Handle::here(), client, request, |_| {});
    given(&endpoint.get(WITHIN).await)
}

fn aws_container(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let (url, token) = (server.url("/"), None);
        keys(client, KeysRequest::Container { url, token }).await
    })
}

fn aws_role(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let request = WebIdentity {
            url: server.url("/"),
            role_arn: "role".to_owned(),
            session_name: "gate".to_owned(),
            token: own(),
        };
        keys(client, KeysRequest::WebIdentity(request)).await
    })
}

const ISSUER: &str = "http://server.test";
const DOCUMENT: &str = r#"{"issuer":"http://server.test","authorization_endpoint":"http://server.test/a",
    "token_endpoint":"http://server.test/token"}"#;

fn openid(client: Client) -> OpenId {
    let openid = OpenId::new(&Handle::here(), client, ISSUER, nobody());
    openid.expect("a provider")
}

fn document(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (_server, client) = server(answering);
        given(&openid(client).provider(WITHIN).await)
    })
}

fn id_token(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (_server, client) = server(Arc::new(move |seen| match &*seen.target {
            "/token" => answering(seen),
            _ => json(DOCUMENT),
        }));
        let code = Code {
            code: secret("code"),
            verifier: secret("verifier"),
            redirect_url: String::new(),
            from: [192, 0, 2, 1].into(),
        };
        given(&openid(client).id_token(code, WITHIN).await)
    })
}

fn key_set(answering: Answering) -> Outcome {
    Box::pin(async move {
        let (server, client) = server(answering);
        let settings = JwksSettings::new(KeySource::Url(server.url("/")));
        let hooks = Hooks {
            on_change: Box::new(|_| Ok(())),
            on_fault: Box::new(|_| {}),
        };
        let keys = Jwks::start(&Handle::here(), client, settings, hooks);
        sleep(WITHIN).await;
        match keys.availability() {
            Availability::Available => 'y',
            Availability::Pending | Availability::Unavailable => '?',
        }
    })
}

const NO_ANSWER: &str = "??????????";
/// Of how long something lives: it may be left to the gate, and be written in other ways than as a number.
const ANY_SECONDS: &str = "y?yy??y???";
/// Of a moment in words.
const MOMENT: &str = "???y??????";

fn rows() -> Vec<Row> {
    let seconds = |asked, body, member, expected| Row {
        odd: ["\"4000000000\"", "4000000000.5"],
        ..Row::plain(asked, body, [member, "4000000000", "1", ""], expected)
    };
    let moment = |asked, body, member, quote: bool| {
        let [good, other, fraction, soon] = if quote {
            [
                "\"2999-01-01T00:00:00Z\"",
                "\"1999-01-01T00:00:00Z\"",
                "\"2999-01-01T00:00:00.5Z\"",
                "\"soon\"",
            ]
        } else {
            [
                "2999-01-01T00:00:00Z",
                "1999-01-01T00:00:00Z",
                "2999-01-01T00:00:00.5Z",
                "soon",
            ]
        };
        Row {
            odd: [soon, fraction],
            ..Row::plain(asked, body, [member, good, other, ""], MOMENT)
        }
    };
    let is_true = |member| [member, "true", "false", "\"true\""];
    let credential = |member| [member, "\"t\"", "\"u\"", "\"a b\""];
    let is_false = |member| [member, "false", "true", "\"false\""];
    const REVIEWED: &str = r#"{"status":{@,"user":{"username":"u"},"audiences":["gate"]}}"#;
    const OF_AUDIENCES: &str = r#"{"status":{"authenticated":true,"user":{"username":"u"},@}}"#;
    const OF_USER: &str = r#"{"status":{"authenticated":true,"user":{@},"audiences":["gate"]}}"#;
    const KEYS: &str = r#"{"AccessKeyId":"i","SecretAccessKey":"s","Token":"t",@}"#;
    const OF_TOKEN: &str =
        r#"{"AccessKeyId":"i","SecretAccessKey":"s","Expiration":"2999-01-01T00:00:00Z",@}"#;
    const ROLE: &str = "<Keys><AccessKeyId>i</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
                        <SessionToken>t</SessionToken>@</Keys>";
    const OF_ISSUER: &str = r#"{"authorization_endpoint":"http://server.test/a","token_endpoint":"http://server.test/t",@}"#;
    const OF_ENDPOINT: &str =
        r#"{"issuer":"http://server.test","authorization_endpoint":"http://server.test/a",@}"#;
    const NAMES_ITSELF: &str = r#"{"issuer":"http://server.test","authorization_endpoint":"http://server.test/a",
        "token_endpoint":"http://server.test/t",@}"#;
    let url = |member| {
        [
            member,
            "\"http://server.test\"",
            "\"http://other.test\"",
            "\"nowhere\"",
        ]
    };
    vec![
        Row::plain(introspection, "{@}", is_true("active"), NO_ANSWER),
        seconds(introspection, r#"{"active":true,@}"#, "exp", ANY_SECONDS),
        Row {
            // An hour ahead, and more.
            odd: ["\"4000000000\"", "4000000000.5"],
            ..Row::plain(
                introspection,
                r#"{"active":true,@}"#,
                ["nbf", "1", "4000000000", ""],
                "y?nn??y???",
            )
        },
        Row::plain(
            token_review,
            REVIEWED,
            is_true("authenticated"),
            "??????n???",
        ),
        Row::plain(
            token_review,
            OF_AUDIENCES,
            ["audiences", "[\"gate\"]", "[]", "\"gate\""],
            "n?????n???",
        ),
        Row::plain(
            token_review,
            OF_USER,
            ["username", "\"u\"", "\"v\"", "\"\""],
            NO_ANSWER,
        ),
        Row::plain(
            access_review,
            r#"{"status":{@}}"#,
            is_true("allowed"),
            NO_ANSWER,
        ),
        Row::plain(
            access_review,
            r#"{"status":{"allowed":true,@}}"#,
            is_false("denied"),
            "??????y???",
        ),
        Row::plain(
            token_endpoint,
            r#"{"token_type":"Bearer",@}"#,
            credential("access_token"),
            NO_ANSWER,
        ),
        Row::plain(
            token_endpoint,
            r#"{"access_token":"t",@}"#,
            ["token_type", "\"Bearer\"", "\"DPoP\"", "\"\""],
            NO_ANSWER,
        ),
        seconds(
            token_endpoint,
            r#"{"access_token":"t","token_type":"Bearer",@}"#,
            "expires_in",
            ANY_SECONDS,
        ),
        Row::plain(
            exchange,
            r#"{"token_type":"Bearer",@}"#,
            credential("access_token"),
            NO_ANSWER,
        ),
        seconds(
            exchange,
            r#"{"access_token":"t","token_type":"N_A",@}"#,
            "expires_in",
            ANY_SECONDS,
        ),
        Row::plain(
            metadata,
            r#"{"expires_in":60,@}"#,
            credential("access_token"),
            NO_ANSWER,
        ),
        seconds(
            metadata,
            r#"{"access_token":"t",@}"#,
            "expires_in",
            "??yy??????",
        ),
        Row::plain(
            impersonation,
            r#"{"expireTime":"2999-01-01T00:00:00Z",@}"#,
            credential("accessToken"),
            NO_ANSWER,
        ),
        moment(
            impersonation,
            r#"{"accessToken":"t",@}"#,
            "expireTime",
            true,
        ),
        Row::plain(aws_container, OF_TOKEN, credential("Token"), NO_ANSWER),
        moment(aws_container, KEYS, "Expiration", true),
        moment(aws_role, ROLE, "Expiration", false),
        Row::plain(document, OF_ISSUER, url("issuer"), NO_ANSWER),
        Row::plain(document, OF_ENDPOINT, url("token_endpoint"), NO_ANSWER),
        Row::plain(
            document,
            NAMES_ITSELF,
            is_true("authorization_response_iss_parameter_supported"),
            "y?????y???",
        ),
        Row::plain(
            id_token,
            "{@}",
            ["id_token", "\"t\"", "\"u\"", "\"\""],
            NO_ANSWER,
        ),
        Row::plain(key_set, "{@}", ["keys", "[]", "[{}]", "\"[]\""], NO_ANSWER),
    ]
}

#[tokio::test(start_paused = true)]
async fn no_answer_lets_in_whose_deciding_member_is_written_wrong() {
    for row in rows() {
        let good = (row.asked)(row.answering("as it should be")).await;
        assert_eq!(good, 'y', "{}", row.body(&row.with(row.good)));
        let mut found = String::new();
        for way in WAYS {
            found.push((row.asked)(row.answering(way)).await);
        }
        let Row { body, member, .. } = row;
        assert_eq!(found, row.expected, "{member} in {body}, by {WAYS:?}");
    }
}

fn authorization(client: Client, transport: AuthzTransport) -> Outcome {
    Box::pin(async move {
        let authz = ExtAuthz::new(&Handle::here(), client, transport, &[]);
        let request = AuthzRequest {
            method: "POST".to_owned(),
            scheme: "http".to_owned(),
            host: "gate.test".to_owned(),
            path: "/v1".to_owned(),
            ..AuthzRequest::default()
        };
        match authz.ask(request, WITHIN).await {
            Ok(Authorized::Allowed) => 'y',
            Ok(Authorized::Denied(_)) => 'n',
            Err(_) => '?',
        }
    })
}

/// Over HTTP the status decides: it is written on the wire as it stands here.
#[tokio::test(start_paused = true)]
async fn no_status_of_an_authorization_service_lets_in_that_is_written_wrong() {
    const REST: &str = "\r\ncontent-length: 0\r\n\r\n";
    let table = [
        ("as it should be", "HTTP/1.1 200 OK", 'y'),
        ("null", "HTTP/1.1 null", '?'),
        ("twice", "HTTP/1.1 403 200", 'n'),
        (
            "twice",
            "HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK",
            'n',
        ),
        ("text", "HTTP/1.1 OK", '?'),
        ("fraction", "HTTP/1.1 200.5 OK", '?'),
        ("negative", "HTTP/1.1 -200 OK", '?'),
        ("2^64", "HTTP/1.1 18446744073709551616 OK", '?'),
        ("2^16 + 200", "HTTP/1.1 65736 OK", '?'),
        ("absent", "HTTP/1.1", '?'),
        ("late", "", '?'),
        ("cut", "HTTP/1.1 20", '?'),
        ("cut", "HTTP/1.1 200 OK\r\ncontent-le", '?'),
        (
            "cut",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nyes",
            '?',
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
            '?',
        ),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 5",
            '?',
        ),
    ];
    for (way, status, expected) in table {
        let head = match way {
            "cut" => status.to_owned(),
            "two lengths" if status.ends_with("\r\n") => status.to_owned(),
            _ => format!("{status}{REST}"),
        };
        let memory = Arc::new(move |_: &str| -> io::Result<_> {
            let (ours, mut theirs) = tokio::io::duplex(64 << 10);
            let (head, is_late) = (head.clone(), way == "late");
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let _read = theirs.read(&mut asked).await;
                if is_late {
                    sleep(WITHIN * 2).await;
                }
                let _sent = theirs.write_all(head.as_bytes()).await;
            });
            Ok(ours)
        });
        let client = Client::in_memory(&tls(), Bounds::default(), memory);
        let url = Url::parse("http://server.test/").expect("a URL");
        let found = authorization(client, AuthzTransport::Http(url)).await;
        assert_eq!(found, expected, "{way}: {status}");
    }
}

/// Over gRPC two things decide: `grpc-status`, and the code of the status in the message, which the protocol leaves out
/// where it is zero. The message is written by its bytes.
#[tokio::test(start_paused = true)]
async fn no_message_of_an_authorization_service_lets_in_that_is_written_wrong() {
    /// A status that says it is good, and what else its message can be.
    const GOOD: &[u8] = b"\x0a\x02\x08\x00";
    const OVER: &[u8] = b"\x0a\x0b\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02";
    const MINUS_ONE: &[u8] = b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    let table: [(&str, &[u8], &[&str], char); 24] = [
        ("as it should be", GOOD, &["0"], 'y'),
        ("its code left out", b"\x0a\x00", &["0"], 'y'),
        ("code twice", b"\x0a\x04\x08\x07\x08\x00", &["0"], '?'),
        ("status twice", b"\x0a\x02\x08\x07\x0a\x00", &["0"], '?'),
        ("code a text", b"\x0a\x03\x0a\x01\x30", &["0"], 'n'),
        ("status a text", b"\x0a\x02\x4f\x4b", &["0"], '?'),
        (
            "code a fraction",
            b"\x0a\x05\x0d\x00\x00\x00\x00",
            &["0"],
            '?',
        ),
        ("code below zero", MINUS_ONE, &["0"], 'n'),
        ("code 2^64", OVER, &["0"], '?'),
        (
            "code 2^32",
            b"\x0a\x06\x08\x80\x80\x80\x80\x10",
            &["0"],
            'n',
        ),
        ("status a number", b"\x08\x00", &["0"], '?'),
        ("status absent", b"", &["0"], '?'),
        ("cut", b"\x0a\x02\x08", &["0"], '?'),
        ("grpc-status null", GOOD, &["null"], '?'),
        ("grpc-status twice", GOOD, &["0", "7"], '?'),
        ("grpc-status twice", GOOD, &["7", "0"], '?'),
        ("grpc-status twice in one", GOOD, &["0, 0"], '?'),
        ("grpc-status a text", GOOD, &["OK"], '?'),
        ("grpc-status a fraction", GOOD, &["0.0"], '?'),
        ("grpc-status below zero", GOOD, &["-0"], '?'),
        ("grpc-status 2^64", GOOD, &["18446744073709551616"], '?'),
        ("grpc-status absent", GOOD, &[], '?'),
        ("broken off", GOOD, &["0"], '?'),
        ("late", GOOD, &["0"], '?'),
    ];
    for (way, message, codes, expected) in table {
        let body = wire::grpc::framed(message).expect("short");
        let mut trailers = HeaderMap::new();
        for code in codes {
            trailers.append("grpc-status", HeaderValue::from_static(code));
        }
        let bounds = Bounds {
            protocol: Protocol::Http2,
            ..Bounds::default()
        };
        let (server, client) = Server::in_memory(bounds, move |_| {
            let then = match way {
                "late" => return Does::Hang,
                "broken off" => Then::Break,
                _ => Then::Trailers(trailers.clone()),
            };
            Does::Answer(body_then(200, "application/grpc", body.clone(), then))
        });
        let transport = AuthzTransport::Grpc(server.url("/"));
        let found = authorization(client, transport).await;
        assert_eq!(found, expected, "{way}");
    }
}
