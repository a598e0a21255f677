//! What the engine saw, kept for tests that must prove what crossed a gateway and what did not.
//!
//! Invariant: bounded: the last 4096 requests and at most 64 MiB of their bodies. Nothing is kept unless
//! `EngineConfig::inspect` is set; what is kept includes credentials, on purpose.
//! Not here: serving it (`route`).

use std::collections::VecDeque;

use http::HeaderMap;
use serde::Serialize;

const MAX_REQUESTS: usize = 4096;
const MAX_KEPT_BODY_BYTES: usize = 64 << 10;
const MAX_TOTAL_BODY_BYTES: usize = 64 << 20;

/// One request as it arrived, and what came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Seen {
    number: u64,
    method: String,
    path: String,
    version: String,
    headers: Vec<(String, String)>,
    /// The body if it is UTF-8 of at most 64 KiB; a larger one is known by its size and hash only.
    body: Option<String>,
    body_hex: Option<String>,
    body_bytes: usize,
    body_fnv64: String,
    status: Option<u16>,
    request_id: Option<String>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    finished: Option<&'static str>,
}

/// The ring of what was seen.
#[derive(Debug, Default)]
pub(crate) struct Inspector {
    first: u64,
    body_bytes: usize,
    ring: VecDeque<Seen>,
}

impl Inspector {
    /// Keeps one request and returns its number, by which later facts are added.
    pub(crate) fn arrived(&mut self, head: &http::request::Parts, body: &[u8]) -> u64 {
        let number = self.first + self.ring.len() as u64;
        let kept = body.len() <= MAX_KEPT_BODY_BYTES;
        let text = std::str::from_utf8(body).ok().filter(|_| kept);
        self.ring.push_back(Seen {
            number,
            method: head.method.to_string(),
            path: head
                .uri
                .path_and_query()
                .map_or_else(|| head.uri.path().to_owned(), ToString::to_string),
            version: format!("{:?}", head.version),
            headers: pairs(&head.headers),
            body: text.map(str::to_owned),
            body_hex: (kept && text.is_none())
                .then(|| body.iter().map(|b| format!("{b:02x}")).collect()),
            body_bytes: body.len(),
            body_fnv64: format!("{:016x}", crate::text::hash(0xcbf2_9ce4_8422_2325, body)),
            status: None,
            request_id: None,
            prompt_tokens: None,
            completion_tokens: None,
            finished: None,
        });
        self.body_bytes += self.ring.back().map_or(0, Seen::kept_bytes);
        while self.ring.len() > MAX_REQUESTS || self.body_bytes > MAX_TOTAL_BODY_BYTES {
            self.forget_oldest();
        }
        number
    }

    pub(crate) fn answered(&mut self, number: u64, status: u16) {
        if let Some(seen) = self.get(number) {
            seen.status = Some(status);
        }
    }

    pub(crate) fn ended(
        &mut self,
        number: u64,
        id: &str,
        prompt: u64,
        completion: u64,
        finished: &'static str,
    ) {
        if let Some(seen) = self.get(number) {
            seen.request_id = Some(id.to_owned());
            seen.prompt_tokens = Some(prompt);
            seen.completion_tokens = Some(completion);
            seen.finished = Some(finished);
        }
    }

    pub(crate) fn requests(&self) -> &VecDeque<Seen> {
        &self.ring
    }

    pub(crate) fn clear(&mut self) {
        while !self.ring.is_empty() {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(old) = self.ring.pop_front() {
            self.first += 1;
            self.body_bytes -= old.kept_bytes();
        }
    }

    fn get(&mut self, number: u64) -> Option<&mut Seen> {
        let index = number.checked_sub(self.first)?;
        self.ring.get_mut(usize::try_from(index).ok()?)
    }
}

impl Seen {
    fn kept_bytes(&self) -> usize {
        self.body
            .as_ref()
            .or(self.body_hex.as_ref())
            .map_or(0, String::len)
    }
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |v: &http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

#[cfg(test)]
mod tests;
