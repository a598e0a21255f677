//! Calls of Google's own API to a backend that has it: the body passes as it came, and the path is that of where the API is.
//!
//! A stream that its client wants as a list is asked for as events, so that what it used can be read while it passes; each event is an
//! item of the list, byte for byte. One that is no JSON would be read as part of the list around it: it ends the answer.

use bytes::Bytes;
use wire::dialect::Operation;
use wire::dialect::gemini::Named;
use wire::filter::{Answering, Content, Manner, Request, ResponseFilter, Shape, Stop};
use wire::head::ResponseHead;
use wire::sse::DataReader;

use super::Place;
use crate::fault::{Fault, Result};
use crate::raw::Raw;

/// No event of an answer is longer.
const EVENT_BYTES: usize = 8 * 1024 * 1024;

/// Makes the path of a call.
pub(crate) fn pass(
    place: Place,
    asked: Operation,
    request: &mut Request,
) -> Result<Option<Box<dyn Answering>>> {
    if asked == Operation::GeminiModels && request.below.starts_with("/publishers/") {
        let says = "the backend speaks gemini, which has no list of a publisher's models";
        return Err(Fault::new(says.to_owned()));
    }
    if !asked.is_named_by_path() {
        return Ok(None);
    }
    let model = request.model.as_deref().unwrap_or_default();
    let Some(named) = Named::below_root(&request.below) else {
        return Ok(None);
    };
    request.path = Some(place.path(model, named.verb).into());
    Ok(match request.manner {
        Manner::Whole => None,
        Manner::Events => {
            request.query = Some(super::EVENTS.to_owned());
            None
        }
        Manner::List => {
            request.query = Some(super::EVENTS.to_owned());
            Some(Box::new(Listed))
        }
    })
}

/// That of one JSON document.
pub(super) fn json_shape() -> Shape {
    Shape {
        content: Content::Json,
        content_type: "application/json".into(),
        headers: Vec::new(),
    }
}

/// A call whose answer shall be a list.
#[derive(Debug)]
struct Listed;

impl Answering for Listed {
    fn response(
        &self,
        _head: &ResponseHead,
        content: Content,
        _unix_s: u64,
    ) -> Option<Box<dyn ResponseFilter>> {
        let is_stream = content == Content::Events;
        is_stream.then(|| Box::<Items>::default() as Box<dyn ResponseFilter>)
    }
}

/// Events on their way into a list.
#[derive(Debug, Default)]
struct Items {
    events: DataReader,
    has_item: bool,
}

impl Items {
    fn add(has_item: &mut bool, data: &[u8], out: &mut Vec<u8>) -> std::result::Result<(), Stop> {
        Raw::read(data).ok_or(Stop::Malformed)?;
        let is_first = !std::mem::replace(has_item, true);
        out.extend_from_slice(if is_first { b"[" } else { b",\r\n" });
        out.extend_from_slice(data);
        Ok(())
    }
}

impl ResponseFilter for Items {
    fn shape(&self) -> Option<Shape> {
        Some(json_shape())
    }

    fn pass(
        &mut self,
        piece: &[u8],
        is_over: bool,
        out: &mut Vec<Bytes>,
    ) -> std::result::Result<(), Stop> {
        let (mut made, mut result) = (Vec::new(), Ok(()));
        let (events, has_item) = (&mut self.events, &mut self.has_item);
        events.push(piece, |data| {
            if result.is_ok() {
                result = Self::add(has_item, data, &mut made);
            }
        });
        if is_over && result.is_ok() {
            // The end may have cut off the last one: it counts where it is whole.
            if let Some(data) = self.events.unfinished() {
                result = Self::add(&mut self.has_item, &data, &mut made);
            }
            if result.is_ok() {
                let end: &[u8] = if self.has_item { b"]" } else { b"[]" };
                made.extend_from_slice(end);
            }
        }
        if !made.is_empty() {
            out.push(made.into());
        }
        result?;
        match self.events.held() > EVENT_BYTES {
            true => Err(Stop::Malformed),
            false => Ok(()),
        }
    }
}
