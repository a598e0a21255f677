//! Batches as clients and providers write them, and as nobody should.

use std::borrow::Cow;

use super::{
    Api, Asked, Calls, LineFault, Object, Requests, ResultLines, Served, Told, asked, creation,
    told,
};
use crate::call::CallFaultKind;
use crate::dialect::Operation;
use crate::head::Method;
use crate::usage::Reading;

#[test]
fn a_call_of_files_and_batches_is_told_by_its_path_byte_for_byte() {
    let get = |path| asked(Method::Get, path).map(|found| found.map(|n| (n.asked, n.id)));
    assert_eq!(get("/v1/files"), Some(Ok((Asked::Files, ""))));
    assert_eq!(
        get("/v1/files/file-a_1"),
        Some(Ok((Asked::File, "file-a_1")))
    );
    assert_eq!(
        get("/v1/files/f1/content"),
        Some(Ok((Asked::Content, "f1")))
    );
    assert_eq!(
        get("/v1/batches/batch_1"),
        Some(Ok((Asked::Batch, "batch_1")))
    );
    let results = "/v1/messages/batches/msgbatch_1/results";
    assert_eq!(get(results), Some(Ok((Asked::Results, "msgbatch_1"))));
    assert_eq!(get("/v1/batches/b1/cancel"), Some(Err("POST")));
    assert_eq!(asked(Method::Put, "/v1/files/f1"), Some(Err("GET, DELETE")));
    assert_eq!(asked(Method::Delete, "/v1/batches/b1"), Some(Err("GET")));
    for path in [
        "/v1/files/",
        "/v1/files//content",
        "/v1/files/f1/",
        "/v1/files/f%31",
        "/v1/files/f1/content/x",
        "/v1/files/f1/contents",
        "/v1/filesx",
        "/v1/Files",
        "/v1/batches/b1/results",
        "/v1/messages",
        "/files",
    ] {
        assert_eq!(get(path), None, "{path}");
    }
}

const LINE: &str = r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m1","messages":[]}}"#;

type Line = (usize, Result<(Operation, String), LineFault>);

fn lines(file: &str) -> Vec<Line> {
    let calls = Calls::of(file.as_bytes());
    let read = |(nth, read): (usize, Result<super::OneCall, LineFault>)| {
        let model = |one: super::OneCall| {
            let body = file.get(one.body).expect("within the file");
            assert!(body.starts_with('{') && body.ends_with('}'), "{body}");
            (one.operation, one.call.model.unwrap_or_default().into())
        };
        (nth, read.map(model))
    };
    calls.map(read).collect()
}

#[test]
fn each_line_of_a_file_is_one_call() {
    let good = |nth| (nth, Ok((Operation::Chat, "m1".to_owned())));
    for end in ["", "\n", "\r\n"] {
        let file = format!("{LINE}\r\n{LINE}\n{LINE}{end}");
        assert_eq!(lines(&file), [good(1), good(2), good(3)]);
    }
    let escaped = LINE
        .replace("\"url\"", "\"\\u0075rl\"")
        .replace("/v1/chat", "\\/v1\\/chat");
    assert_eq!(lines(&escaped), [good(1)]);
}

#[test]
fn a_line_that_servers_could_read_otherwise_is_refused_with_its_number() {
    let fault = |file: &str| {
        let (nth, read) = lines(file).pop().expect("a line");
        (nth, read.expect_err("a fault"))
    };
    assert_eq!(fault(""), (1, LineFault::Empty));
    assert!(matches!(
        lines(&format!("{LINE}\n \n{LINE}"))[1],
        (2, Err(LineFault::Empty))
    ));
    for separator in ["\u{2028}", "\u{2029}", "\u{85}"] {
        let line = LINE.replace("[]", &format!("[\"{separator}\"]"));
        assert_eq!(fault(&line), (1, LineFault::Separator));
    }
    assert_eq!(
        fault(&LINE.replace(",\"url\"", ",\r\"url\"")),
        (1, LineFault::Separator)
    );
    for url in [
        "/v1/files",
        "/v1/messages",
        "/v1/chat/completions/",
        "/v1/images/edits",
        "https://x/v1/chat/completions",
    ] {
        assert_eq!(
            fault(&LINE.replace("/v1/chat/completions", url)),
            (1, LineFault::Url),
            "{url}"
        );
    }
    for (from, to) in [
        ("\"body\":", "\"body\":{\"model\":\"m2\"},\"body\":"),
        ("\"body\":", "\"bod\\u0079\":{\"model\":\"m2\"},\"body\":"),
        ("\"body\":", "\"Body\":{\"model\":\"m2\"},\"body\":"),
        ("\"model\":\"m1\"", "\"model\":\"m1\",\"model\":\"m2\""),
        (
            "\"model\":\"m1\"",
            "\"model\":\"m1\",\"m\\u006fdel\":\"m2\"",
        ),
    ] {
        let (nth, fault) = fault(&LINE.replace(from, to));
        let LineFault::Call(fault) = fault else {
            panic!("{to}: {fault}");
        };
        let is_double = matches!(
            fault.kind,
            CallFaultKind::DuplicateMember(_) | CallFaultKind::AmbiguousMember { .. }
        );
        assert!(nth == 1 && is_double, "{to}: {fault}");
    }
    for bad in [
        format!("\u{feff}{LINE}"),
        format!("{LINE}{LINE}"),
        format!("[{LINE}]"),
        LINE.replace("\"model\":\"m1\",", ""),
        LINE.replace("POST", "GET"),
        LINE.replace("\"custom_id\":\"a\",", ""),
        LINE.get(..40).unwrap_or_default().to_owned(),
    ] {
        assert_eq!(fault(&bad).0, 1, "{bad}");
    }
}

#[test]
fn requests_within_a_body_are_read_one_by_one() {
    let one = |model: &str| {
        format!(r#" {{"custom_id":"a","params":{{"model":"{model}","max_tokens":1}}}} "#)
    };
    let body = format!(r#"{{"x":1,"requests":[{},{}]}}"#, one("c1"), one("c2"));
    let models: Vec<_> = Requests::of(body.as_bytes()).expect("a batch").collect();
    assert_eq!(models.len(), 2);
    for ((nth, read), model) in models.into_iter().zip(["c1", "c2"]) {
        let read = read.expect("a call");
        assert_eq!(read.call.model.as_deref(), Some(model), "{nth}");
        assert!(
            body.get(read.body)
                .is_some_and(|body| body.starts_with("{\"model\""))
        );
    }
    for bad in [
        r#"{"requests":[]}"#.to_owned(),
        r#"{"requests":{}}"#.to_owned(),
        "{}".to_owned(),
        format!(
            r#"{{"requests":[{}],"requests":[{}]}}"#,
            one("c1"),
            one("c2")
        ),
        format!(r#"{{"requests":[{}]"#, one("c1")),
    ] {
        assert!(Requests::of(bad.as_bytes()).is_err(), "{bad}");
    }
    let twice = one("c1").replace("\"params\"", "\"params\":{\"model\":\"c2\"},\"params\"");
    for bad in [
        twice,
        "1".to_owned(),
        "[]".to_owned(),
        one("c1").replace("params", "Params"),
    ] {
        let body = format!(r#"{{"requests":[{bad}]}}"#);
        let mut requests = Requests::of(body.as_bytes()).expect("a list");
        assert!(
            requests.next().is_some_and(|(_, read)| read.is_err()),
            "{bad}"
        );
    }
}

#[test]
fn a_batch_names_its_file_in_one_way_only() {
    let read = creation(br#"{"input_file_id":"file-1"}"#).expect("a batch");
    assert_eq!((&*read.file, read.operation), ("file-1", None));
    let read = creation(br#"{"endpoint":"/v1/embeddings","input_file_id":"f"}"#);
    let read = read.expect("a batch");
    assert_eq!(read.operation, Some(Operation::Embeddings));
    for bad in [
        &br#"{"input_file_id":"a","endpoint":"/v1/files"}"#[..],
        br#"{"input_file_id":"a","endpoint":1}"#,
        br#"{"input_file_id":"a","endpoint":"/v1/embeddings","Endpoint":"/v1/chat/completions"}"#,
        br#"{"input_file_id":"a","input_file_id":"b"}"#,
        br#"{"input_file_id":"a","Input_File_Id":"b"}"#,
        br#"{"input_file_id":1}"#,
        b"{}",
        b"[]",
    ] {
        assert!(creation(bad).is_err());
    }
}

#[test]
fn metadata_of_a_batch_is_what_the_api_takes() {
    let escaped = r"\ud83d\ude00";
    let made = |pairs: usize, name: usize, value: usize, letter: &str| {
        let pair = |n: usize| {
            let name = format!("{n:02}{}", letter.repeat(name - 2));
            format!(r#""{name}": "{}""#, letter.repeat(value))
        };
        let pairs: Vec<_> = (0..pairs).map(pair).collect();
        let body = format!(
            r#"{{"input_file_id":"file-1","metadata":{{{}}}}}"#,
            pairs.join(", ")
        );
        creation(body.as_bytes()).is_ok()
    };
    // In emoji, which ASCII has in escapes of twelve letters.
    for letter in ["a", "😀", escaped] {
        assert!(made(16, 20, 512, letter), "{letter}");
        assert!(!made(17, 20, 5, letter), "{letter}");
        assert!(!made(1, 20, 513, letter), "{letter}");
        assert!(!made(1, 65, 5, letter), "{letter}");
    }
    let long = "a".repeat(16 << 10);
    for (rest, is_taken) in [
        (r#""metadata":null"#.to_owned(), true),
        (r#""metadata":{}"#.to_owned(), true),
        (r#""metadata":{"a":1}"#.to_owned(), false),
        (r#""metadata":[]"#.to_owned(), false),
        (format!(r#""more":"{long}""#), false),
        (format!(r#""metadata":"{}""#, long.repeat(20)), false),
    ] {
        let body = format!(r#"{{"input_file_id":"file-1",{rest}}}"#);
        assert_eq!(creation(body.as_bytes()).is_ok(), is_taken);
    }
}

#[test]
fn what_a_provider_says_of_a_batch_is_read() {
    let body = br#"{"id":"batch_1","status":"completed","input_file_id":"f1","output_file_id":"f2","error_file_id":null,"usage":{"input_tokens":3,"output_tokens":4}}"#;
    let object = Object::read(Api::OpenAi, body).expect("a batch");
    assert!(object.is_over);
    assert_eq!(
        (&*object.id, object.output_file.as_deref()),
        ("batch_1", Some("f2"))
    );
    assert_eq!(object.error_file, None);
    let Reading::Valid(usage) = object.usage else {
        panic!("no usage");
    };
    assert_eq!((usage.prompt, usage.completion), (Some(3), Some(4)));
    let body =
        br#"{"id":"msgbatch_1","processing_status":"ended","results_url":"https://x.example/r"}"#;
    let object = Object::read(Api::Anthropic, body).expect("a batch");
    assert!(object.is_over);
    assert_eq!(
        object.with_results_at(body, "/v1/r"),
        br#"{"id":"msgbatch_1","processing_status":"ended","results_url":"/v1/r"}"#
    );
    assert_eq!(Object::read(Api::OpenAi, br#"{"id":"a","id":"b"}"#), None);
    assert_eq!(Object::read(Api::OpenAi, b"<html>"), None);
}

#[test]
fn results_are_read_however_they_are_cut() {
    let openai = r#"{"id":"r","custom_id":"a","response":{"status_code":200,"body":{"model":"m1-2026","usage":{"prompt_tokens":5,"completion_tokens":6}}},"error":null}"#;
    let failed = openai.replace("200", "400");
    let text = format!("{openai}\n{failed}\r\n\n{openai}");
    for cut in 0..text.len() {
        let (mut lines, mut sum, mut count) = (ResultLines::default(), 0, 0);
        let mut take = |line: Cow<'_, [u8]>| {
            count += 1;
            if let Told::Served(served) = told(Api::OpenAi, false, &line) {
                assert_eq!(served.model.as_deref(), Some("m1-2026"));
                let Reading::Valid(usage) = served.usage else {
                    panic!("no usage");
                };
                sum += usage.prompt.unwrap_or(0);
            }
        };
        let (first, second) = text.as_bytes().split_at(cut);
        lines.push(first, &mut take);
        lines.push(second, &mut take);
        lines.finish(&mut take);
        assert_eq!((count, sum, lines.skipped), (3, 10, 0), "cut at {cut}");
    }
    let anthropic = br#"{"custom_id":"a","result":{"type":"succeeded","message":{"model":"c1","usage":{"input_tokens":2,"output_tokens":3,"cache_read_input_tokens":4}}}}"#;
    let Told::Served(served) = told(Api::Anthropic, false, anthropic) else {
        panic!("nothing served");
    };
    assert_eq!((served.model.as_deref(), served.pieces), (Some("c1"), None));
    let Reading::Valid(usage) = served.usage else {
        panic!("no usage");
    };
    assert_eq!((usage.prompt, usage.cached), (Some(6), Some(4)));
    let errored = br#"{"result":{"type":"errored","error":{}}}"#;
    assert_eq!(told(Api::Anthropic, false, errored), Told::Unserved);
    let unsaid = br#"{"result":{"type":"succeeded"}}"#;
    assert_eq!(told(Api::Anthropic, false, unsaid), Told::Unreadable);
    let mut lines = ResultLines::default();
    let long = b"1,2,3,4,".repeat(100_000);
    lines.push(br#"{"response":{"body":{"usage":{"a":["#, |_| {
        panic!("no line")
    });
    for _ in 0..4 {
        lines.push(&long, |_| panic!("no line"));
    }
    let mut last = 0;
    lines.push(b"\n{}\n", |line| last = line.len());
    assert_eq!((last, lines.skipped), (2, 1));
}

/// Whoever asks for large answers has them counted as others.
#[test]
fn a_line_of_many_megabytes_tells_what_a_short_one_does() {
    let picture = "iVBORw0KGgo".repeat(200_000);
    let picture = format!(r#"{{"b64_json":"{picture}"}}"#);
    let pictures = [&*picture; 10].join(",");
    let likely = r#"{"token":"a","logprob":-0.1,"top_logprobs":[{"token":"b","bytes":[1]}]},"#
        .repeat(300_000);
    let answers = format!(
        r#"{{"index":0,"logprobs":{{"content":[{likely}null]}},"message":{{"content":"x\n\"y"}}}}"#
    );
    let usage = r#""usage":{"input_tokens":9,"output_tokens":7,"input_tokens_details":{"cached_tokens":4}}"#;
    for (name, list, pieces) in [("data", &pictures, Some(10)), ("choices", &answers, None)] {
        let line = format!(
            r#"{{"custom_id":"a","response":{{"status_code":200,"body":{{"model":"m","{name}":[{list}],{usage}}}}},"error":null}}"#
        );
        assert!(line.len() > 16 << 20, "{}", line.len());
        let whole = told(Api::OpenAi, true, line.as_bytes());
        let Told::Served(served) = &whole else {
            panic!("served");
        };
        assert_eq!(
            (served.model.as_deref(), served.pieces),
            (Some("m"), pieces)
        );
        for size in [4096, 65_536, 70_001] {
            let (mut lines, mut read) = (ResultLines::default(), Vec::new());
            let mut take = |line: Cow<'_, [u8]>| {
                assert!(line.len() < 64 << 10, "{}", line.len());
                read.push(told(Api::OpenAi, true, &line));
            };
            for piece in line.as_bytes().chunks(size) {
                lines.push(piece, &mut take);
            }
            lines.push(b"\n", &mut take);
            lines.finish(&mut take);
            assert_eq!((&*read, lines.skipped), (&[whole.clone()][..], 0));
        }
    }
}

/// Nor does what an answer repeats of a request, however its caller made that.
#[test]
fn a_line_that_repeats_a_deep_or_a_wide_object_of_its_request_tells_what_others_do() {
    let usage = r#""usage":{"input_tokens":9,"output_tokens":7}"#;
    let openai = |repeated: &str| {
        format!(
            r#"{{"custom_id":"a","response":{{"status_code":200,"body":{{"text":{repeated},"model":"m",{usage}}}}},"error":null}}"#
        )
    };
    let anthropic = |repeated: &str| {
        format!(
            r#"{{"result":{{"type":"succeeded","message":{{"repeated":{repeated},"model":"m",{usage}}}}}}}"#
        )
    };
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(70_000));
    let deep = |depth: usize, inner: &str| {
        let open = r#"{"properties":{"usage":"#.repeat(depth);
        format!("{open}{inner}{}", "}}".repeat(depth))
    };
    let wide: Vec<_> = (0..60_000)
        .map(|n| format!(r#""p{n}":{{"type":"string"}}"#))
        .collect();
    let wide = format!("{{{}}}", wide.join(","));
    assert!(wide.len() > 1 << 20);
    for (api, line) in [
        (Api::OpenAi, &openai as &dyn Fn(&str) -> String),
        (Api::Anthropic, &anthropic),
    ] {
        let expected = told(api, false, line("null").as_bytes());
        assert!(matches!(expected, Told::Served(_)));
        for repeated in [
            deep(31, &long),
            deep(100, &long),
            deep(31, "1"),
            deep(64, "1"),
            deep(5000, "[]"),
            wide.clone(),
        ] {
            let line = line(&repeated) + "\n";
            for size in [line.len(), 4096] {
                let (mut lines, mut read) = (ResultLines::default(), Vec::new());
                for piece in line.as_bytes().chunks(size) {
                    lines.push(piece, |line| read.push(told(api, false, &line)));
                }
                assert_eq!(
                    (&*read, lines.skipped),
                    (&[expected.clone()][..], 0),
                    "{}",
                    line.len()
                );
            }
        }
    }
}

/// What a message was made in, several goes, is told by a list within its usage.
#[test]
fn usage_of_a_long_line_is_read_to_its_last_list() {
    let line = |text: &str| {
        format!(
            r#"{{"result":{{"type":"succeeded","message":{{"model":"m","content":[{{"text":"{text}"}}],"usage":{{"input_tokens":1,"output_tokens":1,"iterations":[{{"type":"compaction","input_tokens":50,"output_tokens":5}},{{"type":"message","input_tokens":1,"output_tokens":1}}]}}}}}}}}"#
        )
    };
    let expected = told(Api::Anthropic, false, line("").as_bytes());
    let (mut lines, mut read) = (ResultLines::default(), Vec::new());
    let long = line(&"x".repeat(70_000));
    lines.push(long.as_bytes(), |_| panic!("it has no end"));
    lines.finish(|line| read.push(told(Api::Anthropic, false, &line)));
    assert_eq!(read, std::slice::from_ref(&expected));
    let Told::Served(served) = expected else {
        panic!("served");
    };
    let Reading::Valid(usage) = served.usage else {
        panic!("no usage");
    };
    assert_eq!(usage.prompt, Some(51));
}

/// Where a provider does not know it yet there are zeros, and a batch of which they were believed would be free.
#[test]
fn a_sum_of_zeros_is_none() {
    let sum = |usage: &str| {
        let body = format!(r#"{{"id":"b","status":"completed","usage":{usage}}}"#);
        let object = Object::read(Api::OpenAi, body.as_bytes()).expect("a batch");
        object.sum().is_some()
    };
    assert!(sum(r#"{"input_tokens":2,"output_tokens":1}"#));
    assert!(sum(r#"{"input_tokens":2,"output_tokens":0}"#));
    assert!(sum(r#"{"input_tokens":0,"output_tokens":3}"#));
    assert!(!sum(r#"{"input_tokens":0,"output_tokens":0}"#));
    assert!(!sum(r#"{"input_tokens":0}"#));
    assert!(!sum("null") && !sum("{}"));
}

#[test]
fn a_batch_that_names_no_result_says_whether_that_is_all() {
    let lacks = |api, text: &str| {
        Object::read(api, text.as_bytes())
            .expect("a batch")
            .lacks_result()
    };
    let anthropic = |counts: &str| {
        format!(
            r#"{{"id":"b","processing_status":"ended","results_url":null,"request_counts":{counts}}}"#
        )
    };
    assert!(lacks(
        Api::Anthropic,
        &anthropic(r#"{"succeeded":1,"errored":0}"#)
    ));
    assert!(!lacks(
        Api::Anthropic,
        &anthropic(r#"{"succeeded":0,"errored":2}"#)
    ));
    let openai = |status: &str, rest: &str| format!(r#"{{"id":"b","status":"{status}"{rest}}}"#);
    let completed = |rest: &str| lacks(Api::OpenAi, &openai("completed", rest));
    assert!(completed(r#","request_counts":{"completed":1}"#));
    let zeros = r#","usage":{"input_tokens":0,"output_tokens":0}"#;
    assert!(completed(&format!(
        r#"{zeros},"request_counts":{{"completed":1}}"#
    )));
    assert!(!completed(r#","request_counts":{"completed":0}"#));
    assert!(completed(""));
    assert!(!completed(r#","error_file_id":"file-e""#));
    assert!(!lacks(Api::OpenAi, &openai("failed", "")));
    assert!(lacks(
        Api::OpenAi,
        &openai("cancelled", r#","request_counts":{"completed":3}"#)
    ));
}

#[test]
fn a_line_that_was_cut_off_is_none() {
    let line = br#"{"custom_id":"a","response":{"status_code":200,"body":{"model":"m"}}}"#;
    let is_line = |line: &[u8]| told(Api::OpenAi, false, line) != Told::Unreadable;
    assert!(is_line(line));
    for end in 0..line.len() {
        assert!(!is_line(&line[..end]), "{end}");
    }
    assert!(!is_line(b"[1]") && !is_line(b"{}{}"));
}

#[test]
fn of_a_member_that_stands_twice_the_last_counts_with_all_that_it_holds() {
    let line = br#"{"response":{"status_code":200,"body":{"model":"a","usage":{"input_tokens":9}}},"response":{"body":{"usage":{"input_tokens":1}},"status_code":500,"body":{"model":"b","data":[{},{}]},"status_code":201}}"#;
    for (counts_pieces, pieces) in [(true, Some(2)), (false, None)] {
        let served = Box::new(Served {
            model: Some("b".into()),
            usage: Reading::Absent,
            pieces,
        });
        assert_eq!(told(Api::OpenAi, counts_pieces, line), Told::Served(served));
    }
}

#[test]
fn a_line_says_what_became_of_its_call_in_the_way_that_is_read_or_is_none() {
    for (api, line, is_one) in [
        (Api::OpenAi, r#"{"response":{"status_code":500}}"#, true),
        (
            Api::OpenAi,
            r#"{"response":null,"error":{"code":"x"}}"#,
            true,
        ),
        (Api::OpenAi, r#"{"response":{"status_code":"200"}}"#, false),
        (Api::OpenAi, r#"{"response":null,"error":null}"#, false),
        (Api::OpenAi, r#"{"type":"error","message":"away"}"#, false),
        (Api::Anthropic, r#"{"result":{"type":"errored"}}"#, true),
        (Api::Anthropic, r#"{"result":{"type":"expired"}}"#, true),
        (
            Api::Anthropic,
            r#"{"result":{"type":"succe\u0065ded"}}"#,
            false,
        ),
        (
            Api::Anthropic,
            r#"{"type":"error","error":{"type":"x"}}"#,
            false,
        ),
    ] {
        let told = told(api, false, line.as_bytes());
        assert_eq!(told != Told::Unreadable, is_one, "{line}");
    }
}

#[test]
fn a_file_of_calls_may_end_in_several_ends_of_lines_and_has_none_between() {
    let line = r#"{"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{"model":"m"}}"#;
    let read = |file: String| {
        let calls = Calls::of(file.as_bytes()).map(|(nth, call)| (nth, call.map(drop)));
        calls.collect::<Vec<_>>()
    };
    for end in ["", "\n", "\n\n", "\r\n\r\n", "\n\n\n"] {
        assert_eq!(read(format!("{line}{end}")), [(1, Ok(()))], "{end:?}");
    }
    let between = read(format!("{line}\n\n{line}\n"));
    assert_eq!(
        between,
        [(1, Ok(())), (2, Err(LineFault::Empty)), (3, Ok(()))]
    );
    for none in ["", "\n", "\n\n"] {
        assert_eq!(read(none.to_owned()), [(1, Err(LineFault::Empty))]);
    }
}
