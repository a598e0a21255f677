//! OpenAI's embeddings, made at backends of other APIs.
//!
//! Invariant: each text has one vector, in its order, or there is no answer. Numbers stay as they are written, but where the client asks
//! for them in binary, which is what OpenAI's SDKs do.
//! Not here: how an API is asked and what it answers (its directory).

use std::borrow::Cow;

use bytes::Bytes;
use wire::filter::{Content, ResponseFilter, Shape, Stop};

use crate::base64;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

/// No answer is longer.
const DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// A call of OpenAI's.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) model: Cow<'a, str>,
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) dimensions: Option<Raw<'a>>,
    /// What the texts are for: a member that servers of OpenAI's kin have, too.
    pub(crate) input_type: Option<Cow<'a, str>>,
    is_binary: bool,
    pub(crate) dropped: Option<&'static str>,
}

/// What its answer has to know of a call.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    model: String,
    texts: usize,
    is_binary: bool,
}

/// What an answer has: each vector as it is written, and the tokens of all texts.
pub(crate) struct Made<'a> {
    pub(crate) vectors: Vec<&'a str>,
    pub(crate) tokens: Option<u64>,
}

/// Reads an answer.
pub(crate) type Read = for<'a> fn(&'a [u8]) -> std::result::Result<Made<'a>, Stop>;

/// Reads a call.
pub(crate) fn read(body: Raw<'_>) -> Result<Call<'_>> {
    let mut body = body.object()?;
    let format = body.text("encoding_format")?;
    let call = Call {
        model: body.need("model", Raw::text)?,
        texts: body.need("input", texts)?,
        dimensions: body.read("dimensions", Raw::number)?,
        input_type: body.text("input_type")?,
        is_binary: match format.as_deref() {
            None | Some("float") => false,
            Some("base64") => true,
            Some(other) => {
                let says = format!("{other:?} is no format of numbers");
                return Err(Fault::new(says).within("encoding_format"));
            }
        },
        dropped: body.take("user").map(|_| "user"),
    };
    if let Some((name, _)) = body.rest().next() {
        return Err(unknown().within(&name));
    }
    Ok(call)
}

/// That of a member which the backend has no word for.
pub(crate) fn unknown() -> Fault {
    Fault::new("is a member that this gate cannot tell a backend of another dialect")
}

fn texts(input: Raw<'_>) -> Result<Vec<Cow<'_, str>>> {
    if input.is_text() {
        return Ok(vec![input.text()?]);
    }
    input.each(|_, text| match text.is_text() {
        true => text.text(),
        false => Err(Fault::new(
            "is no text: tokens of one provider are none of another's",
        )),
    })
}

impl Call<'_> {
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            model: self.model.clone().into_owned(),
            texts: self.texts.len(),
            is_binary: self.is_binary,
        }
    }
}

/// An answer on its way.
#[derive(Debug)]
pub(crate) struct Embedded {
    asked: Asked,
    read: Read,
    held: Vec<u8>,
}

impl Embedded {
    pub(crate) const fn new(asked: Asked, read: Read) -> Self {
        Self {
            asked,
            read,
            held: Vec::new(),
        }
    }

    fn made(&self) -> std::result::Result<Vec<u8>, Stop> {
        let Made { vectors, tokens } = (self.read)(&self.held)?;
        if vectors.len() != self.asked.texts {
            return Err(Stop::Malformed);
        }
        let tokens = tokens.unwrap_or(0);
        let mut json = Json::with_capacity(self.held.len());
        json.try_object(|json| {
            json.say("object", "list");
            json.key("data").try_list(|json| {
                (0..).zip(&vectors).try_for_each(|(nth, one)| {
                    json.try_object(|json| {
                        json.say("object", "embedding");
                        json.key("index").whole(nth);
                        json.key("embedding");
                        self.vector(one, json)
                    })
                })
            })?;
            json.say("model", &self.asked.model);
            json.key("usage").object(|json| {
                json.key("prompt_tokens").whole(tokens);
                json.key("total_tokens").whole(tokens);
            });
            Ok(())
        })?;
        Ok(json.into_bytes())
    }

    fn vector(&self, values: &str, json: &mut Json) -> std::result::Result<(), Stop> {
        let numbers: Vec<f32> = serde_json::from_str(values).map_err(|_| Stop::Malformed)?;
        match self.asked.is_binary {
            false => json.raw(Raw::literal(values)),
            true => {
                let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
                json.text(&base64::encode(&bytes));
            }
        }
        Ok(())
    }
}

impl ResponseFilter for Embedded {
    fn shape(&self) -> Option<Shape> {
        Some(Shape {
            content: Content::Json,
            content_type: "application/json".into(),
            headers: Vec::new(),
        })
    }

    fn pass(
        &mut self,
        piece: &[u8],
        is_over: bool,
        out: &mut Vec<Bytes>,
    ) -> std::result::Result<(), Stop> {
        self.held.extend_from_slice(piece);
        if self.held.len() > DOCUMENT_BYTES {
            return Err(Stop::Malformed);
        }
        if is_over {
            out.push(self.made()?.into());
        }
        Ok(())
    }

    fn kept(&self) -> usize {
        self.held.len()
    }
}
