//! Uploads as clients write them, and as nobody should.

use super::{Upload, UploadFault};
use crate::call::form::{Boundary, FormFault};

fn read(body: &str) -> Result<(Option<Box<str>>, String), UploadFault> {
    let boundary = Boundary::of(b"multipart/form-data; boundary=b0").expect("a boundary");
    let upload = Upload::read(&boundary, body.as_bytes())?;
    let file = body.get(upload.file).expect("within the body").to_owned();
    Ok((upload.purpose, file))
}

const PURPOSE: &str = "--b0\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n";
const FILE: &str = "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\nContent-Type: application/octet-stream\r\n\r\n{}\n\r\n";

#[test]
fn an_upload_is_its_purpose_and_its_file_in_either_order() {
    let good = Ok((Some("batch".into()), "{}\n".to_owned()));
    assert_eq!(read(&format!("{PURPOSE}{FILE}--b0--\r\n")), good);
    assert_eq!(read(&format!("{FILE}{PURPOSE}--b0--")), good);
    let expiry =
        "--b0\r\ncontent-disposition: form-data; name=\"expires_after[seconds]\"\r\n\r\n3600\r\n";
    assert_eq!(read(&format!("{FILE}{expiry}{PURPOSE}--b0--")), good);
    assert_eq!(read(&format!("{FILE}--b0--")), Ok((None, "{}\n".into())));
}

#[test]
fn what_two_servers_could_read_in_two_ways_is_refused() {
    let form = |fault: FormFault| UploadFault::Form(fault);
    for (body, fault) in [
        (
            format!("{PURPOSE}{PURPOSE}{FILE}--b0--"),
            UploadFault::Twice("purpose"),
        ),
        (
            format!("{PURPOSE}{FILE}{FILE}--b0--"),
            UploadFault::Twice("file"),
        ),
        (format!("{PURPOSE}--b0--"), UploadFault::Missing("file")),
        (
            format!(
                "{}{FILE}--b0--",
                PURPOSE.replace("\"purpose\"", "\"Purpose\"")
            ),
            UploadFault::Part,
        ),
        (
            format!("{PURPOSE}{}--b0--", FILE.replace("\"file\"", "\"file[]\"")),
            UploadFault::Part,
        ),
        (
            format!(
                "{PURPOSE}{}--b0--",
                FILE.replace("a.jsonl", "a\\\"; name=\\\"x")
            ),
            form(FormFault::Name),
        ),
        (
            format!(
                "{PURPOSE}{}--b0--",
                FILE.replace("; filename=\"a.jsonl\"", "")
            ),
            UploadFault::Kind("file", "a file, with a `filename`"),
        ),
        (
            format!(
                "{}{FILE}--b0--",
                PURPOSE.replace("\"purpose\"", "\"purpose\"; filename=\"p\"")
            ),
            UploadFault::Kind("purpose", "a text, and no file"),
        ),
        (
            format!("{}{FILE}--b0--", PURPOSE.replace("batch", "ba tch")),
            UploadFault::Kind("purpose", "a plain word"),
        ),
        (
            format!("{PURPOSE}{}--b0--", FILE.replace("{}\n", "{\n--b0\n}")),
            form(FormFault::Within),
        ),
        (format!("{PURPOSE}{FILE}"), form(FormFault::Cut)),
        (
            format!("x{PURPOSE}{FILE}--b0--"),
            form(FormFault::Beginning),
        ),
        (
            format!("{PURPOSE}{FILE}--b0--\r\nx"),
            form(FormFault::BehindEnd),
        ),
        (
            format!(
                "{PURPOSE}{}--b0--",
                FILE.replace("application/octet-stream", "multipart/mixed; boundary=c")
            ),
            form(FormFault::Nested),
        ),
        (
            format!(
                "{PURPOSE}{}--b0--",
                FILE.replace(
                    "Content-Type: application/octet-stream",
                    "Content-Transfer-Encoding: base64"
                )
            ),
            form(FormFault::Encoded),
        ),
    ] {
        assert_eq!(read(&body), Err(fault), "{body}");
    }
}

#[test]
fn a_part_that_says_how_it_is_written_is_read_as_its_bytes_or_refused() {
    let with = |line: &str| {
        let file = FILE.replace("Content-Type: application/octet-stream", line);
        read(&format!("{PURPOSE}{file}--b0--"))
    };
    for good in [
        "Content-Type: text/plain; charset=utf-8",
        "Content-Type: application/jsonl; charset=\"UTF-8\"",
        "Content-Type: text/plain;charset=US-ASCII",
        "Content-Encoding: identity",
    ] {
        assert!(with(good).is_ok(), "{good}");
    }
    for bad in [
        "Content-Encoding: gzip",
        "content-encoding: identity, br",
        "Content-Type: text/plain; charset=utf-7",
        "Content-Type: text/plain; charset=utf-16",
        "Content-Type: text/plain; Charset = ibm037",
        "Content-Type: text/plain; charset*=utf-8''utf-7",
        "Content-Type: text/plain; charset=utf-8; charset=utf-7",
        "Content-Type: text/plain; charset=iso-8859-1",
    ] {
        assert_eq!(with(bad), Err(FormFault::Encoded.into()), "{bad}");
    }
    // A word is the same in both.
    let purpose = PURPOSE.replace(
        "\r\n\r\n",
        "\r\nContent-Type: text/plain; charset=ISO-8859-1\r\n\r\n",
    );
    assert!(read(&format!("{purpose}{FILE}--b0--")).is_ok());
}
