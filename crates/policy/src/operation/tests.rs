//! The table from path and method to operation, row by row.

use wire::head::Method;

use super::Operation::{Chat, Completions, Embeddings, Messages, Models, PassThrough, Responses};
use super::{Operation, Unknown};

#[test]
fn every_path_and_method_has_one_meaning() {
    let any = Unknown::Method("GET, HEAD, POST, PUT, PATCH, DELETE");
    let post = Unknown::Method("POST");
    let read = Unknown::Method("GET, HEAD");
    let table: &[(Method, &str, Result<Operation, Unknown>)] = &[
        (Method::Post, "/v1/chat/completions", Ok(Chat)),
        (Method::Get, "/v1/chat/completions", Ok(PassThrough)),
        (Method::Put, "/v1/chat/completions", Err(post)),
        (Method::Options, "/v1/chat/completions", Err(post)),
        (Method::Post, "/v1/completions", Ok(Completions)),
        (Method::Get, "/v1/completions", Err(post)),
        (Method::Post, "/v1/responses", Ok(Responses)),
        (Method::Get, "/v1/responses", Err(post)),
        (Method::Get, "/v1/responses/resp_1", Ok(PassThrough)),
        (Method::Post, "/v1/messages", Ok(Messages)),
        (Method::Get, "/v1/messages", Err(post)),
        (Method::Post, "/v1/messages/count_tokens", Ok(PassThrough)),
        (Method::Post, "/v1/embeddings", Ok(Embeddings)),
        (Method::Delete, "/v1/embeddings", Err(post)),
        (Method::Get, "/v1/models", Ok(Models)),
        (Method::Head, "/v1/models", Ok(Models)),
        (Method::Post, "/v1/models", Err(read)),
        (Method::Get, "/v1/models/org/name", Ok(Models)),
        (Method::Delete, "/v1/models/mine", Ok(PassThrough)),
        (Method::Post, "/v1/audio/speech", Ok(PassThrough)),
        (Method::Patch, "/v1/x", Ok(PassThrough)),
        (Method::Other, "/v1/x", Err(any)),
        (Method::Options, "/v1/x", Err(any)),
        (Method::Get, "/v1/", Err(Unknown::Path)),
        (Method::Get, "/v1", Err(Unknown::Path)),
        (Method::Get, "/", Err(Unknown::Path)),
        (Method::Post, "/V1/chat/completions", Err(Unknown::Path)),
        (Method::Post, "/v2/chat/completions", Err(Unknown::Path)),
        (Method::Post, "/v1x/chat/completions", Err(Unknown::Path)),
    ];
    for (method, path, expected) in table {
        assert_eq!(Operation::of(*method, path), *expected, "{method:?} {path}");
    }
}

#[test]
fn a_near_miss_of_a_read_path_goes_nowhere() {
    for path in [
        "/v1/chat/completions/",
        "/v1/Chat/Completions",
        "/v1/%63hat/completions",
        "/v1/chat%2fcompletions",
        "/v1/completions%20",
        "/v1/RESPONSES",
        "/v1/Messages/",
        "/v1/embeddings/.",
        "/v1/models/",
    ] {
        for method in [Method::Post, Method::Get, Method::Put] {
            let found = Operation::of(method, path);
            assert_eq!(found, Err(Unknown::Path), "{method:?} {path}");
        }
    }
    for path in [
        "/v1/chat",
        "/v1/responses/resp_1",
        "/v1/chat/completions/id",
    ] {
        assert_eq!(Operation::of(Method::Post, path), Ok(PassThrough), "{path}");
    }
}

#[test]
fn only_bodies_that_are_read_generate_or_report_usage_on_request() {
    for operation in Operation::ALL {
        let reads = operation.reads_body();
        assert!(reads || !operation.generates(), "{operation:?}");
        assert!(
            operation.generates() || !operation.usage_on_request(),
            "{operation:?}"
        );
    }
    let mut names = Operation::ALL.map(Operation::as_str);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
