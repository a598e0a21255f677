//! What takes long is done beside the worker, and what does not on it: filters of requests, documents that are made of answers, signatures.
//!
//! Not here: the thread beside a worker (`crate::beside`).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use bytes::Bytes;
use policy::caller::Later;
use policy::credential::{Credential, Minter, Signable, Signer, UpstreamAuth};
use policy::record::{Count, Outcome};
use policy::secret::Secret;
use wire::dialect::Operation;
use wire::filter::{Answering, Content, Filter, Request, ResponseFilter, Stop, Unfit};
use wire::head::ResponseHead;

use super::{BUSY, CHAT, call, json, two_backends};

/// Notes on which threads requests pass it.
#[derive(Debug, Default)]
struct Where(Arc<Mutex<Vec<ThreadId>>>);

impl Filter for Where {
    fn request(&self, _: Operation, _: &mut Request) -> Result<Option<Box<dyn Answering>>, Unfit> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(thread::current().id());
        Ok(None)
    }
}

#[test]
fn a_long_body_passes_filters_beside_its_worker_and_a_short_one_on_it() {
    let worker = thread::current().id();
    for (length, is_beside) in [(100, false), (100_000, true)] {
        let threads = Arc::default();
        let mut s = two_backends();
        s.backends[0].filters = vec![Arc::new(Where(Arc::clone(&threads)))];
        let text = "x".repeat(length);
        let body = format!(r#"{{"model":"m","messages":[{{"content":"{text}"}}]}}"#);
        let seen = call(s, &body, vec![json(200, CHAT)]);
        assert_eq!(seen.record.status, 200, "{}", seen.response);
        assert!(seen.arrived[0].text.ends_with(&body));
        let threads = threads.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(threads.len(), 1);
        assert_eq!(threads[0] != worker, is_beside, "{length} bytes");
    }
}

/// Notes on which threads documents are made, each of all that came.
#[derive(Debug, Clone, Default)]
struct Makes(Arc<Mutex<Vec<ThreadId>>>);

impl Filter for Makes {
    fn request(&self, _: Operation, _: &mut Request) -> Result<Option<Box<dyn Answering>>, Unfit> {
        Ok(Some(Box::new(self.clone())))
    }
}

impl Answering for Makes {
    fn response(&self, _: &ResponseHead, _: Content, _: u64) -> Option<Box<dyn ResponseFilter>> {
        Some(Box::new(Made(self.clone(), Vec::new())))
    }
}

#[derive(Debug)]
struct Made(Makes, Vec<u8>);

impl ResponseFilter for Made {
    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        self.1.extend_from_slice(piece);
        if is_over {
            let mut threads = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            threads.push(thread::current().id());
            out.push(std::mem::take(&mut self.1).into());
        }
        Ok(())
    }

    fn kept(&self) -> usize {
        self.1.len()
    }
}

#[test]
fn a_long_document_is_made_beside_its_worker_and_a_short_one_on_it() {
    let worker = thread::current().id();
    for (length, is_beside) in [(100, false), (100_000, true)] {
        let makes = Makes::default();
        let mut s = two_backends();
        s.backends[0].filters = vec![Arc::new(makes.clone())];
        let text = "x".repeat(length);
        let answer = format!(
            r#"{{"choices":[{{"message":{{"content":"{text}"}}}}],"usage":{{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}}}"#
        );
        let body = r#"{"model":"m","messages":[]}"#;
        let seen = call(s, body, vec![json(200, &answer)]);
        assert!(seen.response.contains(&text), "{length} bytes");
        assert_eq!(seen.record.outcome, Outcome::Completed);
        // What read its usage goes with it, and comes back.
        assert_eq!(seen.record.tokens.completion, Count::Reported(4));
        let threads = makes.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(threads.len(), 1);
        assert_eq!(threads[0] != worker, is_beside, "{length} bytes");
    }
}

/// Notes on which threads requests are signed.
#[derive(Debug, Clone, Default)]
struct Signs(Arc<Mutex<Vec<ThreadId>>>);

impl Signer for Signs {
    fn covers(&self, _: &[u8]) -> bool {
        false
    }

    fn sign(&self, request: &Signable<'_>, _: u64) -> Vec<(&'static str, Secret)> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(thread::current().id());
        let bytes: usize = request.body.iter().map(|piece| piece.len()).sum();
        vec![("x-signed", Secret::new(bytes.to_string().into_bytes()))]
    }
}

impl Minter for Signs {
    fn account(&self) -> &str {
        "test"
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        Some(Arc::new(Credential::Signer(Box::new(self.clone()))))
    }

    fn refused(&self, _: u16, _: Option<&Secret>) {}

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        Box::pin(async { None })
    }
}

#[test]
fn a_long_body_is_signed_beside_its_worker_and_a_short_one_on_it() {
    let worker = thread::current().id();
    for (length, is_beside) in [(100, false), (100_000, true)] {
        let signs = Signs::default();
        let mut s = two_backends();
        for endpoint in &mut s.endpoints {
            endpoint.auth = UpstreamAuth::Minted(Arc::new(signs.clone()));
        }
        let text = "x".repeat(length);
        let body = format!(r#"{{"model":"m","messages":[{{"content":"{text}"}}]}}"#);
        let seen = call(s, &body, vec![json(503, BUSY), json(200, CHAT)]);
        assert_eq!((seen.record.status, seen.record.attempts), (200, 2));
        for arrived in &seen.arrived {
            let signed = format!("x-signed: {}\r\n", body.len());
            assert!(arrived.text.contains(&signed), "{length} bytes");
        }
        let threads = signs.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(threads.len(), 2);
        assert!(threads.iter().all(|of| (*of != worker) == is_beside));
    }
}
