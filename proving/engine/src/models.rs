//! `/v1/models`: cards of the models served, as vLLM prints them.
//!
//! Invariant: the list is the configuration's, in its order.
//! Not here: refusing an unknown model (`route`).

use serde_json::{Value, json};

use crate::config::EngineConfig;

pub(crate) fn list(config: &EngineConfig, created: u64) -> Value {
    let cards: Vec<Value> = config
        .models
        .iter()
        .map(|model| card(config, model, created))
        .collect();
    json!({"object": "list", "data": cards})
}

pub(crate) fn card(config: &EngineConfig, model: &str, created: u64) -> Value {
    json!({
        "id": model, "object": "model", "created": created, "owned_by": config.owned_by, "root": model,
        "parent": null, "max_model_len": config.max_model_len, "permission": [],
    })
}
