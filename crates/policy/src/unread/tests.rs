//! Which paths templates take, and that nothing else passes, by hand and at random.

use testing::Draw;
use wire::head::{Method, check_path, percent_decoded};

use super::{Listed, Template, TemplateFault, listed};
use crate::fixture::{ONE, RoutePlan, request, snapshot};
use crate::id::{RouteId, WorkloadId};
use crate::operation::Operation::{self, Unread};
use crate::refusal::Refusal;

fn template(text: &str) -> Template {
    Template::read(text).expect("a template")
}

fn allow(method: Method, text: &str) -> Listed {
    Listed {
        method,
        path: template(text),
        tokens: None,
        price: None,
    }
}

#[test]
fn a_template_is_plain_words_and_places_for_ids() {
    for text in [
        "/v1/files",
        "/v1/files/{id}/content",
        "/v1/vector_stores/{id}/file_batches/{id}/cancel",
        "/v1/{id}",
        "/v1/chat/completions",
    ] {
        assert_eq!(template(text).to_string(), text);
    }
    let segments = "/x".repeat(9);
    let faults = [
        ("files", TemplateFault::Root),
        ("/v2/files", TemplateFault::Root),
        ("/v1", TemplateFault::Root),
        ("/v1/", TemplateFault::Segments),
        (&format!("/v1{segments}"), TemplateFault::Segments),
        ("/v1/files/", TemplateFault::Segment),
        ("/v1//files", TemplateFault::Segment),
        ("/v1/Files", TemplateFault::Segment),
        ("/v1/files/*", TemplateFault::Segment),
        ("/v1/files/{id}x", TemplateFault::Segment),
        ("/v1/files/{file}", TemplateFault::Segment),
        ("/v1/files/%7Bid%7D", TemplateFault::Segment),
        ("/v1/..", TemplateFault::Segment),
        ("/v1/files?limit=1", TemplateFault::Segment),
        ("/v1/v1/chat/completions", TemplateFault::Version),
        ("/v1/x/v1beta/y", TemplateFault::Version),
    ];
    for (text, fault) in faults {
        assert_eq!(Template::read(text), Err(fault), "{text}");
    }
}

#[test]
fn an_id_is_one_plain_segment_and_no_word_of_a_known_operation() {
    let of_file = template("/v1/files/{id}/content");
    for id in [
        "file-1",
        "a",
        "resp_0123456789abcdef",
        "FILE",
        &"x".repeat(128),
    ] {
        assert!(of_file.takes(&format!("/v1/files/{id}/content")), "{id}");
    }
    for id in [
        "",
        "a/b",
        "a.b",
        "a:b",
        "a%20b",
        "%2e%2e",
        "..",
        "a;b",
        "a%c5%bf",
        "completions",
        "Completions",
        "CHAT",
        "v1",
        "V1beta",
        "count_tokens",
        &"x".repeat(129),
    ] {
        assert!(!of_file.takes(&format!("/v1/files/{id}/content")), "{id}");
    }
    let anything = template("/v1/{id}/{id}");
    for path in [
        "/v1/chat/completions",
        "/v1/chat/Completions",
        "/v1/v1/completions",
        "/v1/audio/speech",
        "/v1/messages/count_tokens",
        "/v1/MODELS/x",
    ] {
        assert!(!anything.takes(path), "{path}");
    }
    assert!(anything.takes("/v1/files/file-1"));
    assert!(!anything.takes("/v1/files/file-1/"));
    assert!(!anything.takes("/v1/files"));
    assert!(!anything.takes("/v2/files/file-1"));
}

#[test]
fn a_workload_is_let_through_by_its_own_routes_alone() {
    let files = [
        allow(Method::Post, "/v1/files"),
        allow(Method::Get, "/v1/files/{id}"),
    ];
    let more = [
        allow(Method::Get, "/v1/chat/completions"),
        allow(Method::Post, "/v1/audio/transcriptions"),
    ];
    let plan = |workloads, unread| RoutePlan {
        workloads,
        unread,
        backends: &[ONE],
        ..RoutePlan::default()
    };
    let s = snapshot(&[
        plan(&["a"], &[]),
        plan(&["a"], &files),
        plan(&["b", "a"], &more),
    ]);
    let find = |method: &str, path: &str, workload| {
        let head = request(method, path, &[]);
        let operation = Operation::of(head.method, path).expect("an operation");
        match listed(&head, operation, s.lists(WorkloadId(workload))) {
            Ok(place) => Ok(place.map(|p| (p.route, p.nth))),
            Err(refusal) => Err(refusal.reply().code),
        }
    };
    let refused = Err("operation_not_allowed");
    assert_eq!(find("POST", "/v1/files", 0), Ok(Some((RouteId(1), 0))));
    assert_eq!(find("GET", "/v1/files/f-1", 0), Ok(Some((RouteId(1), 1))));
    assert_eq!(find("HEAD", "/v1/files/f-1", 0), Ok(Some((RouteId(1), 1))));
    assert_eq!(find("DELETE", "/v1/files/f-1", 0), refused);
    assert_eq!(find("GET", "/v1/files", 0), refused);
    assert_eq!(find("POST", "/v1/files", 1), refused);
    let chats = find("GET", "/v1/chat/completions", 1);
    assert_eq!(chats, Ok(Some((RouteId(2), 0))));
    let forms = find("POST", "/v1/audio/transcriptions", 1);
    assert_eq!(forms, Ok(Some((RouteId(2), 1))));
    assert_eq!(find("POST", "/v1/audio/translations", 1), Ok(None));
    assert_eq!(find("GET", "/v1/embeddings", 1), Err("method_not_allowed"));
    assert_eq!(find("POST", "/v1/models", 1), Err("method_not_allowed"));
}

/// What a lenient server might make of a path: percent-decoded twice, cut at `?`, `#` and `;`, without
/// empty segments, blanks and dots at their ends, letters folded as NFKC and case folding do.
fn leniently(path: &str) -> String {
    let mut text = path.to_owned();
    for _ in 0..2 {
        let decoded = percent_decoded(&text);
        text = String::from_utf8_lossy(&decoded).into_owned();
    }
    let cut = text.split(['?', '#', ';']).next().unwrap_or_default();
    let folded = cut.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{ff0f}' | '\\' => '/',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        c => c,
    });
    let folded: String = folded.flat_map(char::to_lowercase).collect();
    let trim = |s: &str| {
        s.trim_matches(|c: char| c == '.' || c.is_whitespace())
            .to_owned()
    };
    let parts: Vec<String> = folded
        .split('/')
        .map(trim)
        .filter(|s| !s.is_empty())
        .collect();
    parts.join("/")
}

/// A path made of pieces of known ones, with a few bytes changed.
fn odd_path(draw: &mut Draw) -> String {
    const PIECES: &[&str] = &[
        "v1",
        "chat",
        "completions",
        "responses",
        "messages",
        "count_tokens",
        "embeddings",
        "models",
        "audio",
        "speech",
        "images",
        "edits",
        "files",
        "file-1",
        "batches",
        "rerank",
        "score",
        "x",
        "V1",
        "input_tokens",
        "moderations",
        "content",
        "cancel",
        "resp_1",
    ];
    const ODD: &[&str] = &[
        "/",
        "%2f",
        "%2F",
        "%3F",
        "?",
        "%20",
        ".",
        "%2e",
        ";",
        "%c5%bf",
        "%e2%84%aa",
        "%ef%bd%83",
        "\\",
        "A",
        "%",
        "%25",
        "#",
        "*",
        "{id}",
        "%00",
        "_",
        "-",
    ];
    let mut pick = |n| draw.below(n);
    let mut path = String::from(if pick(12) == 0 { "/V1" } else { "/v1" });
    for _ in 0..=pick(4) {
        path.push('/');
        path.push_str(PIECES[pick(PIECES.len())]);
    }
    for _ in 0..pick(3) {
        let at = 1 + pick(path.len());
        if path.is_char_boundary(at) {
            match pick(4) {
                0 => path.insert_str(at, ODD[pick(ODD.len())]),
                1 => path.push_str(ODD[pick(ODD.len())]),
                2 if at < path.len() => {
                    let byte = path.as_bytes()[at];
                    path.replace_range(at..=at, &format!("%{byte:02x}"));
                }
                _ if at < path.len() => {
                    let upper = path[at..].to_uppercase();
                    path.replace_range(at.., &upper);
                }
                _ => {}
            }
        }
    }
    path
}

#[test]
fn nothing_outside_the_table_passes_whatever_a_path_looks_like() {
    const PATHS: usize = 40_000;
    let name = "nothing_outside_the_table_passes_whatever_a_path_looks_like";
    let mut draw = Draw::new(testing::seed(name));
    let lists = [
        "/v1/{id}",
        "/v1/{id}/{id}",
        "/v1/{id}/{id}/{id}",
        "/v1/{id}/{id}/{id}/{id}",
        "/v1/files/{id}/content",
    ];
    let list: Vec<Listed> = lists.map(|text| allow(Method::Post, text)).to_vec();
    let s = snapshot(&[RoutePlan {
        workloads: &["a"],
        unread: &list,
        backends: &[ONE],
        ..RoutePlan::default()
    }]);
    let known: Vec<String> = super::operation::known_paths();
    let (mut passed, mut named, mut refused) = (0, 0, 0);
    for _ in 0..PATHS {
        let path = odd_path(&mut draw);
        if check_path(path.split('?').next().unwrap_or_default().as_bytes()).is_err() {
            refused += 1;
            continue;
        }
        let path = path.split('?').next().unwrap_or_default();
        match Operation::of(Method::Post, path) {
            Ok(Unread) => {
                let head = request("POST", path, &[]);
                match listed(&head, Unread, s.lists(WorkloadId(0))) {
                    Ok(Some(_)) => {
                        passed += 1;
                        let seen = leniently(path);
                        let ends = |k: &&String| seen == **k || seen.ends_with(&format!("/{k}"));
                        let taken = known.iter().find(ends);
                        assert_eq!(taken, None, "{path} read as {seen}");
                    }
                    Ok(None) => panic!("{path}: neither listed nor refused"),
                    Err(
                        Refusal::Operation { .. }
                        | Refusal::Batches(_)
                        | Refusal::OtherPath { .. }
                        | Refusal::NoWebSocket { .. }
                        | Refusal::Method { .. },
                    ) => refused += 1,
                    Err(other) => panic!("{path}: {other}"),
                }
            }
            Ok(operation) => {
                named += 1;
                let rest = path.strip_prefix("/v1/").expect("of the API");
                assert!(
                    known.iter().any(|k| k == rest),
                    "{path} taken for {operation:?}"
                );
            }
            Err(_) => refused += 1,
        }
    }
    println!("{passed} listed, {named} known, {refused} refused");
    assert!(passed > 200 && named > 200 && refused > 2_000);
}
