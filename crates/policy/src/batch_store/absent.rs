//! Nobody knows whose files and batches are: for whoever only asks what a gate would make of a call.
//!
//! Not here: who does know (the host).

use std::sync::Arc;

use bytes::Bytes;

use super::{At, Away, BatchStore, GivenUp, Kind, Listed, NotKept, Owner, Page, Thing, Unsettled};
use crate::caller::Later;

/// Knows nothing, and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

fn away<T: Send + 'static>() -> Later<Result<T, Away>> {
    Box::pin(async { Err(Away) })
}

impl BatchStore for Nobody {
    fn has_room(&self, _: Arc<str>) -> Later<Result<bool, Away>> {
        away()
    }

    fn begin(&self, _: Thing) -> Later<Result<At, Away>> {
        away()
    }

    fn made(&self, _: At, _: Thing) -> Later<Result<(), NotKept>> {
        Box::pin(async { Err(NotKept::Away) })
    }

    fn keep(&self, _: Thing) -> Later<Result<(), NotKept>> {
        Box::pin(async { Err(NotKept::Away) })
    }

    fn find(&self, _: Owner, _: At) -> Later<Result<Option<Thing>, Away>> {
        away()
    }

    fn page(&self, _: Owner, _: Arc<str>, _: Kind, _: Page) -> Later<Result<Option<Listed>, Away>> {
        away()
    }

    fn told(&self, _: At, _: Bytes) -> Later<Result<(), Away>> {
        away()
    }

    fn holds(&self, _: Owner, _: At) -> Later<Result<Option<At>, Away>> {
        away()
    }

    fn remove(&self, _: At) -> Later<Result<(), Away>> {
        away()
    }

    fn given_up(&self) -> Later<Result<Vec<GivenUp>, Away>> {
        away()
    }

    fn unsettled_of(&self, _: Arc<str>) -> Later<Result<u64, Away>> {
        away()
    }

    fn unsettled_backends(&self) -> Later<Result<Vec<Arc<str>>, Away>> {
        away()
    }

    fn unsettled(&self, _: Arc<str>, _: usize) -> Later<Result<Vec<Thing>, Away>> {
        away()
    }

    fn is_due(&self, _: At) -> Later<Result<bool, Away>> {
        away()
    }

    fn settled(&self, _: At) -> Later<Result<(), Away>> {
        away()
    }

    fn row(&self, _: &Thing, _: &str) -> [u8; 16] {
        [0; 16]
    }

    fn on_disk(&self, _: Vec<[u8; 16]>) -> Later<Result<Vec<bool>, Away>> {
        away()
    }

    fn claim(&self) -> bool {
        false
    }

    fn release(&self) {}

    fn hurry(&self, _: &At) {}

    fn hurried(&self) -> Vec<At> {
        Vec::new()
    }

    fn remember_user(&self, _: At, _: Arc<str>) {}

    fn remembered_user(&self, _: &At) -> Option<Arc<str>> {
        None
    }

    fn stats(&self) -> Unsettled {
        Unsettled::default()
    }
}
