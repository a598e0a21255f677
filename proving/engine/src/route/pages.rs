//! What the server tells of itself: its settings, its tokenizer, its paths.
//!
//! Invariant: nothing here holds a secret: of the settings those are shown that vLLM shows, and no key.
//! Not here: metrics (`metrics`), paths themselves (`table`).

use http::Method;
use serde_json::{Map, Value, json};

use super::table::{Operation, ROUTES, Route};
use crate::config::{EngineConfig, VLLM_VERSION};
use crate::error::Refusal;
use crate::model::Model;
use crate::render::Format;
use crate::state::State;

/// `/server_info`: settings as a text, or by `?config_format=json` as JSON.
pub(super) fn server_info(state: &State, query: Option<&str>) -> Result<Value, Refusal> {
    let wanted = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("config_format="));
    let config = match wanted {
        None | Some("text") => Value::String(text(&state.config)),
        Some("json") => settings(&state.config),
        Some(_) => {
            let why = "config_format must be text or json";
            return Err(Refusal::bad_request(why).about("config_format"));
        }
    };
    let system = json!({"vllm_version": VLLM_VERSION, "simulated": true});
    Ok(json!({"vllm_config": config, "vllm_env": {}, "system_env": system}))
}

fn settings(config: &EngineConfig) -> Value {
    let hardware = config.hardware.as_ref();
    let of_hardware = hardware.map(|hardware| {
        let (limits, kv) = (&hardware.scheduler, &hardware.scheduler.kv);
        // Of all engines together, as `/metrics` shows it.
        let blocks = u64::from(kv.blocks) * hardware.ranks() as u64;
        json!({
            "cache_config": {"block_size": kv.block_size, "num_gpu_blocks": blocks,
                "enable_prefix_caching": kv.prefix_caching, "sliding_window": kv.sliding_window},
            "scheduler_config": {"max_num_seqs": limits.max_num_seqs,
                "max_num_batched_tokens": limits.max_num_batched_tokens,
                "async_scheduling": limits.async_scheduling},
            "parallel_config": {"data_parallel_size": hardware.parallelism.data},
        })
    });
    let mut all = json!({
        "model_config": {"model": config.models.first(), "served_model_name": config.models,
            "max_model_len": config.max_model_len, "seed": config.seed},
    });
    if let (Value::Object(all), Some(Value::Object(more))) = (&mut all, of_hardware) {
        all.extend(more);
    }
    all
}

/// `name=value` of each setting, in the order of the groups.
fn text(config: &EngineConfig) -> String {
    let Value::Object(groups) = settings(config) else {
        return String::new();
    };
    let members = groups.values().filter_map(Value::as_object).flatten();
    let pairs: Vec<String> = members
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(", ")
}

/// `/tokenizer_info`: the tokenizer's own configuration where there is one, else what is built in.
pub(super) fn tokenizer_info(state: &State) -> Result<Value, Refusal> {
    let model = state
        .models
        .first()
        .ok_or_else(|| Refusal::not_found("Not Found"))?;
    let files = state.config.files.as_ref();
    let mut info: Map<String, Value> = files
        .and_then(|files| serde_json::from_str(files.config.as_deref()?).ok())
        .unwrap_or_else(|| built_in(model));
    if let Some(template) = files.and_then(|files| files.chat_template.as_deref()) {
        info.insert("chat_template".to_owned(), json!(template));
    }
    info.entry("tokenizer_class")
        .or_insert(json!("PreTrainedTokenizerFast"));
    info.entry("model_max_length")
        .or_insert(json!(state.config.max_model_len));
    info.insert(
        "vocab_size".to_owned(),
        json!(model.tokenizer().vocabulary_size()),
    );
    Ok(Value::Object(info))
}

fn built_in(model: &Model) -> Map<String, Value> {
    let (begin, end, pad) = match model.format {
        Format::Harmony { .. } => (Some("<|startoftext|>"), "<|return|>", "<|endoftext|>"),
        Format::ChatMl | Format::Template(_) => (None, "<|im_end|>", "<|endoftext|>"),
    };
    let marks = [
        ("bos_token", json!(begin)),
        ("eos_token", json!(end)),
        ("pad_token", json!(pad)),
        ("chat_template", Value::Null),
    ];
    marks
        .map(|(name, mark)| (name.to_owned(), mark))
        .into_iter()
        .collect()
}

/// `/openapi.json`: every path with its methods, and what a call has to hold at least.
pub(super) fn openapi(inspects: bool) -> Value {
    let mut paths = Map::new();
    let shown = |route: &&Route| !matches!(route.operation, Operation::Inspection(_)) || inspects;
    for route in ROUTES.iter().filter(shown) {
        let methods = route.methods.iter().map(|method| {
            let name = method.as_str().to_ascii_lowercase();
            (name, operation(route, method))
        });
        paths.insert(
            route.path.to_owned(),
            Value::Object(methods.collect::<Map<_, _>>()),
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "vLLM, simulated", "version": VLLM_VERSION},
        "paths": paths,
        "components": {
            "schemas": {"ErrorResponse": {"type": "object", "required": ["error"], "properties": {"error": {
                "type": "object", "required": ["message", "type", "param", "code"], "properties": {
                    "message": {"type": "string"}, "type": {"type": "string"},
                    "param": {"type": ["string", "null"]}, "code": {"type": "integer"}}}}}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route, method: &Method) -> Value {
    let error = json!({"$ref": "#/components/schemas/ErrorResponse"});
    let refused = |why: &str| {
        json!({"description": why,
        "content": {"application/json": {"schema": error}}})
    };
    let name = route.path.trim_matches('/');
    let name = name.replace(['/', '{', '}', '.'], "_");
    let mut operation = json!({
        "summary": route.summary,
        "operationId": format!("{}_{}", name, method.as_str().to_ascii_lowercase()),
        "responses": {"200": {"description": "The answer"}},
    });
    if let Some((_, name)) = route.path.split_once('{') {
        let name = name.trim_end_matches('}');
        operation["parameters"] = json!([{"name": name, "in": "path", "required": true,
            "schema": {"type": "string"}}]);
        operation["responses"]["404"] = refused("There is none of that name");
    }
    let required = route.operation.required();
    if method == Method::POST && !required.is_empty() {
        let members = required
            .iter()
            .map(|member| ((*member).to_owned(), json!({})));
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": {
            "type": "object", "required": required, "properties": members.collect::<Map<_, _>>()}}}});
        operation["responses"]["400"] = refused("The call is not valid");
    }
    if route.path.starts_with("/v1/") {
        operation["security"] = json!([{"key": []}]);
        operation["responses"]["401"] = refused("A key is needed");
    }
    operation
}
