//! Images, documents and sound: their formats, and the names of documents, of which the API wants one each, in few characters.
//!
//! Invariant: the name of a document depends on it and on those before it alone.

use std::collections::{HashMap, HashSet};

use crate::call::Media;
use crate::json::Json;

/// The most characters of a name.
const NAME_CHARS: usize = 200;
/// What a document without a name is called.
const NAMELESS: &str = "document";

/// The names of the documents so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    /// How often each was given: those up to there are taken.
    given: HashMap<String, usize>,
}

impl Names {
    /// A name for the next document, which is no other's.
    fn next(&mut self, name: Option<&str>) -> String {
        let name = name.map(clean).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| NAMELESS.to_owned());
        let mut unique = name.clone();
        let given = self.given.entry(name.clone()).or_insert(1);
        while !self.taken.insert(unique.clone()) {
            *given += 1;
            let more = format!(" ({given})");
            let room = NAME_CHARS - more.len();
            unique = name.chars().take(room).chain(more.chars()).collect();
        }
        unique
    }
}

/// A name in the characters that the API takes.
fn clean(name: &str) -> String {
    let mut clean = String::new();
    for c in name.chars().take(NAME_CHARS) {
        match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '(' | ')' | '[' | ']') => {
                clean.push(c);
            }
            c if c.is_whitespace() => {
                if !clean.ends_with(' ') {
                    clean.push(' ');
                }
            }
            _ => clean.push('-'),
        }
    }
    clean.trim().to_owned()
}

pub(super) fn write_image(media: &Media<'_>, json: &mut Json) -> Result<(), String> {
    let format = match media {
        Media::Data(kind, _) => image(bare(kind)),
        Media::Url(url) => end_of(url).and_then(|end| image(&format!("image/{end}"))),
    };
    let format = format.ok_or_else(|| {
        "a backend that speaks bedrock takes images in PNG, JPEG, GIF and WebP".to_owned()
    })?;
    write("image", format, None, media, json)
}

pub(super) fn write_document(
    media: &Media<'_>,
    name: Option<&str>,
    names: &mut Names,
    json: &mut Json,
) -> Result<(), String> {
    let of_kind = match media {
        Media::Data(kind, _) => document(bare(kind)),
        Media::Url(_) => None,
    };
    let path = match media {
        Media::Data(..) => name,
        Media::Url(url) => Some(&**url),
    };
    let format = of_kind.or_else(|| path.and_then(end_of).and_then(|end| of_end(&end)));
    let format = format.ok_or_else(|| {
        "a backend that speaks bedrock takes documents in PDF, CSV, Word, Excel, HTML, text and Markdown"
            .to_owned()
    })?;
    let name = names.next(name);
    write("document", format, Some(&name), media, json)
}

pub(super) fn write_sound(data: &str, format: &str, json: &mut Json) {
    json.key("audio").object(|json| {
        json.say("format", format);
        json.key("source").object(|json| json.say("bytes", data));
    });
}

fn write(
    member: &'static str,
    format: &'static str,
    name: Option<&str>,
    media: &Media<'_>,
    json: &mut Json,
) -> Result<(), String> {
    json.key(member).try_object(|json| {
        json.say("format", format);
        if let Some(name) = name {
            json.say("name", name);
        }
        json.key("source").try_object(|json| match media {
            Media::Data(_, data) => {
                json.say("bytes", data);
                Ok(())
            }
            Media::Url(url) if url.starts_with("s3://") => {
                json.key("s3Location").object(|json| json.say("uri", url));
                Ok(())
            }
            Media::Url(_) => {
                let says = "a backend that speaks bedrock takes files as their bytes, or by an address that begins with s3://";
                Err(says.to_owned())
            }
        })
    })
}

/// A content type without its parameters.
fn bare(kind: &str) -> &str {
    kind.split(';').next().unwrap_or(kind).trim()
}

fn image(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return None,
    })
}

fn document(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "application/pdf" => "pdf",
        "text/csv" => "csv",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "text/html" => "html",
        "text/plain" => "txt",
        "text/markdown" => "md",
        _ => return None,
    })
}

/// How the name of a file ends.
fn end_of(name: &str) -> Option<String> {
    let (_, end) = name.rsplit_once('.')?;
    Some(end.to_ascii_lowercase())
}

fn of_end(end: &str) -> Option<&'static str> {
    let ends = [
        "pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md",
    ];
    ends.into_iter().find(|known| *known == end)
}

#[cfg(test)]
mod tests {
    //! Names of documents.

    use super::*;

    #[test]
    fn documents_have_names_of_their_own_in_the_characters_that_the_api_takes() {
        let mut names = Names::default();
        for (given, name) in [
            (None, "document"),
            (Some("report 2024_v1.pdf"), "report 2024-v1-pdf"),
            (Some("a\t \nb"), "a b"),
            (Some("  "), "document (2)"),
            (None, "document (3)"),
            (Some("a b"), "a b (2)"),
            (Some("(1) [x]-y"), "(1) [x]-y"),
            (Some("é/.."), "----"),
        ] {
            assert_eq!(names.next(given), name);
        }
        let long = "x".repeat(300);
        assert_eq!(names.next(Some(&long)).len(), NAME_CHARS);
        let second = names.next(Some(&long));
        assert_eq!(second.len(), NAME_CHARS);
        assert!(second.ends_with("x (2)"), "{second}");
    }
}
