//! Forms as SDKs write them and as nobody should, whole and cut at every byte.

use super::*;
use crate::call::{CallScanner, apply, splices};

const BOUNDARY: &str = "b-1";

fn boundary() -> Boundary {
    Boundary::of(b"multipart/form-data; boundary=b-1").expect("a boundary")
}

/// A form of these parts, each its head and its value.
fn form(parts: &[(&str, &str)]) -> String {
    let parts = parts
        .iter()
        .map(|(head, value)| format!("--{BOUNDARY}\r\n{head}\r\n\r\n{value}\r\n"));
    format!("{}--{BOUNDARY}--\r\n", parts.collect::<String>())
}

fn field(name: &str) -> String {
    format!("Content-Disposition: form-data; name=\"{name}\"")
}

fn read(body: &[u8], cuts: &[usize]) -> Result<CallHead, CallFault> {
    let mut scanner = CallScanner::of_form(&boundary());
    let mut done = 0;
    for cut in cuts.iter().copied().chain([body.len()]) {
        scanner.push(&body[done..cut])?;
        done = cut;
    }
    scanner.finish().map(std::mem::take)
}

/// What is read of a body, the same for every cut into two and for single bytes.
fn read_cut(body: &str) -> Result<CallHead, CallFault> {
    let body = body.as_bytes();
    let whole = read(body, &[]);
    for cut in 0..=body.len() {
        let other = read(body, &[cut]);
        let same = |fault: &CallFault| fault.code();
        assert_eq!(
            other.as_ref().map_err(same),
            whole.as_ref().map_err(same),
            "cut at {cut}"
        );
    }
    let each: Vec<usize> = (0..body.len()).collect();
    let bytewise = read(body, &each);
    assert_eq!(bytewise.is_ok(), whole.is_ok());
    whole
}

const AUDIO: &str = "RIFF\r\n--b-\r\r\n\r\n--b-2\r\n--\r\nname=\"model\"\r\n";

#[test]
fn a_form_says_its_model_how_it_answers_and_how_often() {
    let file = "Content-Disposition: form-data; name=\"file\"; filename=\"100% C:\\a.wav\"\r\nContent-Type: audio/wav";
    let parts = [
        (file, AUDIO),
        (&field("model"), "gpt-4o-transcribe"),
        (&field("stream"), "true"),
        (
            "content-disposition: form-data; name=n\r\ncontent-type: text/plain; charset=utf-8",
            "2",
        ),
        (&field("include[]"), "logprobs"),
        (&field("include[]"), "more"),
    ];
    let body = form(&parts);
    let head = read_cut(&body).expect("a form");
    assert_eq!(head.model.as_deref(), Some("gpt-4o-transcribe"));
    assert!(head.stream && head.is_form);
    assert_eq!((head.n, head.length), (Some(2), body.len()));
    let edits = splices(&head, Some("whisper-1"), true);
    let edited = apply(&[body.clone().into()], &edits).concat();
    let expected = body.replace("gpt-4o-transcribe", "whisper-1");
    assert_eq!(String::from_utf8(edited).expect("text"), expected);
    assert_eq!(splices(&head, Some("gpt-4o-transcribe"), false), []);
    // Without the line end behind it, and without a model.
    let bare = form(&parts[..1]);
    let head = read_cut(bare.trim_end()).expect("a form");
    assert_eq!((head.model, head.stream), (None, false));
}

#[test]
fn a_form_that_could_be_read_in_two_ways_is_refused_by_what_it_says() {
    let model = field("model");
    let twice = form(&[(&model, "a"), (&model, "a")]);
    let table = [
        (twice, "duplicate_member"),
        (form(&[(&field("Model"), "a")]), "invalid_form"),
        // A boundary that some servers see: at the beginning of a value, behind a bare line feed or return, or on its way.
        (form(&[(&field("x"), "--b-1")]), "invalid_form"),
        (form(&[(&field("x"), "a\n--b-1\r\nc")]), "invalid_form"),
        (form(&[(&field("x"), "a\r--b-1--")]), "invalid_form"),
        (form(&[(&field("x"), "a--b-1")]), "invalid_form"),
        (
            form(&[(
                &format!(
                    "{}\r\nContent-Type: Multipart/mixed; boundary=i",
                    field("x")
                ),
                "a",
            )]),
            "invalid_form",
        ),
        (
            form(&[(
                &format!("{}\r\nContent-Transfer-Encoding: base64", field("file")),
                "YQ==",
            )]),
            "invalid_form",
        ),
        (
            form(&[(
                &format!(
                    "{}\r\ncontent-transfer-encoding: Quoted-Printable",
                    field("x")
                ),
                "a",
            )]),
            "invalid_form",
        ),
        (form(&[(&field("model[]"), "a")]), "invalid_form"),
        (form(&[(&field(" model"), "a")]), "invalid_form"),
        (form(&[(&field("mo%64el"), "a")]), "invalid_form"),
        (form(&[(&field("mo\\del"), "a")]), "invalid_form"),
        (form(&[(&field("_charset_"), "utf-16")]), "invalid_form"),
        (
            form(&[(&format!("{model}; filename=\"model\""), "a")]),
            "invalid_form",
        ),
        (
            form(&[(&format!("{model}; name=\"file\""), "a")]),
            "invalid_form",
        ),
        (
            form(&[(
                "Content-Disposition: form-data; filename=\"a\\\"; name=\\\"x\"; name=\"model\"",
                "a",
            )]),
            "invalid_form",
        ),
        (
            form(&[("Content-Disposition: form-data; name*=utf-8''model", "a")]),
            "invalid_form",
        ),
        (
            form(&[(&format!("{model}\r\n{}", field("x")), "a")]),
            "invalid_form",
        ),
        (form(&[(&format!("{model}\r\n x: y"), "a")]), "invalid_form"),
        (
            form(&[(
                &format!("{model}\r\nContent-Transfer-Encoding: base64"),
                "YQ==",
            )]),
            "invalid_form",
        ),
        (
            form(&[(&format!("{model}\r\nContent-Type: application/json"), "a")]),
            "invalid_form",
        ),
        (form(&[("X: y", "a")]), "invalid_form"),
        (form(&[(&model, "a b")]), "bad_model_name"),
        (form(&[(&model, "")]), "bad_model_name"),
        (form(&[(&model, &"a".repeat(257))]), "bad_model_name"),
        (form(&[(&field("stream"), "True")]), "wrong_type"),
        (form(&[(&field("n"), "-1")]), "out_of_range"),
        (form(&[(&field("n"), "4294967296")]), "out_of_range"),
        (form(&[]), "invalid_form"),
        (String::new(), "invalid_form"),
        (
            format!("preamble\r\n{}", form(&[(&model, "a")])),
            "invalid_form",
        ),
        (format!("\r\n{}", form(&[(&model, "a")])), "invalid_form"),
        (format!("{}x", form(&[(&model, "a")])), "invalid_form"),
        (format!("{}\r\n", form(&[(&model, "a")])), "invalid_form"),
        (form(&[(&model, "a")]).replace("\r\n", "\n"), "invalid_form"),
        (
            form(&[(&model, "a")]).replacen("--b-1\r\n", "--b-1 \r\n", 1),
            "invalid_form",
        ),
        (
            form(&[(&model, "a")]).replace("--b-1--\r\n", "--b-1"),
            "invalid_form",
        ),
        (
            form(&[(&model, "a")]).replace("--b-1--\r\n", ""),
            "invalid_form",
        ),
        (
            form(&[(&format!("x: {}", "y".repeat(HEAD_BYTES)), "a")]),
            "invalid_form",
        ),
    ];
    for (body, code) in table {
        let fault = read_cut(&body).expect_err(&body);
        assert_eq!(fault.code(), code, "{body}");
    }
    let field = field("x");
    let many: Vec<_> = (0..=PARTS).map(|_| (&*field, "y")).collect();
    let fault = read(form(&many).as_bytes(), &[]).expect_err("too many");
    assert_eq!(fault.kind, CallFaultKind::InvalidForm(FormFault::Parts));
}

#[test]
fn a_boundary_is_said_in_one_way() {
    let good = [
        "multipart/form-data; boundary=b-1",
        "Multipart/Form-Data;boundary=\"b-1\"",
        "multipart/form-data; Boundary=b-1 ",
    ];
    for text in good {
        assert_eq!(Boundary::of(text.as_bytes()), Some(boundary()), "{text}");
    }
    let bad = [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"b-1",
        "multipart/form-data; boundary=a; boundary=b-1",
        "multipart/form-data; boundary=b-1; charset=utf-8",
        "multipart/form-data; boundary*=utf-8''b-1",
        "multipart/form-data; boundary=b 1",
        "multipart/mixed; boundary=b-1",
        "application/json",
    ];
    for text in bad {
        assert_eq!(Boundary::of(text.as_bytes()), None, "{text}");
    }
    let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
    assert_eq!(Boundary::of(long.as_bytes()), None);
}

#[test]
fn random_forms_are_read_the_same_however_they_are_cut() {
    let seed = testing::seed("wire::random_forms");
    let mut state = seed;
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let model = field("model");
    for _ in 0..3_000 {
        let noise: Vec<u8> = (0..next(60)).map(|_| b"\r\n-b1- x"[next(8)]).collect();
        let noise = String::from_utf8(noise).expect("text");
        let mut body = form(&[(&field("file"), &noise), (&model, "m")]).into_bytes();
        if next(2) == 0 {
            let at = next(body.len());
            body[at] = b"\r\n-b\":;= "[next(9)];
        }
        let mut cuts: Vec<usize> = (0..next(6)).map(|_| next(body.len())).collect();
        cuts.sort_unstable();
        let same = |read: Result<CallHead, CallFault>| read.map_err(|fault| fault.code());
        assert_eq!(
            same(read(&body, &cuts)),
            same(read(&body, &[])),
            "{:?} {cuts:?}",
            String::from_utf8_lossy(&body)
        );
    }
}
