//! What is said of an exchange that finds no room.

use policy::model::ModelPattern;
use policy::operation::Operation;
use policy::snapshot::Tokenizer;

use super::*;
use crate::counter::Open;
use crate::metrics::RESULTS;
use crate::shared_queue::SharedQueue;

#[test]
fn embeddings_that_find_no_room_miss_no_output() {
    let queue = SharedQueue::<CountEvent, Open>::new(1);
    let metrics = Arc::<DriftMetrics>::default();
    let (inlet, budget) = (queue.inlet(), MemoryBudget::new(1));
    let shared = Arc::clone(&metrics);
    let mut handle = CountHandle::new(0, inlet, budget, shared, 1 << 20, Duration::ZERO);
    let tokenizer = Tokenizer {
        models: ModelPattern::Exact("m".into()),
        key: 7,
        window: None,
    };
    let snapshot = Snapshot {
        tokenizers: vec![tokenizer],
        ..Snapshot::default()
    };
    for operation in [Operation::Embeddings, Operation::Chat] {
        let record = Record {
            operation: Some(operation),
            model_sent: Some("m".into()),
            ..Record::default()
        };
        let begun = handle.begin(&snapshot, &record, vec![Bytes::from_static(b"{}")]);
        assert!(matches!(begun, Begun::NoRoom), "{begun:?}");
    }
    let busy = RESULTS.iter().position(|it| *it == "busy").expect("one");
    let of = |direction| metrics.results(BilledBy::Reported, direction)[busy];
    assert_eq!((of(Direction::Prompt), of(Direction::Output)), (2, 1));
}
