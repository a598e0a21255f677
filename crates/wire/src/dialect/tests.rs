//! The table from path and method to operation, row by row, and what lies around it.

use crate::head::{ID_BEGINS, Method};

use super::Operation::{
    Chat, Completions, CountContent, CountTokens, EmbedContent, Embeddings, GeminiModels,
    GenerateContent, ImageEdits, Images, InputTokens, Messages, Models, Moderations, Realtime,
    Rerank, Responses, Speech, Transcriptions, Unread,
};
use super::gemini::{self, Manner, Named};
use super::{ErrorFormat, MODELS, Name, Operation, POSTED, Unknown, names};

#[test]
fn every_path_and_method_has_one_meaning() {
    let any = Unknown::Method("GET, HEAD, POST, PUT, PATCH, DELETE");
    let post = Unknown::Method("POST");
    let read = Unknown::Method("GET, HEAD");
    let table: &[(Method, &str, Result<Operation, Unknown>)] = &[
        (Method::Post, "/v1/chat/completions", Ok(Chat)),
        (Method::Get, "/v1/chat/completions", Ok(Unread)),
        (Method::Put, "/v1/chat/completions", Err(post)),
        (Method::Options, "/v1/chat/completions", Err(post)),
        (Method::Post, "/v1/completions", Ok(Completions)),
        (Method::Get, "/v1/completions", Ok(Unread)),
        (Method::Post, "/v1/responses", Ok(Responses)),
        (Method::Delete, "/v1/responses", Err(post)),
        (Method::Get, "/v1/responses/resp_1", Ok(Unread)),
        (Method::Post, "/v1/responses/input_tokens", Ok(InputTokens)),
        (Method::Post, "/v1/messages", Ok(Messages)),
        (Method::Post, "/v1/messages/count_tokens", Ok(CountTokens)),
        (Method::Patch, "/v1/messages/count_tokens", Err(post)),
        (Method::Post, "/v1/embeddings", Ok(Embeddings)),
        (Method::Delete, "/v1/embeddings", Err(post)),
        (Method::Post, "/v1/moderations", Ok(Moderations)),
        (Method::Post, "/v1/rerank", Ok(Rerank)),
        (Method::Post, "/v1/score", Ok(Rerank)),
        (Method::Post, "/v2/rerank", Ok(Rerank)),
        (Method::Get, "/v2/rerank", Err(post)),
        (Method::Post, "/v2/rerank/", Err(Unknown::Path)),
        (Method::Post, "/v2/score", Err(Unknown::Path)),
        (Method::Post, "/v1/audio/speech", Ok(Speech)),
        (Method::Post, "/v1/audio/transcriptions", Ok(Transcriptions)),
        (Method::Post, "/v1/audio/translations", Ok(Transcriptions)),
        (Method::Post, "/v1/images/generations", Ok(Images)),
        (Method::Post, "/v1/images/edits", Ok(ImageEdits)),
        (Method::Post, "/v1/images/variations", Ok(ImageEdits)),
        (Method::Get, "/v1/models", Ok(Models)),
        (Method::Head, "/v1/models", Ok(Models)),
        (Method::Post, "/v1/models", Ok(Unread)),
        (Method::Options, "/v1/models", Err(read)),
        (Method::Get, "/v1/models/org/name", Ok(Models)),
        (Method::Get, "/v1/models/ft%3Agpt-4o", Ok(Models)),
        (Method::Get, "/v1/models/", Ok(Unread)),
        (Method::Get, "/v1/models/a%3Fb", Ok(Unread)),
        (Method::Get, "/v1/models/a%c5%bf", Ok(Unread)),
        (Method::Delete, "/v1/models/mine", Ok(Unread)),
        (Method::Post, "/v1/v1/chat/completions", Ok(Unread)),
        (Method::Patch, "/v1/x", Ok(Unread)),
        (Method::Other, "/v1/x", Err(any)),
        (Method::Options, "/v1/x", Err(any)),
        (Method::Get, "/v1/", Err(Unknown::Path)),
        (Method::Get, "/v1", Err(Unknown::Path)),
        (Method::Get, "/", Err(Unknown::Path)),
        (Method::Post, "/V1/chat/completions", Err(Unknown::Path)),
        (Method::Post, "/v2/chat/completions", Err(Unknown::Path)),
        (Method::Post, "/v1x/chat/completions", Err(Unknown::Path)),
        (
            Method::Post,
            "/v1beta/models/gemini-3-flash:generateContent",
            Ok(GenerateContent),
        ),
        (
            Method::Post,
            "/v1beta/models/org/m:latest:streamGenerateContent",
            Ok(GenerateContent),
        ),
        (
            Method::Post,
            "/v1beta/tunedModels/t:generateContent",
            Ok(GenerateContent),
        ),
        (
            Method::Post,
            "/v1beta/models/m:countTokens",
            Ok(CountContent),
        ),
        (
            Method::Post,
            "/v1beta/models/m:batchEmbedContents",
            Ok(EmbedContent),
        ),
        (Method::Get, "/v1beta/models/m:generateContent", Err(post)),
        (Method::Get, "/v1beta/models", Ok(GeminiModels)),
        (Method::Head, "/v1beta/models", Ok(GeminiModels)),
        (Method::Post, "/v1beta/models", Err(read)),
        (Method::Delete, "/v1beta/models/m", Err(read)),
        (Method::Get, "/v1beta/models/org/m:free", Ok(GeminiModels)),
        (Method::Get, "/v1beta/models/", Err(Unknown::Path)),
        (Method::Get, "/v1beta/models/a%3Fb", Err(Unknown::Path)),
        (Method::Get, "/v1beta/modelsx", Err(Unknown::Path)),
        (Method::Get, "/v1beta1/models", Err(Unknown::Path)),
        (
            Method::Get,
            "/v1beta1/publishers/google/models",
            Ok(GeminiModels),
        ),
        (
            Method::Get,
            "/v1/publishers/google/models/m",
            Ok(GeminiModels),
        ),
        (
            Method::Get,
            "/v1/projects/p/locations/l/publishers/org/models/m",
            Ok(GeminiModels),
        ),
        (Method::Get, "/v1/publishers/org/models", Ok(Unread)),
        (Method::Get, "/v1/publishers/google/models/a/b", Ok(Unread)),
        (Method::Get, "/v1/projects/p/locations/l/models", Ok(Unread)),
        (
            Method::Post,
            "/v1beta1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
            Ok(GenerateContent),
        ),
        (
            Method::Post,
            "/v1/projects/p/locations/l/publishers/org/models/m:countTokens",
            Ok(CountContent),
        ),
        (
            Method::Post,
            "/v1beta1/publishers/google/models/m:embedContent",
            Ok(EmbedContent),
        ),
        (
            Method::Post,
            "/v1beta1/publishers/google/models/m:predict",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/v1beta1/publishers/google/models/a/b:generateContent",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/v1beta1/publishers/a%2Fb/models/m:generateContent",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/v1/projects/p/locations/l/endpoints/1:generateContent",
            Ok(Unread),
        ),
        (
            Method::Post,
            "/v1/projects/p/x/locations/l/models/m:generateContent",
            Ok(Unread),
        ),
        (Method::Post, "/v1beta/models/m:predict", Err(Unknown::Path)),
        (
            Method::Post,
            "/v1beta/models/:generateContent",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/v1beta/models/a%3Fb:generateContent",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/v1beta/models/m:GenerateContent",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/V1beta/models/m:generateContent",
            Err(Unknown::Path),
        ),
        (
            Method::Post,
            "/v1/models/m:generateContent",
            Ok(GenerateContent),
        ),
        (
            Method::Post,
            "/v1/models/org%2Fm:generateContent",
            Ok(GenerateContent),
        ),
        (Method::Get, "/v1/models/m:generateContent", Ok(Models)),
        (Method::Post, "/v1/models/m:predict", Ok(Unread)),
        (
            Method::Post,
            "/v1beta/files/m:generateContent",
            Err(Unknown::Path),
        ),
    ];
    for (method, path, expected) in table {
        assert_eq!(Operation::of(*method, path), *expected, "{method:?} {path}");
    }
}

#[test]
fn a_call_that_nobody_lists_is_told_which_method_its_path_takes() {
    assert_eq!(
        Operation::unlisted("/v1/chat/completions"),
        Unknown::Method("POST")
    );
    assert_eq!(
        Operation::unlisted("/v1/models"),
        Unknown::Method("GET, HEAD")
    );
    assert_eq!(Operation::unlisted("/v1/files"), Unknown::Operation);
    assert_eq!(
        Operation::unlisted("/v1/Chat/completions"),
        Unknown::Operation
    );
}

#[test]
fn only_the_very_path_of_an_operation_names_it() {
    for (path, operation) in POSTED {
        let whole = format!("/v1/{path}");
        assert_eq!(Operation::of(Method::Post, &whole), Ok(operation));
        let others = [
            format!("{whole}/"),
            format!("/v1//{path}"),
            format!("/v1/v1/{path}"),
            format!("/v1/{}", path.to_uppercase()),
            format!("{whole}%20"),
            format!("{whole}%3Fa=b"),
            format!("{whole}%c5%bf"),
            format!("{}%c5%bf", whole.trim_end_matches('s')),
            whole.replacen('o', "%6f", 1),
            path.replace('/', "%2f"),
            format!("{whole}."),
        ];
        for other in others {
            let found = Operation::of(Method::Post, &other);
            let nowhere = matches!(found, Ok(Unread) | Err(Unknown::Path));
            assert!(nowhere || other == whole, "{other}: {found:?}");
        }
    }
}

#[test]
fn only_bodies_that_are_read_generate_or_report_usage_on_request() {
    for operation in Operation::ALL {
        // What asks for an answer of Realtime is an event, and read as one; calls of a batch are read line by line.
        let reads = operation.reads_body() || matches!(operation, Realtime | Operation::BatchUsage);
        assert!(reads || !operation.generates(), "{operation:?}");
        assert!(reads || !operation.is_metered(), "{operation:?}");
        assert!(reads || !operation.answers_json(), "{operation:?}");
        assert!(
            operation.generates() || !operation.usage_on_request(),
            "{operation:?}"
        );
    }
    let mut names = Operation::ALL.map(Operation::as_str);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn an_event_is_decoded_for_every_usage_and_error_that_a_dialect_has() {
    // `sse` looks for these two words before it decodes.
    let ends = |path: &str, word| path.rsplit('.').next() == Some(word);
    let [of_event, of_response, of_gemini, of_cohere] = names(Name::EventUsage);
    let beginning = super::name(Name::BeginningUsage);
    let usage = [of_event, of_response, of_gemini, of_cohere, beginning];
    let begins = |path: &&str| {
        let last = path.rsplit('.').next();
        last.is_some_and(|last| last.starts_with("usage"))
    };
    assert!(usage.iter().all(begins), "{usage:?}");
    let errors = names::<3>(Name::EventError);
    assert!(errors.iter().all(|path| ends(path, "error")), "{errors:?}");
}

#[test]
fn an_error_is_told_in_the_format_of_the_api_below_whose_path_it_is() {
    for path in [
        "/v1/messages",
        "/v1/messages/batches",
        "/v1/messages/count_tokens",
        "/v1/v1/messages",
    ] {
        assert_eq!(ErrorFormat::of(path), ErrorFormat::Anthropic, "{path}");
    }
    for path in [
        "/v1beta/models/m:generateContent",
        "/v1beta/models",
        "/v1/models/m:generateContent",
        "/v1beta1/publishers/google/models",
        "/v1/publishers/google/models/m",
        "/v1/projects/p/locations/l/x",
        "/v1/v1beta/models/m:generateContent",
    ] {
        assert_eq!(ErrorFormat::of(path), ErrorFormat::Google, "{path}");
    }
    for path in [
        "/v1/messagesx",
        "/messages",
        "/v1/responses/input_tokens",
        "/v1/x",
        "",
    ] {
        assert_eq!(ErrorFormat::of(path), ErrorFormat::OpenAi, "{path}");
    }
}

#[test]
fn an_id_in_a_path_begins_where_a_model_is_named() {
    assert_eq!(ID_BEGINS, format!("v1/{MODELS}/").as_bytes());
}

#[test]
fn a_path_of_google_says_which_model_answers_and_how() {
    let table = [
        ("models/m:generateContent", None, "m", Manner::Whole),
        ("models/m:streamGenerateContent", None, "m", Manner::List),
        (
            "models/m:streamGenerateContent",
            Some("key=k&alt=sse"),
            "m",
            Manner::Events,
        ),
        (
            "models/m:streamGenerateContent",
            Some("alt=json"),
            "m",
            Manner::List,
        ),
        ("models/m:countTokens", Some("alt=sse"), "m", Manner::Whole),
        (
            "models/org/m:free:generateContent",
            None,
            "org/m:free",
            Manner::Whole,
        ),
        (
            "models/m%3Afree:generateContent",
            None,
            "m:free",
            Manner::Whole,
        ),
        (
            "tunedModels/t:generateContent",
            None,
            "tunedModels/t",
            Manner::Whole,
        ),
    ];
    for (rest, query, model, manner) in table {
        let path = format!("/v1beta/{rest}");
        let named = Named::of(&path).expect("a call");
        assert_eq!(
            (&*named.model, named.manner(query)),
            (model, manner),
            "{rest}"
        );
        let again = gemini::path(&named.model, named.verb);
        let again = Named::below_root(&again).expect("a call");
        assert_eq!((again.model, again.verb), (named.model, named.verb));
    }
}

#[test]
fn a_path_of_vertex_names_its_model_by_publisher_and_leaves_the_project_to_the_backend() {
    let table = [
        ("google", "m", "m"),
        ("org", "m@001", "org/m@001"),
        ("google", "m:free", "m:free"),
    ];
    for (publisher, model, name) in table {
        for place in [
            "",
            "projects/p/locations/l/",
            "projects/a.com:p/locations/l/",
        ] {
            let path = format!("/v1/{place}publishers/{publisher}/models/{model}:generateContent");
            let named = Named::of(&path).expect("a call");
            assert_eq!(&*named.model, name, "{path}");
            let below = format!("/publishers/{publisher}/models/{model}:generateContent");
            assert_eq!(named.below, below);
            let again = named.path_of(&named.model);
            let again = Named::below_root(&again);
            // What an escape says was said as it is.
            assert!(model.contains(':') || again == Some(named), "{again:?}");
        }
    }
    let named = Named::of("/v1beta/models/m:generateContent").expect("a call");
    assert_eq!(named.path_of("org/n"), "/models/org%2Fn:generateContent");
}
