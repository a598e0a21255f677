//! What was made while the disk is away.

use std::cell::Cell;

use policy::batch_store::{Maker, Nobody, Owner};

use super::*;

#[tokio::test(flavor = "current_thread")]
async fn what_was_made_is_tried_for_a_minute_and_is_then_nobodys() {
    let thing = Thing {
        backend: "openai".into(),
        api: Api::OpenAi,
        kind: Kind::Batch,
        id: "batch_1".into(),
        owner: Owner {
            workload: "a".into(),
            issuer: None,
        },
        maker: Maker::default(),
        created_unix_ms: 0,
        calls: Calls::default(),
        object: Bytes::new(),
        is_unsettled: true,
    };
    let pauses = Cell::new(0);
    let pause = async || pauses.set(pauses.get() + 1);
    // Its disk takes nothing, ever.
    let kept = kept_for_sure(&Nobody, &thing.at(), thing.clone(), pause).await;
    assert!(matches!(kept, Err(Unmade::NotKept(NotKept::Away))));
    assert_eq!(pauses.get() * KEPT_EVERY, Duration::from_mins(1));
}
